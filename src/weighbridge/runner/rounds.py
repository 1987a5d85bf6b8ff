"""The rounds of a run: the trials of each, and the rounds that are repeated because a trial failed."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from weighbridge.model.address import ArmId, CellId
from weighbridge.model.study import Cell, Study
from weighbridge.model.trial import Trial
from weighbridge.runner.lengths import PILOT
from weighbridge.runner.precision import BlockSchedules, Precision
from weighbridge.runner.recorder import RESULTS, Recorder
from weighbridge.study import schedule

REPEATS = 2
"""How often a round with a failed trial is repeated, before the precision is computed."""


@dataclass(slots=True)
class RoundWalk:
    """Decides which trials come next. The comparisons that are still open decide what a round measures."""

    study: Study
    recorder: Recorder
    precision: Precision
    block_schedules: BlockSchedules
    blocks: int = 0
    _arms: dict[int, dict[CellId, list[str]]] = field(default_factory=dict)
    """The environments that each planned round measures, by cell."""
    _ahead: Counter[ArmId] = field(default_factory=Counter)
    """The unfinished trials of the planned rounds after the current one, by arm."""

    def restart(self, precision: Precision) -> None:
        """Begin with the first round again: finished trials are not repeated."""
        self.precision, self.blocks, self._arms, self._ahead = precision, 0, {}, Counter()

    def arms(self, cell: Cell) -> list[str]:
        """Return the environments that the next round measures for a cell."""
        abandoned = self.recorder.abandoned(cell.id)
        return [arm for arm in self.precision.arms_of(cell) if arm not in abandoned]

    @property
    def is_open(self) -> bool:
        """Whether the next round has a trial."""
        return any(self.arms(cell) for cell in self.study.cells)

    def plan_until(self, look: int) -> None:
        """Plan the rounds up to an interim look."""
        for number in range(self.blocks + 1, look + 1):
            included = [cell for cell in self.study.cells if self.block_schedules.includes(cell, number)]
            self._arms[number] = {cell.id: self.arms(cell) for cell in included}
            self._ahead += self._unfinished(number)

    def next_round(self) -> list[Trial]:
        """Begin the next round, and return its trials."""
        self.blocks += 1
        self._ahead -= self._unfinished(self.blocks)
        return self._trials(self.blocks)

    def pilot(self, cells: Iterable[Cell]) -> Iterator[list[Trial]]:
        """Yield the trials of an uncounted round of these cells; it is planned until it is over."""
        self._arms[PILOT] = {cell.id: self.arms(cell) for cell in cells}
        yield self._trials(PILOT)
        del self._arms[PILOT]

    def repeats(self) -> Iterator[tuple[int, str, list[Trial]]]:
        """Yield the rounds with a failed trial: their number, the labels of their failed cells, and all trials."""
        for attempt in range(1, REPEATS + 1):
            for number in [each for each in self._arms if each <= self.blocks]:
                if failed := [cell for cell in self.study.cells if not self.is_complete(cell, number)]:
                    yield number, ", ".join(cell.label for cell in failed), self._trials(number, attempt, failed)

    def is_complete(self, cell: Cell, number: int) -> bool:
        """Return whether an attempt of a round has a result of every environment that is not abandoned."""
        abandoned, finished = self.recorder.abandoned(cell.id), self.recorder.finished
        arms = [arm for arm in self._arms[number].get(cell.id, ()) if arm not in abandoned]
        return any(
            all(finished.get(Trial(number, attempt, cell.workload, cell.level, arm)) in RESULTS for arm in arms)
            for attempt in range(REPEATS + 1)
        )

    def has_result(self, cell: Cell) -> bool:
        """Return whether a round of a cell is complete."""
        return any(arms.get(cell.id) and self.is_complete(cell, number) for number, arms in self._arms.items())

    @property
    def last_planned(self) -> int:
        """The number of the last planned round."""
        return max(self._arms)

    @property
    def total(self) -> int:
        """The number of planned trials, up to the next interim look."""
        return sum(len(arms) for cells in self._arms.values() for arms in cells.values())

    def one_round(self, cells: Iterable[Cell] | None = None) -> Counter[ArmId]:
        """Return the trials of the next round, or of these cells in it, by workload, level and environment."""
        every = self.study.cells if cells is None else cells
        return Counter(ArmId(cell.id, arm) for cell in every for arm in self.arms(cell))

    def remaining(self, now: Iterable[Trial]) -> Counter[ArmId]:
        """Return the trials up to the next look by arm: planned ones, and repetitions that run ``now``."""
        planned = self._ahead + self._unfinished(self.blocks)
        counts = {each: count for each, count in planned.items() if not self._is_abandoned(each)}
        return Counter(trial.arm for trial in now if trial.attempt) + Counter(counts)

    def _is_abandoned(self, arm: ArmId) -> bool:
        return arm.environment in self.recorder.abandoned(arm.cell)

    def _unfinished(self, number: int) -> Counter[ArmId]:
        """Return the trials of a planned round that have not ended, by arm."""
        finished = self.recorder.finished
        return Counter(
            ArmId(cell, arm)
            for cell, arms in self._arms[number].items()
            for arm in arms
            if Trial(number, 0, cell.workload, cell.level, arm) not in finished
        )

    def _trials(self, number: int, attempt: int = 0, cells: Iterable[Cell] | None = None) -> list[Trial]:
        planned = self._arms[number]
        trials = schedule.block(self.study, number, attempt=attempt, cells=cells)
        return [trial for trial in trials if trial.environment in planned.get(trial.cell, ())]
