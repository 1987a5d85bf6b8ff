"""How many trials were flagged with what, by environment, and of the run where it is about nearly all of them."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from weighbridge.analysis.remarks import FigureRange, FlaggedTrials, ProgramErrors, Remark
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.flag import BOTTLENECKS, Flag, FlagCode, FlagKind

NEARLY_ALL = 0.75
"""Share of the environments from which a flag is said once for all of them."""


def kind_of(flag: Flag) -> FlagKind:
    """What a flag is about, without its figures: flags of one kind are counted together."""
    return FlagKind(flag.code, flag.where, flag.text if flag.code == FlagCode.OTHER else "")


def flagged_trials(environment: str, trials: Sequence[TrialRow]) -> list[FlaggedTrials]:
    """Give each kind of flag that an environment's trials have, the most frequent first."""
    flags = _flags_by_kind(trials)
    return [
        (ProgramErrors if kind.code == FlagCode.PROGRAM_ERRORS else FlaggedTrials)(
            environment, kind, count, len(trials), figure_ranges(flags[kind])
        )
        for kind, count in _trials_by_kind(trials).most_common()
    ]


def common_flags(trials: Sequence[TrialRow]) -> list[FlaggedTrials]:
    """Give the kinds that are about nearly all environments, which need not be said of each: without environment."""
    arms: dict[str, list[TrialRow]] = {}
    for trial in trials:
        arms.setdefault(trial.environment, []).append(trial)
    concerned = Counter(kind for mine in arms.values() for kind in _trials_by_kind(mine))
    flags = _flags_by_kind(trials)
    return [
        FlaggedTrials("", kind, count, len(trials), figure_ranges(flags[kind]))
        for kind, count in _trials_by_kind(trials).items()
        if len(arms) > 1 and concerned[kind] >= NEARLY_ALL * len(arms) and kind.code != FlagCode.PROGRAM_ERRORS
    ]


def without_flags(remarks: Iterable[Remark], kinds: Collection[FlagKind]) -> list[Remark]:
    """The remarks but for those about these kinds of flags."""
    return [each for each in remarks if not (isinstance(each, FlaggedTrials) and each.flag in kinds)]


def figure_ranges(flags: Iterable[Flag]) -> tuple[FigureRange, ...]:
    """The smallest and the largest of each figure that flags have."""
    values: dict[str, list[float]] = {}
    for flag in flags:
        for name, value in flag.figures.items():
            values.setdefault(name, []).append(value)
    return tuple(FigureRange(name, min(mine), max(mine)) for name, mine in values.items())


def _trials_by_kind(trials: Sequence[TrialRow]) -> Counter[FlagKind]:
    """How many trials have each kind. Of a bottleneck the verdicts tell, where it hides something."""
    flags = ([flag for flag in trial.flags if flag.code not in BOTTLENECKS] for trial in trials)
    return Counter(each for mine in flags for each in sorted({kind_of(flag) for flag in mine}))


def _flags_by_kind(trials: Sequence[TrialRow]) -> dict[FlagKind, list[Flag]]:
    found: dict[FlagKind, list[Flag]] = {}
    for trial in trials:
        for flag in trial.flags:
            found.setdefault(kind_of(flag), []).append(flag)
    return found
