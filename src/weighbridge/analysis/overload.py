"""Trials that broke under their load: how many, why, and what that means where a block is run again."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import ArmId, grouped
from weighbridge.store.run import Value


@dataclass(frozen=True, slots=True)
class Breakage:
    """How many trials of one environment at one level broke under its load, of those that had a result, and why."""

    environment: str
    trials: int
    total: int
    reason: str
    """What the trials said, one sentence; the most frequent where they said several things."""
    lost: int
    """Blocks that have no value because of it."""
    measured: int
    """Blocks that have one all the same."""

    @property
    def always(self) -> bool:
        """Whether no trial gave a value."""
        return self.trials == self.total


def breakages(trials: Iterable[TrialRow]) -> dict[ArmId, Breakage]:
    """Return the breakages by arm, without arms that have none."""
    arms = grouped((trial for trial in trials if trial.ok or trial.broke), lambda trial: trial.arm)
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
    """Return a message without its figures, so that two which differ only in them are equal."""
    return re.sub(r"[\d\s.,]+", " ", text)


def without_retries(trials: Iterable[TrialRow]) -> list[TrialRow]:
    """Give the trials without the repetitions of those that broke: a break is a result, which is not tried away.

    A block is run again where another environment failed in it; what broke in it before stays its result.
    """
    trials = list(trials)
    first: dict[tuple[ArmId, int], int] = {}
    for trial in trials:
        if trial.broke:
            key = _in_block(trial)
            first[key] = min(trial.attempt, first.get(key, trial.attempt))
    return [trial for trial in trials if trial.attempt <= first.get(_in_block(trial), trial.attempt)]


def _in_block(trial: TrialRow) -> tuple[ArmId, int]:
    return trial.arm, trial.block


def standing_values(values: Iterable[Value], trials: Iterable[TrialRow]) -> list[Value]:
    """Give the values of the trials that `without_retries` gives."""
    standing = {trial.id for trial in without_retries(trials)}
    return [value for value in values if value.trial_id in standing]
