"""The protocol of meters, which read series from before a trial's first program until after its last."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from weighbridge.model.sampling import Sampler
from weighbridge.model.trial import Series

Samplers = Mapping[Any, Sampler]
"""The samplers of sites by role."""
NO_SAMPLERS: Samplers = {}


class MeterFailed(Exception):
    """A host has no readings, for the reason in the message. The trial does not fail."""


@dataclass(frozen=True, slots=True)
class MeterReadings:
    """The series of one host in a trial, and the CPU seconds of reading them, or None if unknown."""

    series: tuple[Series, ...]
    own_cpu_s: float | None = None


class Meter(Protocol):
    """Reads what a host and the sites on it use. Both methods raise MeterFailed."""

    def begin(self, sites: Mapping[str, Mapping[str, str]], samplers: Samplers = NO_SAMPLERS) -> None:
        """Begin to read, with the first reading before this returns.

        ``sites`` has the ``Site.scope()`` of each role, and ``samplers`` the samplers of sites with their own."""

    def end(self, since: float) -> MeterReadings:
        """Read for the last time. ``since`` is the zero of the series' times (time.monotonic)."""
