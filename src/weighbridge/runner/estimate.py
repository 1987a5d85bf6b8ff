"""Estimates how long a study takes, and how much time is left."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from weighbridge import registry
from weighbridge.model.address import ArmId, CellId
from weighbridge.model.host import SPEEDS
from weighbridge.model.study import Arm, Cell, Study
from weighbridge.model.trial import Trial

_READINGS = 20
"""Readings in a trial of the expected length; a fast machine can finish in a quarter of that time."""

_RECENT = 50
"""The forecast uses this many recent trials of an environment."""


def seconds(study: Study) -> tuple[float, float]:
    """Return the expected duration of the fewest and of the most blocks, without set-up and repeated blocks."""
    least, longest = _range_s(study)
    limit_s = study.file.repetitions.limit_s or math.inf
    return min(least, limit_s), min(longest, limit_s)


def _range_s(study: Study) -> tuple[float, float]:
    """Return the expected duration of the fewest and of the most blocks, without the study's time limit."""
    repetitions, short = study.file.repetitions, study.file.repetitions.within is not None
    fewest, most = (repetitions.blocks or repetitions.min), (repetitions.blocks or repetitions.max)
    least = longest = 0.0
    first_s = sum(preparations_s(study).values())
    for cell in study.cells:
        for arm in study.arms_of(cell):
            expected, shortest = trial_s(study, arm, cell), _shortest_s(arm, cell) if short else math.inf
            least += min(expected, shortest)
            longest += expected
            first_s += expected if shortest < math.inf else 0.0  # the pilot's trial
    return first_s + fewest * least, first_s + most * longest


def too_little_time(study: Study) -> tuple[float, float] | None:
    """Return the time limit and the least time for the fewest blocks, in seconds; None if they fit."""
    limit_s = study.file.repetitions.limit_s
    needed_s = _range_s(study)[0]
    return (limit_s, needed_s) if limit_s is not None and limit_s < needed_s else None


def blocks_in_time(study: Study) -> int:
    """Return how many blocks of the written length fit in the study's time; without a time limit, `min`."""
    repetitions = study.file.repetitions
    block_s = sum(trial_s(study, arm, cell) for cell in study.cells for arm in study.arms_of(cell))
    if repetitions.limit_s is None or block_s <= 0:
        return repetitions.blocks or repetitions.min
    return min(repetitions.max, max(1, int(repetitions.limit_s / block_s)))


def _shortest_s(arm: Arm, cell: Cell) -> float:
    """Return the seconds of the shortest trial that a pilot can choose; infinite if it cannot choose."""
    workload = registry.workloads()[cell.kind]
    if (length := workload.length(cell.options)) is None:
        return math.inf
    return length.shortest_s + workload.beside_s(cell.options) + registry.environments()[arm.kind].fixed_s


def trial_s(study: Study, arm: Arm, cell: Cell) -> float:
    """Return the expected seconds of a trial of the length that the study says, without preparations."""
    return program_s(cell, study.options(arm, cell)) + cell.sites * registry.environments()[arm.kind].fixed_s


@dataclass(frozen=True, slots=True)
class Preparation:
    """Identifies the data of a workload in the sites of an environment. Levels with as many sites share the data."""

    environment: str
    workload: str
    sites: int


def preparations_s(study: Study) -> dict[Preparation, float]:
    """Return the expected seconds to prepare the data of each workload in each environment."""
    seconds: dict[Preparation, float] = {}
    for cell in study.cells:
        prepare_s = registry.workloads()[cell.kind].prepare_s
        for arm in study.arms_of(cell):
            key = Preparation(arm.name, cell.workload, cell.sites)
            seconds[key] = max(seconds.get(key, 0.0), cell.sites * prepare_s(study.options(arm, cell)))
    return seconds


def program_s(cell: Cell, options: Any) -> float:
    """Return the expected seconds of a trial's programs: of its warm-up, its server's start and its measured process.

    A disk with a limited speed serves the requests that are left when the time of every site is over.
    """
    workload = registry.workloads()[cell.kind]
    requests = cell.sites * workload.further_requests(options)
    slow_s = 0.0 if cell.disk_speed is None else requests / SPEEDS[cell.disk_speed].requests
    return workload.expected_s(options) + workload.beside_s(options) + slow_s


class TimeLeft:
    """Estimates the time for the remaining trials: from the plan at first, then from the trials so far."""

    def __init__(self, study: Study, known_s: Callable[[Cell], float | None] = lambda cell: None) -> None:
        """Start with ``known_s``, the seconds of a trial, if they are known beforehand."""
        self._planned_s = {
            ArmId(cell.id, arm.name): known_s(cell) or trial_s(study, arm, cell)
            for cell in study.cells
            for arm in study.arms_of(cell)
        }
        self._sites = {cell.id: cell.sites for cell in study.cells}
        self._own_s: dict[ArmId, list[float]] = {}
        self._seen_s: dict[CellId, list[float]] = {}
        self._succeeded_s: dict[CellId, list[float]] = {}
        self._due_s = preparations_s(study)
        """The expected seconds of the preparations that no trial has made yet."""
        self._prepared_s: dict[tuple[str, int], list[float]] = {}
        """The seconds of preparations so far, by workload and number of sites."""

    def _preparation(self, arm: ArmId) -> Preparation:
        return Preparation(arm.environment, arm.cell.workload, self._sites[arm.cell])

    def prepared(self, cells: Iterable[Cell]) -> None:
        """Note that the pilot round has prepared the data of these cells."""
        workloads = {(cell.workload, cell.sites) for cell in cells}
        self._due_s = {key: due for key, due in self._due_s.items() if (key.workload, key.sites) not in workloads}

    def note(
        self,
        trial: Trial,
        seconds: float,
        *,
        preparation_s: float = 0.0,
        succeeded: bool = True,
        earlier: bool = False,
    ) -> None:
        """Note how long a trial took, with the pause before it, but without the opening of sites.

        ``preparation_s`` of ``seconds`` prepared its sites for all further trials, unless an ``earlier`` session
        closed them.
        """
        own_s, preparation = seconds - preparation_s, self._preparation(trial.arm)
        self._own_s.setdefault(trial.arm, []).append(own_s)
        self._seen_s.setdefault(trial.cell, []).append(own_s)
        if preparation_s if earlier else self._due_s.pop(preparation, None) is not None:
            self._prepared_s.setdefault((preparation.workload, preparation.sites), []).append(preparation_s)
        if succeeded:
            self._succeeded_s.setdefault(trial.cell, []).append(own_s)

    def left_s(self, remaining: Mapping[ArmId, int]) -> float:
        """Return the seconds for the ``remaining`` trials and their preparations.

        Use the mean of the last `_RECENT` trials because some of the remaining trials will be slow, and because the
        load of a machine changes. The first trial has cold caches, so it only counts if it is the only one.
        Without any trial in an environment, use the trials of the same workload in other environments. Without any
        trial of a workload, use the plan, multiplied by how much longer the other trials took than planned.
        """
        left = {arm: count for arm, count in remaining.items() if count}
        due = {self._preparation(arm) for arm in left} & self._due_s.keys() if self._due_s else ()
        return sum(count * self._trial_s(arm) for arm, count in left.items()) + sum(map(self._preparation_s, due))

    def first_s(self, cells: Iterable[CellId]) -> float | None:
        """Return the total seconds of one trial of each cell; None until each has succeeded once."""
        seen = [self._succeeded_s.get(each) for each in cells]
        return sum(fmean(each) for each in seen if each) if all(seen) else None

    def _trial_s(self, arm: ArmId) -> float:
        own_s = self._own_s.get(arm, [])
        known_s = own_s[1:] or own_s or self._seen_s.get(arm.cell, [])
        return fmean(known_s[-_RECENT:]) if known_s else self._planned_s[arm] * self._pace

    def _preparation_s(self, due: Preparation) -> float:
        """Return the seconds of a preparation: as in other environments, or as planned."""
        seen_s = self._prepared_s.get((due.workload, due.sites))
        return fmean(seen_s) if seen_s else self._due_s[due]

    @property
    def _pace(self) -> float:
        """Return how much longer trials took than planned, after an imaginary round that took the planned time."""
        round_s = sum(self._planned_s.values())
        taken_s = sum(sum(each) for each in self._own_s.values())
        planned_s = sum(len(each) * self._planned_s[arm] for arm, each in self._own_s.items())
        return (round_s + taken_s) / (round_s + planned_s) if round_s else 1.0


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
