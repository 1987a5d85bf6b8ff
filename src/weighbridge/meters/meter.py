"""What a meter is: begun before a trial's first program, ended after its last, and then it has series."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from weighbridge.model.sampling import Sampler
from weighbridge.model.trial import Series

Samplers = Mapping[Any, Sampler]
"""By role."""
NO_SAMPLERS: Samplers = {}


class MeterFailed(Exception):
    """There are no readings of a host; one sentence says why. It never fails a trial."""


@dataclass(frozen=True, slots=True)
class MeterReadings:
    """What one host's meter read in a trial, and the CPU seconds that reading took itself (None: not known)."""

    series: tuple[Series, ...]
    own_cpu_s: float | None = None


class Meter(Protocol):
    """Reads what a host and the sites on it use. Both methods raise MeterFailed."""

    def begin(self, sites: Mapping[str, Mapping[str, str]], samplers: Samplers = NO_SAMPLERS) -> None:
        """Begin to read, the first time before this returns. ``sites``: each role's ``Site.scope()``.

        ``samplers``: of those roles whose sites have one of their own."""

    def end(self, since: float) -> MeterReadings:
        """Read for the last time. ``since``: the moment (time.monotonic) from which the series count their time."""
