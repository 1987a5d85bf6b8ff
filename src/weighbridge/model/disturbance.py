"""Background load in the trials of a run: CPU time that other processes, or this machine's hypervisor, used."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weighbridge.model.flag import Flag, FlagCode

_FIGURES = {FlagCode.OTHER_WORK: "cpus", FlagCode.STEAL: "share"}
_ALIKE = {FlagCode.OTHER_WORK: 0.5, FlagCode.STEAL: 0.05}
"""The largest difference between the means of that figure in two runs with the same background load."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Background load in the ``flagged`` trials: CPUs of other processes, or the hypervisor's share of all CPU time.

    ``low`` and ``high`` belong to the flagged trials; ``mean`` is over all trials, with 0 for those without the flag.
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
    """How many of the ``trials`` were ``disturbed`` by background load, and how large it was."""

    trials: int = 0
    disturbed: int = 0
    taken: tuple[Taken, ...] = ()

    @property
    def heavy(self) -> bool:
        """Whether background load used CPU time in more than half of the trials."""
        return 2 * self.disturbed > self.trials

    def took(self, code: FlagCode) -> bool:
        """Return whether background load of this kind used CPU time."""
        return any(each.code == code for each in self.taken)

    def alike(self, other: "Disturbance") -> bool:
        """Return whether both runs had about the same background load: within half a CPU, and 5% of the CPU time."""
        means = [{(each.code, each.host): each.mean for each in run.taken} for run in (self, other)]
        return all(
            abs(means[0].get(key, 0.0) - means[1].get(key, 0.0)) <= _ALIKE[key[0]] for key in {*means[0], *means[1]}
        )


def disturbance_of(flags_by_trial: Iterable[Sequence[Flag]]) -> Disturbance:
    """Return the background load in trials with these flags.

    Pass the baseline's trials, because the flags of other environments include their own engine or proxy. The
    hypervisor's share on another host is left out, because the hypervisor of a guest host is a process of
    Weighbridge.
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
