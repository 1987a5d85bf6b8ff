"""Trials that broke under their load: their number, the reason, and the consequence for repeated blocks."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import ArmId, grouped, grouped_by_arm
from weighbridge.store.run import Value


@dataclass(frozen=True, slots=True)
class Breakage:
    """The number of trials of one arm that broke under load, out of those with a result, and the reason."""

    environment: str
    trials: int
    total: int
    reason: str
    """The most frequent message of the broken trials, one sentence."""
    lost: int
    """The number of blocks without a value because of it."""
    measured: int
    """The number of blocks that still have a value."""

    @property
    def always(self) -> bool:
        """Whether no trial gave a value."""
        return self.trials == self.total


def breakages(trials: Sequence[TrialRow]) -> dict[ArmId, Breakage]:
    """Return the breakages by arm, without arms that have none."""
    if not any(trial.broke for trial in trials):
        return {}
    arms = grouped_by_arm(trial for trial in trials if trial.ok or trial.broke)
    return {arm: broke for arm, with_result in arms.items() if (broke := _broke(with_result)) is not None}


def _broke(trials: Sequence[TrialRow]) -> Breakage | None:
    broken = [trial for trial in trials if trial.broke]
    if not broken:
        return None
    measured = {trial.block for trial in without_retries(trials) if trial.ok}
    lost = {trial.block for trial in broken} - measured
    return Breakage(broken[0].environment, len(broken), len(trials), reason(broken), len(lost), len(measured))


def reason(trials: Iterable[TrialRow]) -> str:
    """Return the most frequent message of trials that broke; messages that differ only in figures are one."""
    kinds = grouped((trial.message for trial in trials), without_figures)
    messages = max(kinds.values(), key=len, default=[""])
    return Counter(messages).most_common(1)[0][0].rstrip(". ")


def without_figures(text: str) -> str:
    """Return a message without its figures, so that messages that differ only in them are equal."""
    return re.sub(r"[\d\s.,]+", " ", text)


def without_retries(trials: Iterable[TrialRow]) -> list[TrialRow]:
    """Return the trials without repetitions of trials that broke, because breaking is a result.

    A block is repeated if another environment failed in it; trials that broke in it before keep their result.
    """
    trials = list(trials)
    first: dict[tuple[ArmId, int], int] = {}
    for trial in trials:
        if trial.broke:
            key = _in_block(trial)
            first[key] = min(trial.attempt, first.get(key, trial.attempt))
    if not first:
        return trials
    return [trial for trial in trials if trial.attempt <= first.get(_in_block(trial), trial.attempt)]


def _in_block(trial: TrialRow) -> tuple[ArmId, int]:
    return trial.arm, trial.block


def standing_values(values: Iterable[Value], trials: Iterable[TrialRow]) -> list[Value]:
    """Return the values of the trials that `without_retries` returns."""
    standing = {trial.id for trial in without_retries(trials)}
    return [value for value in values if value.trial_id in standing]
