"""Files of the kernel, read at a steady rate where their place is: by a site's launcher, and not by its host."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SampledFile:
    """``most``: bytes that are enough of it. ``slow``: it is read once a second only, and at both ends."""

    path: str
    most: int
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Samples:
    """``texts`` has a column for each file, with a text for each moment of ``at`` (seconds since the first).

    None: it could not be read then, or was not due. ``ticks``: the kernel's in a second; ``page``: bytes of a page.
    ``cpu_s``: CPU time that reading took.
    """

    at: Sequence[float]
    texts: Sequence[Sequence[str | None]]
    ticks: int
    page: int
    cpu_s: float


class Sampler(Protocol):
    """Reads files while a trial runs. Raises OSError, and EnvironmentLost once its place has gone."""

    def begin_sampling(self, hz: float, files: Sequence[SampledFile]) -> None:
        """Begin to read; each was read once when this returns. What was begun before is dropped."""

    def end_sampling(self) -> Samples:
        """Read for the last time; return all. OSError where nothing was begun."""
