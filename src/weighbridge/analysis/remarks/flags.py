"""Remarks about flagged trials, and the kinds of flags."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from weighbridge.analysis.remarks.rules import AboutEnvironment, ArmTrials, about_trials
from weighbridge.analysis.results import Remark
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import grouped
from weighbridge.model.flag import BOTTLENECKS, Flag, FlagCode, FlagKind


@dataclass(frozen=True, slots=True)
class FigureRange:
    """The smallest and largest value of one figure in several flags."""

    name: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class FlaggedTrials(AboutEnvironment):
    """The number of ``trials`` that have a flag of one kind."""

    code = "trial"
    flag: FlagKind
    count: int
    trials: int
    figures: tuple[FigureRange, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramErrors(FlaggedTrials):
    """The number of trials whose programs reported errors."""

    code = "errors"


@about_trials(40)
def _flagged_trials(arm: ArmTrials) -> Iterator[Remark]:
    yield from flagged_trials(arm.environment, arm.trials)


def flagged_trials(environment: str, trials: Sequence[TrialRow]) -> list[FlaggedTrials]:
    """Return each kind of flag in an environment's trials, the most frequent first."""
    by_kind = _flags_by_kind(trials)
    return [
        (ProgramErrors if kind.code == FlagCode.PROGRAM_ERRORS else FlaggedTrials)(
            environment, kind, count, len(trials), figure_ranges(by_kind[kind])
        )
        for kind, count in _trials_by_kind(trials).most_common()
    ]


NEARLY_ALL = 0.75
"""The share of environments from which a flag is reported once for all of them."""


def common_flags(trials: Sequence[TrialRow]) -> list[FlaggedTrials]:
    """Return the kinds of flags that affect nearly all environments, so that they are reported once."""
    arms = grouped(trials, lambda trial: trial.environment)
    concerned = Counter(kind for mine in arms.values() for kind in _trials_by_kind(mine))
    by_kind = _flags_by_kind(trials)
    return [
        FlaggedTrials("", kind, count, len(trials), figure_ranges(by_kind[kind]))
        for kind, count in _trials_by_kind(trials).items()
        if len(arms) > 1 and concerned[kind] >= NEARLY_ALL * len(arms) and kind.code != FlagCode.PROGRAM_ERRORS
    ]


def without_flags(remarks: Iterable[Remark], kinds: Collection[FlagKind]) -> list[Remark]:
    """Return the remarks that are not about these kinds of flags."""
    return [each for each in remarks if not (isinstance(each, FlaggedTrials) and each.flag in kinds)]


def kind_of(flag: Flag) -> FlagKind:
    """Return the kind of a flag, without its figures; flags of one kind are counted together."""
    return FlagKind(flag.code, flag.where, flag.text if flag.code == FlagCode.OTHER else "")


def figure_ranges(of: Iterable[Flag]) -> tuple[FigureRange, ...]:
    """Return the smallest and largest value of each figure in some flags."""
    values: dict[str, list[float]] = {}
    for flag in of:
        for name, value in flag.figures.items():
            values.setdefault(name, []).append(value)
    return tuple(FigureRange(name, min(mine), max(mine)) for name, mine in values.items())


def _trials_by_kind(trials: Sequence[TrialRow]) -> Counter[FlagKind]:
    """Return the number of trials with each kind of flag, without bottlenecks, which the verdicts cover."""
    by_trial = ([flag for flag in trial.flags if flag.code not in BOTTLENECKS] for trial in trials)
    return Counter(each for mine in by_trial for each in sorted({kind_of(flag) for flag in mine}))


def _flags_by_kind(trials: Sequence[TrialRow]) -> dict[FlagKind, list[Flag]]:
    return grouped((flag for trial in trials for flag in trial.flags), kind_of)
