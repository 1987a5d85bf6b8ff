"""How long a study takes, and how much of that is left."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import mean
from typing import Literal

from weighbridge import registry
from weighbridge.model.address import ArmId, CellId
from weighbridge.model.study import Arm, Cell, Study
from weighbridge.model.trial import Trial

_SITE_S = (0.1, 2.0)
_READINGS = 20
"""Readings in a trial of the expected length: a quick machine may need a quarter of that time."""

_RECENT = 50
"""Trials of an environment by which the next ones are forecast."""


def seconds(study: Study) -> tuple[float, float]:
    """Seconds (from, to) that the trials of a study take, without building the userland or repeating blocks."""
    least, longest = _range_s(study)
    limit_s = study.file.repetitions.limit_s or math.inf
    return min(least, limit_s), min(longest, limit_s)


def _range_s(study: Study) -> tuple[float, float]:
    """As `seconds`, of all blocks whatever the time that is given."""
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
    """Seconds that a study may take, and that its fewest blocks take at least; None: they fit."""
    limit_s = study.file.repetitions.limit_s
    needed_s = _range_s(study)[0]
    return (limit_s, needed_s) if limit_s is not None and limit_s < needed_s else None


def blocks_in_time(study: Study) -> int:
    """How many blocks the time of a study holds at least, of trials as they are written; without one, `min`."""
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
    """How long the trials that are left take: the plan's figure until a workload has run, then what was seen."""

    def __init__(self, study: Study, trial_s: Callable[[Cell], float | None] = lambda cell: None) -> None:
        """``trial_s``: the seconds of a trial, where they are known beforehand."""
        self._seen_s: dict[CellId, list[float]] = {}
        self._succeeded_s: dict[CellId, list[float]] = {}
        self._durations_s: dict[ArmId, list[float]] = {
            ArmId(cell.id, arm.name): [trial_s(cell) or mean(_trial_s(arm, cell))]
            for arm in study.arms
            for cell in study.cells
        }

    def note(self, trial: Trial, seconds: float, *, succeeded: bool = True) -> None:
        """Note how long a trial took with the pause before it, but without the opening of sites before the first."""
        self._durations_s[trial.arm].append(seconds)
        self._seen_s.setdefault(trial.cell, []).append(seconds)
        if succeeded:
            self._succeeded_s.setdefault(trial.cell, []).append(seconds)

    def left_s(self, remaining: Mapping[ArmId, int]) -> float:
        """Seconds that so many trials of each take: of each the mean, as those that are left have slow ones too.

        That of the last `_RECENT`, as a machine becomes busy and idle. The first of all counts only where there
        is no other: it may have made what all need. An environment in which a workload has not run takes as long as
        the others in which it has.
        """
        return sum(count * self._trial_s(each) for each, count in remaining.items())

    def first_s(self, cells: Iterable[CellId]) -> float | None:
        """Seconds of a trial of these workloads and levels together; None while one of them has not succeeded."""
        seen = [self._succeeded_s.get(each) for each in cells]
        return sum(mean(each) for each in seen if each) if all(seen) else None

    def _trial_s(self, arm: ArmId) -> float:
        own_s, seen_s = self._durations_s[arm], self._seen_s.get(arm.cell)
        return mean((own_s[2:] or own_s[1:] or seen_s or own_s)[-_RECENT:])


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a run ends, as far as that is known now: whatever is said of its time is said by this.

    Seconds are from now on, blocks are those of the whole run.
    """

    first_s: float
    """Until the next look at the precision, which may end the run: no verdict comes sooner. 0 while unknown."""
    first_blocks: int
    last_s: float
    """Until it ends, whatever the precision is; infinite while unknown."""
    last_blocks: int
    """About how many it has then."""
    ends_by: Literal["blocks", "limit", "block"]
    """What ends it at last: its last planned block, its time limit, or the block that runs at that limit."""

    @property
    def at_most(self) -> bool:
        """Whether it may end before `last_s`."""
        return self.first_s < self.last_s


def forecast(
    blocks: int, looks: Iterable[tuple[int, float]], limit_s: float, block_s: float, rest_s: float
) -> Forecast:
    """Return when a run of ``blocks`` blocks, the current one included, ends.

    ``looks`` are the looks that are ahead, as blocks of the run and seconds until then; ``limit_s`` is what is left
    of its time, ``rest_s`` what is left of the current block, ``block_s`` how long the next ones take. A block that
    runs when the time is over is completed. What is not known is infinite.
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
    """Readings a second of the study's meters: as it says, or enough for its shortest trial, from 1 to 10.

    sysstat reads once a second at most.
    """
    meters = study.file.meters
    if meters.hz != "auto":
        return meters.hz
    if meters.source == "sysstat":
        return 1.0
    shortest = min(_work_s(cell, short=study.file.repetitions.within is not None) for cell in study.cells)
    return float(min(10, max(1, math.ceil(_READINGS / max(shortest, 0.001)))))


def _work_s(cell: Cell, *, short: bool) -> float:
    """The seconds that a trial is expected to work, at the least where a pilot block is to choose that."""
    workload = registry.workloads()[cell.kind]
    length = workload.length(cell.options) if short else None
    asked_s = workload.expected_s(cell.options)
    return asked_s if length is None else min(asked_s, length.shortest_s)


def clock_range(least_s: float, most_s: float) -> str:
    """A duration from-to as people say it: 33 s to 2 min; once where both are the same."""
    return " to ".join(dict.fromkeys((clock(least_s), clock(most_s))))


def clock(duration_s: float) -> str:
    """A duration as people say it: 45 s, 7 min, 2 h 5 min."""
    rounded_s = round(duration_s)
    if rounded_s < 90:
        return f"{rounded_s} s"
    minutes = round(rounded_s / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
