"""What others took of the CPU time in the trials of a run: other processes, or the hypervisor of this machine."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weighbridge.model.flag import Flag, FlagCode

_FIGURES = {FlagCode.OTHER_WORK: "cpus", FlagCode.STEAL: "share"}
"""The flags that say that others took CPU time, each with its figure."""
_ALIKE = {FlagCode.OTHER_WORK: 0.5, FlagCode.STEAL: 0.05}
"""By how much the means of that figure may differ between two runs that count as disturbed alike."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What others took in the ``flagged`` trials: CPUs of other processes, or the hypervisor's share of all CPU time.

    ``low`` and ``high`` are of the flagged trials; ``mean`` is over all trials, one without the flag counts as 0.
    """

    code: FlagCode
    host: str
    """"host NAME"; empty for this machine."""
    flagged: int
    low: float
    high: float
    mean: float


@dataclass(frozen=True, slots=True)
class Disturbance:
    """How many of the ``trials`` others have ``disturbed``, and what they took in these."""

    trials: int = 0
    disturbed: int = 0
    taken: tuple[Taken, ...] = ()

    @property
    def heavy(self) -> bool:
        """Whether others took CPU time in more than half of the trials."""
        return 2 * self.disturbed > self.trials

    def took(self, code: FlagCode) -> bool:
        """Whether others took CPU time in the way of this flag."""
        return any(each.code == code for each in self.taken)

    def alike(self, other: "Disturbance") -> bool:
        """Whether others took about as much in both runs: within half a CPU, and 5 % of the CPU time."""
        means = [{(each.code, each.host): each.mean for each in run.taken} for run in (self, other)]
        return all(
            abs(means[0].get(key, 0.0) - means[1].get(key, 0.0)) <= _ALIKE[key[0]] for key in {*means[0], *means[1]}
        )


def disturbance_of(flags_by_trial: Iterable[Sequence[Flag]]) -> Disturbance:
    """Return what others took in trials with these flags.

    Of an environment's trials what its own engine or proxy uses is flagged likewise: ask those of the baseline. What
    a hypervisor takes of another host is left out, as that of a guest host is a process of ours.
    """
    figures: dict[tuple[FlagCode, str], list[float]] = {}
    trials = disturbed = 0
    for flags in flags_by_trial:
        mine = [
            (FlagCode(flag.code), flag.where, flag.figures.get(_FIGURES[FlagCode(flag.code)], 0.0))
            for flag in flags
            if flag.code == FlagCode.OTHER_WORK or (flag.code == FlagCode.STEAL and not flag.where)
        ]
        trials, disturbed = trials + 1, disturbed + bool(mine)
        for code, host, figure in mine:
            figures.setdefault((code, host), []).append(figure)
    taken = (
        Taken(code, host, len(values), min(values), max(values), math.fsum(values) / trials)
        for (code, host), values in figures.items()
    )
    return Disturbance(trials, disturbed, tuple(sorted(taken, key=lambda each: -each.flagged)))
