"""Estimates how long a study takes, and how much time is left."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean as mean
from typing import Literal

from weighbridge import registry
from weighbridge.model.address import ArmId, CellId
from weighbridge.model.study import Arm, Cell, Study
from weighbridge.model.trial import Trial

_SITE_S = (0.1, 2.0)
_READINGS = 20
"""Readings in a trial of the expected length; a fast machine can finish in a quarter of that time."""

_RECENT = 50
"""The forecast uses this many recent trials of an environment."""


def seconds(study: Study) -> tuple[float, float]:
    """Return the shortest and longest duration of a study's trials, without builds and repeated blocks."""
    least, longest = _range_s(study)
    limit_s = study.file.repetitions.limit_s or math.inf
    return min(least, limit_s), min(longest, limit_s)


def _range_s(study: Study) -> tuple[float, float]:
    """Return the shortest and longest duration of all blocks, without the study's time limit."""
    repetitions, short = study.file.repetitions, study.file.repetitions.within is not None
    fewest, most = (repetitions.blocks or repetitions.min), (repetitions.blocks or repetitions.max)
    least = longest = 0.0
    for cell in study.cells:
        for arm in study.arms_of(cell):
            quick, slow = _trial_s(arm, cell)
            quick = min(quick, _shortest_s(arm, cell) if short else quick)
            least, longest = least + fewest * quick, longest + most * slow
    sites = len(study.arms) * len(study.client_hosts)
    least, longest = least + sites * _SITE_S[0], longest + sites * _SITE_S[1]
    return least, longest


def too_little_time(study: Study) -> tuple[float, float] | None:
    """Return the time limit and the least time for the fewest blocks, in seconds; None if they fit."""
    limit_s = study.file.repetitions.limit_s
    needed_s = _range_s(study)[0]
    return (limit_s, needed_s) if limit_s is not None and limit_s < needed_s else None


def blocks_in_time(study: Study) -> int:
    """Return how many blocks of the written length fit in the study's time; without a time limit, `min`."""
    repetitions = study.file.repetitions
    block_s = sum(_trial_s(arm, cell)[1] for cell in study.cells for arm in study.arms_of(cell))
    if repetitions.limit_s is None or block_s <= 0:
        return repetitions.blocks or repetitions.min
    return min(repetitions.max, max(1, int(repetitions.limit_s / block_s)))


def _shortest_s(arm: Arm, cell: Cell) -> float:
    length = registry.workloads()[cell.kind].length(cell.options)
    return math.inf if length is None else length.shortest_s + registry.environments()[arm.kind].fixed_s[0]


def _trial_s(arm: Arm, cell: Cell) -> tuple[float, float]:
    low, high = registry.environments()[arm.kind].fixed_s
    expected = registry.workloads()[cell.kind].expected_s(cell.options)
    return expected + low, expected * 1.5 + high


class TimeLeft:
    """Estimates the time for the remaining trials: from the plan at first, then from the trials so far."""

    def __init__(self, study: Study, trial_s: Callable[[Cell], float | None] = lambda cell: None) -> None:
        """Start with ``trial_s``, the seconds of a trial, if they are known beforehand."""
        self._seen_s: dict[CellId, list[float]] = {}
        self._succeeded_s: dict[CellId, list[float]] = {}
        self._durations_s: dict[ArmId, list[float]] = {
            ArmId(cell.id, arm.name): [trial_s(cell) or mean(_trial_s(arm, cell))]
            for arm in study.arms
            for cell in study.cells
        }

    def note(self, trial: Trial, seconds: float, *, succeeded: bool = True) -> None:
        """Note how long a trial took, with the pause before it, but without the opening of sites."""
        self._durations_s[trial.arm].append(seconds)
        self._seen_s.setdefault(trial.cell, []).append(seconds)
        if succeeded:
            self._succeeded_s.setdefault(trial.cell, []).append(seconds)

    def left_s(self, remaining: Mapping[ArmId, int]) -> float:
        """Return the seconds for the ``remaining`` trials: their number times the mean of the last `_RECENT` trials.

        Use the mean because some of the remaining trials will be slow, and recent trials because the load of a
        machine changes. The first trial only counts if there is no other, because it can include shared preparations.
        Without any trial in an environment, use the trials of the same workload in other environments.
        """
        return sum(count * self._trial_s(each) for each, count in remaining.items())

    def first_s(self, cells: Iterable[CellId]) -> float | None:
        """Return the total seconds of one trial of each cell; None until each has succeeded once."""
        seen = [self._succeeded_s.get(each) for each in cells]
        return sum(mean(each) for each in seen if each) if all(seen) else None

    def _trial_s(self, arm: ArmId) -> float:
        own_s, seen_s = self._durations_s[arm], self._seen_s.get(arm.cell)
        return mean((own_s[2:] or own_s[1:] or seen_s or own_s)[-_RECENT:])


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast of a run's end. Seconds count from now; blocks are totals of the whole run."""

    first_s: float
    """Seconds until the next interim look, the earliest end of the run. 0 if unknown."""
    first_blocks: int
    last_s: float
    """Seconds until the latest end of the run; infinite if unknown."""
    last_blocks: int
    """The approximate number of blocks at the latest end."""
    ends_by: Literal["blocks", "limit", "block"]
    """The cause of the latest end: the last planned block, the time limit, or the block that runs at the limit."""

    @property
    def at_most(self) -> bool:
        """Whether the run can end before `last_s`."""
        return self.first_s < self.last_s


def forecast(
    blocks: int, looks: Iterable[tuple[int, float]], limit_s: float, block_s: float, rest_s: float
) -> Forecast:
    """Return when a run of ``blocks`` blocks, the current one included, ends.

    ``looks`` are the next interim looks: blocks of the run and seconds until then. ``limit_s`` is the time left of
    the run, ``rest_s`` the time left of the current block, and ``block_s`` the length of the next blocks. A block
    that has started is completed. Unknown times are infinite.
    """
    ahead = list(looks)
    (first_blocks, first_s), (last_blocks, last_s) = ahead[0], ahead[-1]
    if first_s == math.inf:
        return Forecast(
            0.0, first_blocks, max(0.0, limit_s), last_blocks, "limit" if limit_s < math.inf else "blocks"
        )
    if last_s <= limit_s:
        return Forecast(first_s, first_blocks, last_s, last_blocks, "blocks")
    if limit_s < rest_s:
        return Forecast(rest_s, blocks, rest_s, blocks, "block")
    limit_s = max(0.0, limit_s)
    further = (limit_s - rest_s) / block_s if block_s > 0 else 0.0
    in_time = min(last_blocks, blocks + math.ceil(further))
    if first_s > limit_s:
        return Forecast(limit_s, in_time, limit_s, in_time, "limit")
    return Forecast(first_s, first_blocks, limit_s, in_time, "limit")


def meter_hz(study: Study) -> float:
    """Return the readings per second: as the study says, or 1 to 10 for its shortest trial; sysstat can do 1."""
    meters = study.file.meters
    if meters.hz != "auto":
        return meters.hz
    if meters.source == "sysstat":
        return 1.0
    shortest = min(_work_s(cell, short=study.file.repetitions.within is not None) for cell in study.cells)
    return float(min(10, max(1, math.ceil(_READINGS / max(shortest, 0.001)))))


def _work_s(cell: Cell, *, short: bool) -> float:
    """Return the expected work time of a trial; if ``short``, the least that a pilot block can choose."""
    workload = registry.workloads()[cell.kind]
    length = workload.length(cell.options) if short else None
    asked_s = workload.expected_s(cell.options)
    return asked_s if length is None else min(asked_s, length.shortest_s)


def clock_range(least_s: float, most_s: float) -> str:
    """Return a range of durations such as "33 s to 2 min", or one duration if both are the same."""
    return " to ".join(dict.fromkeys((clock(least_s), clock(most_s))))


def clock(duration_s: float) -> str:
    """Return a duration such as "45 s", "7 min" or "2 h 5 min"."""
    rounded_s = round(duration_s)
    if rounded_s < 90:
        return f"{rounded_s} s"
    minutes = round(rounded_s / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
