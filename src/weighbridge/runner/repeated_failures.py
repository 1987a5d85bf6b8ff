"""Failures that must repeat: a missing program or an output that nobody can read fails the same way every time."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from weighbridge.errors import TrialsFailed
from weighbridge.model.level import Level
from weighbridge.model.measurement import Outcome
from weighbridge.model.study import Cell, Study
from weighbridge.model.trial import Trial

ENOUGH = 3
"""Identical failures without a success between them after which no further trial is made."""
RESULTS = (Outcome.OK, Outcome.BROKE)
"""The outcomes after which a trial is not made again."""


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
    _seen: dict[tuple[str, Level], dict[str, Counter[tuple[Outcome, str]]]] = field(default_factory=dict)
    _attempts: dict[tuple[str, Level], set[tuple[int, int]]] = field(default_factory=dict)

    def note(self, trial: Trial, outcome: Outcome, message: str) -> None:
        """Note how a trial ended. A lost environment says nothing of what it was to measure."""
        if outcome is not Outcome.ENVIRONMENT_LOST:
            here = self._seen.setdefault((trial.workload, trial.level), {})
            here.setdefault(trial.environment, Counter())[outcome, message] += 1
            self._attempts.setdefault((trial.workload, trial.level), set()).add((trial.block, trial.attempt))

    def given_up(self, workload: str, level: Level) -> Mapping[str, Repeated]:
        """The environments in which a workload is not tried again at a level.

        It is all of them where every one failed alike, in more than one block (what disturbs the machine for a minute
        fails them alike, too), where the baseline is among them, and where nothing is left to compare with it.
        """
        here = self._seen.get((workload, level), {})
        found = {name: repeated for name, seen in here.items() if (repeated := _repeated(seen))}
        arms = {arm.name: arm.aa_of for arm in self.study.arms}
        compared = [name for name, aa_of in arms.items() if name != self.study.file.baseline and aa_of is None]
        again = len(self._attempts.get((workload, level), ())) > 1
        alike = _repeated(sum(here.values(), Counter())) if again else None
        whole = alike or found.get(self.study.file.baseline)
        if whole is None and compared and all(name in found for name in compared):
            whole = found[compared[0]]
        return dict.fromkeys(arms, whole) | found if whole is not None else found


def _repeated(seen: Counter[tuple[Outcome, str]]) -> Repeated | None:
    if len(seen) != 1 or seen.total() < ENOUGH:
        return None
    ((outcome, message),) = seen
    return None if outcome in RESULTS else Repeated(outcome, message, seen.total())


def require_results(study: Study, failures: RepeatedFailures, has_result: Callable[[Cell], bool]) -> None:
    """Raise TrialsFailed where a workload at a level was given up, or has no complete block (``has_result``)."""
    told: dict[str, list[str]] = {}
    hopeless = []
    for cell in study.cells:
        given_up = failures.given_up(cell.workload, cell.level)
        if given_up:
            same, where = next(iter(given_up.values())), ", ".join(given_up)
            how = f"in {where} failed {same.times} times in the same way ({same.outcome}: {same.message})"
            told.setdefault(how, []).append(cell.label)
        elif not has_result(cell):
            hopeless.append(cell.label)
    sentences = [f"{', '.join(labels)} {how} and was not tried again" for how, labels in told.items()]
    if hopeless:
        sentences.append(f"no block of {', '.join(hopeless)} could be completed")
    if sentences:
        raise TrialsFailed(f"{'; '.join(sentences)}: the report lists each failed trial and why")
