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
"""Identical failures without a success between them after which no further trial is made."""
_FIGURES = re.compile(r"((?:code|signal|status|error|errno) \d+)|\d+", re.IGNORECASE)
"""Those that name a failure, and all others."""
RESULTS = (Outcome.OK, Outcome.BROKE)
"""The outcomes after which a trial is not made again."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a trial ended; alike are those whose messages differ in figures alone."""

    outcome: Outcome
    message: str = field(compare=False)
    words: str

    @classmethod
    def of(cls, outcome: Outcome, message: str) -> "Ending":
        """Return it without the figures of its message: a time, a process, a line that could not be read."""
        return cls(outcome, message, _FIGURES.sub(lambda found: found[1] or "0", message))


@dataclass(frozen=True, slots=True)
class Repeated:
    """How something failed every time."""

    outcome: Outcome
    message: str
    times: int


@dataclass(slots=True)
class RepeatedFailures:
    """What became of the trials of each workload, level and environment, and which of these are given up."""

    study: Study
    _endings: dict[CellId, dict[str, Counter[Ending]]] = field(default_factory=dict)
    _attempts: dict[CellId, set[tuple[int, int]]] = field(default_factory=dict)

    def note(self, trial: Trial, outcome: Outcome, message: str) -> None:
        """Note how a trial ended. A lost environment says nothing of what it was to measure."""
        if outcome is not Outcome.ENVIRONMENT_LOST:
            by_environment = self._endings.setdefault(trial.cell, {})
            by_environment.setdefault(trial.environment, Counter())[Ending.of(outcome, message)] += 1
            self._attempts.setdefault(trial.cell, set()).add((trial.block, trial.attempt))

    def given_up(self, cell: CellId) -> Mapping[str, Repeated]:
        """The environments in which a workload is not tried again at a level.

        It is all of them where every one failed alike, in more than one block (what disturbs the machine for a minute
        fails them alike, too), where the baseline is among them, and where nothing is left to compare with it.
        """
        by_environment = self._endings.get(cell, {})
        repeats = {name: repeated for name, endings in by_environment.items() if (repeated := _repeated(endings))}
        arms = {arm.name: arm.aa_of for arm in self.study.arms}
        compared = [arm.name for arm in self.study.arms if arm.own and arm.name != self.study.file.baseline]
        again = len(self._attempts.get(cell, ())) > 1
        alike = _repeated(sum(by_environment.values(), Counter())) if again else None
        of_all = alike or repeats.get(self.study.file.baseline)
        if of_all is None and compared and all(name in repeats for name in compared):
            of_all = repeats[compared[0]]
        return dict.fromkeys(arms, of_all) | repeats if of_all is not None else repeats


def _repeated(endings: Counter[Ending]) -> Repeated | None:
    if len(endings) != 1 or endings.total() < ENOUGH:
        return None
    (ending,) = endings
    return None if ending.outcome in RESULTS else Repeated(ending.outcome, ending.message, endings.total())


def require_results(study: Study, failures: RepeatedFailures, has_result: Callable[[Cell], bool]) -> None:
    """Raise TrialsFailed where a workload at a level was given up, or has no complete block (``has_result``)."""
    failed_labels: dict[str, list[str]] = {}
    hopeless = []
    for cell in study.cells:
        given_up = failures.given_up(cell.id)
        if given_up:
            same, where = next(iter(given_up.values())), ", ".join(given_up)
            failure = f"failed {same.times} times in the same way in {where} ({same.outcome}: {same.message})"
            failed_labels.setdefault(failure, []).append(cell.label)
        elif not has_result(cell):
            hopeless.append(cell.label)
    sentences = [f"{', '.join(labels)} {failure} and was given up" for failure, labels in failed_labels.items()]
    if hopeless:
        sentences.append(f"no round of {', '.join(hopeless)} could be completed")
    if sentences:
        raise TrialsFailed(f"{'; '.join(sentences)}. The report lists each failed trial with its reason")


@dataclass(slots=True)
class Recorder:
    """Saves each trial when it ends, and knows every outcome of the run, also of its earlier sessions."""

    study: Study
    store: RunStore
    completed: Callable[[TrialRecord], TrialRecord]
    """Adds the values of a monitoring server to a record before it is saved."""
    finished: dict[Trial, Outcome] = field(init=False)
    failures: RepeatedFailures = field(init=False)

    def __post_init__(self) -> None:
        self.finished = self.store.finished()
        self.failures = RepeatedFailures(self.study)
        for trial, (outcome, message) in self.store.endings().items():
            self.failures.note(trial, outcome, message)

    def keep(self, record: TrialRecord) -> TrialRecord:
        """Save a trial, and return its completed record."""
        with shield():
            record = self.completed(record)
            self.store.save(record)
            self.finished[record.trial] = record.outcome
        return record

    def gives_up(self, record: TrialRecord) -> bool:
        """Note how a trial ended. Return whether its workload is now abandoned in one more environment."""
        trial = record.trial
        before = len(self.failures.given_up(trial.cell))
        self.failures.note(trial, record.outcome, record.message)
        return len(self.failures.given_up(trial.cell)) > before

    def has_given_up(self, trial: Trial) -> bool:
        """Return whether a trial is not made because others like it always failed."""
        return trial.environment in self.failures.given_up(trial.cell)
