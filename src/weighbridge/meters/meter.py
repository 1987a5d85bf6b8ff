"""The contract of a meter: it begins before a trial's first program, ends after its last, and returns series."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from weighbridge.model.sampling import Sampler
from weighbridge.model.trial import Series

Samplers = Mapping[Any, Sampler]
"""The samplers of sites, by role."""
NO_SAMPLERS: Samplers = {}


class MeterFailed(Exception):
    """A host has no readings; the message is one sentence. It never fails a trial."""


@dataclass(frozen=True, slots=True)
class MeterReadings:
    """The series of one host's meter in a trial, and the CPU seconds of reading (None: unknown)."""

    series: tuple[Series, ...]
    own_cpu_s: float | None = None


class Meter(Protocol):
    """Reads what a host and its sites use. Both methods raise MeterFailed."""

    def begin(self, sites: Mapping[str, Mapping[str, str]], samplers: Samplers = NO_SAMPLERS) -> None:
        """Begin to read, for the first time before this returns. ``sites`` has each role's ``Site.scope()``.

        ``samplers`` has the roles whose sites have their own.
        """

    def end(self, since: float) -> MeterReadings:
        """Read for the last time. ``since`` is the zero of the series' times, by time.monotonic."""
