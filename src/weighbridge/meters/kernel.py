"""The meter that reads the kernel's files: one sampler on a host, and the conversation with it."""

import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.meters import sampler
from weighbridge.meters.meter import NO_SAMPLERS, MeterFailed, MeterReadings, Samplers
from weighbridge.meters.readings import unpack
from weighbridge.meters.scopes import Order
from weighbridge.meters.series import series
from weighbridge.model.command import Command, HostProcess, Stream
from weighbridge.model.host import Host

ANSWER_S = 10.0
"""The time limit for an answer of the sampler, in seconds."""


class KernelMeter:
    """Reads ``hz`` times a second while a trial runs. Implements ``Meter``. A sampler that ended is started again."""

    def __init__(self, host: Host, hz: float) -> None:
        self._host, self._hz = host, hz
        self._talk: tuple[HostProcess, Stream] | None = None
        self._begun: float | None = None
        with contextlib.suppress(MeterFailed):  # begin tries again, and reports its failure
            self._start()

    def _start(self) -> tuple[HostProcess, Stream]:
        self.close()
        source = Path(sampler.__file__).read_text()
        try:
            self._talk = self._host.talk(Command((self._host.python, "-I", "-S", "-c", source)))
        except (Unavailable, EnvironmentLost, OSError) as error:
            raise MeterFailed(str(error)) from error
        return self._talk

    def begin(self, sites: Mapping[str, Mapping[str, str]], samplers: Samplers = NO_SAMPLERS) -> None:
        """Begin to read the files of the host and of the sites on it."""
        talk = self._talk
        if talk is None or self._begun is not None or self._has_ended(talk[0]):
            talk = self._start()
        self._begun = time.monotonic()
        order = Order.of({role: scope for role, scope in sites.items() if role not in samplers}, self._host.name)
        answer = self._ask(*talk, {"do": "begin", "hz": self._hz, **asdict(order)})
        if not answer.startswith(b'{"begun"'):
            raise MeterFailed(f"it answered {answer[:80]!r}")

    def end(self, since: float) -> MeterReadings:
        """Return every series of the host and its sites, and the CPU time of reading them."""
        if self._talk is None or self._begun is None:
            raise MeterFailed("it was not started")
        readings = unpack(self._ask(*self._talk, {"do": "end"}))
        offset, self._begun = self._begun - since, None
        return MeterReadings(series(readings, offset), readings.own_cpu_s)

    def _ask(self, process: HostProcess, stream: Stream, message: Mapping[str, object]) -> bytes:
        """Send the sampler one line, and return its answer."""
        deadline, answer = time.monotonic() + ANSWER_S, b""
        try:
            stream.send(json.dumps(message).encode() + b"\n")
            while not answer.endswith(b"\n"):
                piece = stream.receive(deadline - time.monotonic())
                if not piece:
                    raise MeterFailed(f"its process ended: {process.stop().last_words}")
                answer += piece
        except TimeoutError as error:
            raise MeterFailed(f"its process did not answer within {ANSWER_S:g} s") from error
        except (EnvironmentLost, OSError) as error:
            raise MeterFailed(f"its process is gone: {error}") from error
        return answer

    @staticmethod
    def _has_ended(process: HostProcess) -> bool:
        try:
            return process.poll() is not None
        except EnvironmentLost:
            return True

    def close(self) -> None:
        """End the sampler."""
        talk, self._talk, self._begun = self._talk, None, None
        if talk is not None:
            with contextlib.suppress(EnvironmentLost):  # it ended together with its host
                talk[1].end()
                talk[0].stop()
