"""Fresh sites that a trial opens to time them: the request, and the record, which is the trial's output as JSON."""

import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from weighbridge.model.command import Completed
from weighbridge.model.measurement import ProgramFailed, Unparseable

MOST_SITES = 100
"""The largest number of sites of a trial that has a duration."""


PHASES = ("create", "start", "answer")
"""The phases of an opening that an environment can measure. An engine creates a container, starts it, and its first
process answers."""


@dataclass(slots=True)
class OpeningPhases:
    """Measures the phases of an opening, which follow each other without a gap."""

    clock: Callable[[], float] = time.monotonic
    seconds: dict[str, float] = field(default_factory=dict)
    _since: float = field(init=False)

    def __post_init__(self) -> None:
        self._since = self.clock()

    def end(self, phase: str) -> None:
        """Note the time of a phase of `PHASES` that ends now."""
        now = self.clock()
        self.seconds[phase], self._since = now - self._since, now


@dataclass(frozen=True, slots=True)
class Openings:
    """How many sites like the measured one a trial opens, one after another.

    ``lasting_s``: a trial opens more than ``sites`` sites if they fit in this time (`Openings.number`). ``together``:
    each stays open, idle, until the last one is open; else it is closed before the next one opens.
    ``settle_s``: how long a site is idle before memory is read. ``slow``: no further site is opened once each of the
    last three took more than this multiple of the time of the first ones (`are_slow`).

    ``at_once``: with more than one, the trial opens bursts instead of single sites. All sites of a burst open at the
    same time, and close before the next burst. ``running``: the number of idle sites that are open during the trial
    and do not count. ``ports``: the number of ports that each site publishes, if its environment publishes ports.
    ``image_files``: the bytes of additional files in the image of each site. ``cold``: the page caches are emptied
    before each site, or burst.
    """

    sites: int = 1
    lasting_s: float = 0.0
    together: bool = False
    settle_s: float = 0.0
    slow: float | None = None
    at_once: int = 1
    running: int = 0
    ports: int = 0
    image_files: int = 0
    cold: bool = False

    def number(self, start_s: float) -> int:
        """Return how many sites, or bursts, a trial opens: at least ``sites``, and for a duration at most 100.

        ``start_s`` is the time of one.
        """
        if not self.lasting_s:
            return self.sites
        return max(self.sites, round(self.lasting_s / max(start_s, self.lasting_s / MOST_SITES)))


StartTimes = MutableMapping[tuple[Openings, tuple[str, ...]], float]
"""The seconds to start and close a site, or a burst, that did not count, by the request and the first command."""
_Seconds = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
_Bytes = Annotated[int, Field(ge=0, le=2**60)]


class _Found(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Opening(_Found):
    """One fresh site. Seconds are by this machine's clock; None means unreadable, or not reached.

    In a burst, the times of all its sites begin with the burst.
    """

    open_s: _Seconds
    """From the call until the environment returned the site."""
    ready_s: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
    """From the call until the first command's end, and its output, were reported."""
    own_cpu_s: _Seconds
    """The CPU time during ``ready_s`` of Weighbridge's process, and of its children that ended then.

    It includes the programs that set up a site (ip, podman create). It excludes programs that are still running: an
    engine, the launcher, podman's client. Each site of a burst has an equal share of the burst's CPU time.
    """
    phases: Mapping[str, _Seconds] = Field(default_factory=dict)
    """The seconds of the phases of ``open_s`` that the environment measured, by name (`PHASES`)."""
    group_bytes: _Bytes | None = None
    """The memory of the site's own control group, after it has settled."""
    available_bytes: _Bytes | None = None
    """The memory for further sites like it then: of its machine (MemAvailable), or of a hypervisor."""
    close_s: _Seconds | None = None


class Opened(_Found):
    """All fresh sites of one trial, in the order of their opening."""

    total_bytes: _Bytes | None = None
    """All memory of the machine."""
    available_bytes: _Bytes | None = None
    """The available memory before the first site opens."""
    openings: tuple[Opening, ...] = ()
    stopped: Literal["", "memory", "slow"] = ""
    """The reason why fewer sites were opened than requested."""


SLOW_IN_A_ROW = 3
"""A single slow start can be an accident, and does not predict the next one."""


def _compared(starts: Sequence[float]) -> int:
    """Return how many of the first and of the last starts are compared: k = min(3, n // 2), at least 1."""
    return min(3, len(starts) // 2 or 1)


def start_slowdown(starts: Sequence[float]) -> float:
    """Return median(last k starts) / median(first k starts), k = min(3, n // 2 or 1). ``starts`` is not empty."""
    k = _compared(starts)
    return median(starts[-k:]) / median(starts[:k])


def are_slow(starts: Sequence[float], times: float) -> bool:
    """Return whether each of the last three starts took more than ``times`` the median of the first k."""
    if len(starts) <= SLOW_IN_A_ROW:
        return False
    usual = median(starts[: _compared(starts)])
    return all(start > times * usual for start in starts[-SLOW_IN_A_ROW:])


def read_opened(completed: Completed) -> Opened:
    """Read a trial's record of openings. Raises ProgramFailed if one failed, Unparseable for any other output."""
    if completed.returncode != 0:
        raise ProgramFailed(f"a site could not be opened: {completed.last_words}")
    try:
        opened = Opened.model_validate_json(completed.stdout)
    except ValidationError as error:
        raise Unparseable("the record of opened sites is missing") from error
    if not opened.openings and opened.stopped == "memory":
        raise ProgramFailed(
            "no site could be opened, because memory ran out. Close other programs, or use a larger machine"
        )
    if not opened.openings:
        raise Unparseable("the record names no site")
    return opened
