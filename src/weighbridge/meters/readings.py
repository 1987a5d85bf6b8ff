"""Unpacks the sampler's answer: the text of each file at each moment."""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weighbridge.meters.meter import MeterFailed

_MISSHAPEN = (ValueError, KeyError, TypeError, AttributeError, zlib.error, RecursionError)


@dataclass(frozen=True, slots=True)
class Readings:
    """Texts by label, one for each moment of ``at`` (seconds since the first), or None for an unreadable file.

    ``ticks`` is the host's number of clock ticks per second, and ``page`` the size of its pages in bytes.
    """

    at: tuple[float, ...]
    texts: Mapping[str, Sequence[str | None]]
    ticks: int = 100
    page: int = 4096
    own_cpu_s: float = 0.0


def unpack(line: bytes) -> Readings:
    """Return the readings in the sampler's answer to ``end``. Raises MeterFailed if the answer is damaged."""
    try:
        answer = json.loads(line)
        packed = zlib.decompress(base64.b64decode(answer["texts"], validate=True))
        at = tuple(float(moment) for moment in answer["at"])
        texts = {
            str(label): [None if text is None else str(text) for text in column]
            for label, column in json.loads(packed).items()
        }
        readings = Readings(at, texts, int(answer["ticks"]), int(answer["page"]), float(answer["cpu_s"]))
    except _MISSHAPEN as error:
        raise MeterFailed(f"its answer is not a set of readings ({type(error).__name__})") from error
    if readings.ticks <= 0 or any(len(column) != len(at) for column in texts.values()):
        raise MeterFailed("its answer is not a set of readings (of different lengths)")
    return readings
