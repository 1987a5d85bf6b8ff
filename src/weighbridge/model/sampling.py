"""The protocol of samplers: a site's launcher reads kernel files at a steady rate, if its host cannot see them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SampledFile:
    """A file to sample: at most ``most`` bytes. ``slow``: only once per second, and at both ends."""

    path: str
    most: int
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples: ``texts`` has a column for each file, with a text per moment of ``at`` (seconds since the first).

    A text is None if it was unreadable or not due. ``ticks`` is the kernel's ticks per second, ``page`` the bytes of
    a page, and ``cpu_s`` the CPU time of the sampling.
    """

    at: Sequence[float]
    texts: Sequence[Sequence[str | None]]
    ticks: int
    page: int
    cpu_s: float


class Sampler(Protocol):
    """Reads files while a trial runs. Raises OSError, and EnvironmentLost if its site has disappeared."""

    def begin_sampling(self, hz: float, files: Sequence[SampledFile]) -> None:
        """Start reading; each file was read once when this returns. Earlier samples are dropped."""

    def end_sampling(self) -> Samples:
        """Read for the last time; return all samples. Raises OSError if nothing was started."""
