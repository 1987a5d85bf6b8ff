"""Fresh sites that a trial opens to time them, in place of running a program in the open one: asked for, and found.

What was found is kept as the trial's output: JSON on standard output, which workloads read as any other program's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from weighbridge.model.command import Completed
from weighbridge.model.measurement import ProgramFailed, Unparseable


@dataclass(frozen=True, slots=True)
class Openings:
    """How many sites like the measured one a trial opens, one after another.

    ``together``: each stays open, idle, until the last one is; else it is closed before the next one opens.
    ``settle_s``: how long a site idles before memory is read. ``slow``: no further one is opened once each of the
    last three took more than so many times as long as the first ones (`are_slow`).
    """

    sites: int = 1
    together: bool = False
    settle_s: float = 0.0
    slow: float | None = None


_Seconds = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
_Bytes = Annotated[int, Field(ge=0, le=2**60)]


class _Found(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Opening(_Found):
    """One fresh site. Seconds by the clock of the machine that Weighbridge runs on; None: not read, not reached."""

    open_s: _Seconds
    """From the call until the environment gave the site."""
    ready_s: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
    """From the call until the first command's end, and its output, had been told."""
    own_cpu_s: _Seconds
    """CPU time in ``ready_s`` of Weighbridge's own process, and of what it started and what ended then.

    So the programs that set a site up (ip, podman create) are in it, whoever would have to start them, and what still
    runs is not: an engine, the launcher, podman's client.
    """
    group_bytes: _Bytes | None = None
    """Memory that the site's own control group is charged for, once it has settled."""
    available_bytes: _Bytes | None = None
    """What is available to sites like it then: of its machine's memory (MemAvailable), or of a hypervisor's."""
    close_s: _Seconds | None = None
    """How long its closing took."""


class Opened(_Found):
    """All fresh sites of one trial, in the order of their opening."""

    total_bytes: _Bytes | None = None
    """All memory there."""
    available_bytes: _Bytes | None = None
    """Of it before the first one."""
    openings: tuple[Opening, ...] = ()
    stopped: Literal["", "memory", "slow"] = ""
    """Why fewer were opened than were asked for."""


SLOW_IN_A_ROW = 3
"""A single slow start is a hiccup of the machine, and says nothing of the next one."""


def _compared(starts: Sequence[float]) -> int:
    """How many of the first and of the last starts are compared: k = min(3, n // 2), at least 1."""
    return min(3, len(starts) // 2 or 1)


def start_slowdown(starts: Sequence[float]) -> float:
    """The median of the last k starts over that of the first k, k = min(3, n // 2 or 1); ``starts`` are not empty."""
    k = _compared(starts)
    return median(starts[-k:]) / median(starts[:k])


def are_slow(starts: Sequence[float], times: float) -> bool:
    """Whether each of the last three starts took more than so many times the median of the first k."""
    if len(starts) <= SLOW_IN_A_ROW:
        return False
    usual = median(starts[: _compared(starts)])
    return all(start > times * usual for start in starts[-SLOW_IN_A_ROW:])


def read_opened(completed: Completed) -> Opened:
    """Read a trial's record of openings. ProgramFailed where one failed, Unparseable for any other output."""
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
