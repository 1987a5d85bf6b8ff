"""The outcomes of trials: each is saved when its trial ends, and trials that always fail alike are abandoned."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from weighbridge.errors import TrialsFailed
from weighbridge.model.address import CellId
from weighbridge.model.measurement import Outcome
from weighbridge.model.study import Cell, Study
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.runner.signals import shield
from weighbridge.store.run import RunStore

ENOUGH = 3
"""The number of identical failures, without a success between them, after which no further trial is made."""
_FIGURES = re.compile(r"((?:code|signal|status|error|errno) \d+)|\d+", re.IGNORECASE)
RESULTS = (Outcome.OK, Outcome.BROKE)
"""The outcomes after which a trial is not repeated."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a trial ended. Endings are equal if their messages differ only in figures, such as times."""

    outcome: Outcome
    message: str = field(compare=False)
    words: str

    @classmethod
    def of(cls, outcome: Outcome, message: str) -> "Ending":
        """Return an ending with ``words``: the message without its figures."""
        return cls(outcome, message, _FIGURES.sub(lambda found: found[1] or "0", message))


@dataclass(slots=True)
class Recorder:
    """Saves each trial when it ends, and knows every outcome of the run, also of its earlier sessions."""

    study: Study
    store: RunStore
    completed: Callable[[TrialRecord], TrialRecord]
    """Adds the values of a monitoring server to a record before it is saved."""
    finished: dict[Trial, Outcome] = field(init=False)
    _endings: dict[CellId, dict[str, Counter[Ending]]] = field(default_factory=dict)
    _attempts: dict[CellId, set[tuple[int, int]]] = field(default_factory=dict)
    _abandoned: dict[CellId, Mapping[str, tuple[int, Ending]]] = field(default_factory=dict)
    """The results of `abandoned`, until the next ending of the cell."""

    def __post_init__(self) -> None:
        self.finished = self.store.finished()
        for trial, (outcome, message) in self.store.endings().items():
            self._note(trial, outcome, message)

    def save(self, record: TrialRecord) -> TrialRecord:
        """Save a trial, and return its completed record."""
        with shield():
            record = self.completed(record)
            self.store.save(record)
            self.finished[record.trial] = record.outcome
        return record

    def gives_up(self, record: TrialRecord) -> bool:
        """Note how a trial ended. Return whether its cell is now abandoned in one more environment."""
        before = len(self.abandoned(record.trial.cell))
        self._note(record.trial, record.outcome, record.message)
        return len(self.abandoned(record.trial.cell)) > before

    def _note(self, trial: Trial, outcome: Outcome, message: str) -> None:
        """Note an ending. A lost environment says nothing about the workload."""
        if outcome is not Outcome.ENVIRONMENT_LOST:
            by_environment = self._endings.setdefault(trial.cell, {})
            by_environment.setdefault(trial.environment, Counter())[Ending.of(outcome, message)] += 1
            self._attempts.setdefault(trial.cell, set()).add((trial.block, trial.attempt))
            self._abandoned.pop(trial.cell, None)

    def abandoned(self, cell: CellId) -> Mapping[str, tuple[int, Ending]]:
        """Return the number and the ending of a cell's failures, by abandoned environment.

        It is abandoned in all environments if it fails in the baseline, or in all others. It is also abandoned if all
        trials of more than one round failed alike; a busy minute can make one round fail.
        """
        if cell not in self._abandoned:
            self._abandoned[cell] = self._find_abandoned(cell)
        return self._abandoned[cell]

    def _find_abandoned(self, cell: CellId) -> Mapping[str, tuple[int, Ending]]:
        by_environment = self._endings.get(cell, {})
        repeats = {name: failure for name, endings in by_environment.items() if (failure := _repeated(endings))}
        compared = [arm.name for arm in self.study.arms if arm.declared and arm.name != self.study.file.baseline]
        again = len(self._attempts.get(cell, ())) > 1
        alike = _repeated(sum(by_environment.values(), Counter())) if again else None
        of_all = alike or repeats.get(self.study.file.baseline)
        if of_all is None and compared and all(name in repeats for name in compared):
            of_all = repeats[compared[0]]
        return dict.fromkeys((arm.name for arm in self.study.arms), of_all) | repeats if of_all else repeats

    def require_results(self, has_result: Callable[[Cell], bool]) -> None:
        """Raise TrialsFailed if a cell was abandoned, or has no complete round (``has_result``)."""
        failed_labels: dict[str, list[str]] = {}
        hopeless = []
        for cell in self.study.cells:
            if abandoned := self.abandoned(cell.id):
                times, ending = next(iter(abandoned.values()))
                how = f"{ending.outcome}: {ending.message}"
                failure = f"failed {times} times in the same way in {', '.join(abandoned)} ({how})"
                failed_labels.setdefault(failure, []).append(cell.label)
            elif not has_result(cell):
                hopeless.append(cell.label)
        sentences = [f"{', '.join(labels)} {failure} and was given up" for failure, labels in failed_labels.items()]
        if hopeless:
            sentences.append(f"no round of {', '.join(hopeless)} could be completed")
        if sentences:
            raise TrialsFailed(f"{'; '.join(sentences)}. The report lists each failed trial with its reason")


def _repeated(endings: Counter[Ending]) -> tuple[int, Ending] | None:
    """Return how often the same failure happened; None if there were others, or not enough."""
    if len(endings) != 1 or endings.total() < ENOUGH:
        return None
    (ending,) = endings
    return None if ending.outcome in RESULTS else (endings.total(), ending)
