"""How the time that is left is shared among the workloads of a run, decided at each look and kept with the run."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from weighbridge.model.decisions import Allotment, allotments_text
from weighbridge.model.study import Cell, Study
from weighbridge.runner.estimate import TimeLeft
from weighbridge.runner.precision import Standing
from weighbridge.statistics import Contender, allotted, shared
from weighbridge.store.reader import ALLOTMENTS
from weighbridge.store.run import RunStore


@dataclass(slots=True)
class Allotments:
    """In how many of the blocks up to the next look each workload takes part. A continued run has the same schedule.

    It is decided on widths and times alone (`weighbridge.statistics.allotted`).
    """

    study: Study
    store: RunStore
    _made: tuple[Allotment, ...] = ()

    def __post_init__(self) -> None:
        self._made = self.store.allotments()

    def includes(self, cell: Cell, block: int) -> bool:
        """Whether a workload at a level is in a block, as far as its share of the time goes."""
        mine = (each for each in self._made if (each.workload, each.level) == (cell.workload, cell.level))
        return all(each.includes(block) for each in mine if each.after < block <= each.until)

    def decide(
        self,
        looks: tuple[int, int],
        standings: Sequence[Standing],
        arms: Callable[[Cell], Collection[str]],
        time: TimeLeft,
        left_s: float,
    ) -> list[Standing]:
        """Share the time between two looks among the workloads of which ``arms`` are still measured.

        What was decided before stays. Gives the standings, with what to expect when the time is over.
        """
        open_: list[tuple[Cell, list[Standing]]] = []
        for cell in self.study.cells:
            mine = [each for each in standings if each.cell == cell.label and each.environment in arms(cell)]
            open_ += [(cell, wide)] if (wide := [each for each in mine if not each.reached]) else []
        contenders = [self._contender(cell, wide, time) for cell, wide in open_]
        further = allotted(contenders, left_s, self.study.file.repetitions.max)
        after, until = looks
        if not any(each.after == after for each in self._made):
            parts = shared(further, contenders, until - after)
            rows = (
                Allotment(after=after, until=until, workload=cell.workload, level=cell.level, blocks=blocks)
                for (cell, _), blocks in zip(open_, parts, strict=True)
            )
            self._made = (*self._made, *rows)
            self.store.set_info(ALLOTMENTS, allotments_text(self._made))
        expected = {
            (cell.label, each.environment): each.after(contender.blocks + more)
            for (cell, wide), contender, more in zip(open_, contenders, further, strict=True)
            for each in wide
        }
        return [replace(each, expected=expected.get((each.cell, each.environment))) for each in standings]

    def _contender(self, cell: Cell, standings: Sequence[Standing], time: TimeLeft) -> Contender:
        def trial_s(name: str) -> float:
            return time.left_s(Counter({(cell.workload, cell.level, name): 1}))

        compared = [each.environment for each in standings]
        others = [arm.name for arm in self.study.arms_of(cell) if arm.name == self.study.file.baseline or arm.aa_of]
        return Contender(
            blocks=max(each.blocks for each in standings),
            needed=tuple(math.inf if each.predicted_blocks is None else each.predicted_blocks for each in standings),
            trial_s=tuple(trial_s(name) for name in compared),
            base_s=sum(trial_s(name) for name in others if name not in compared),
        )
