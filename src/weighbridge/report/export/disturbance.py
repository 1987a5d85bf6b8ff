"""The CPU time that other load used in a run, as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass

from weighbridge.analysis.results import Analysis
from weighbridge.model.disturbance import Disturbance
from weighbridge.model.flag import FlagCode


@dataclass(frozen=True)
class TakenRow:
    """Other load in the ``flagged`` trials; ``mean`` is over all trials, those without the flag count as 0.

    In CPUs for code "other-work"; for "steal" the hypervisor's share of all CPU time.
    """

    code: FlagCode
    host: str
    flagged: int
    low: float
    high: float
    mean: float


@dataclass(frozen=True)
class TakenInTrials:
    """How many of the good ``trials`` other load disturbed, and how much CPU time it used."""

    trials: int
    disturbed: int
    taken: tuple[TakenRow, ...]


@dataclass(frozen=True)
class DisturbanceRow(TakenInTrials):
    """Other load in trials of the baseline and its control, and of each of the ``environments`` that had any."""

    environments: Mapping[str, TakenInTrials]


def disturbance_json(analysis: Analysis) -> DisturbanceRow:
    """Return the other load in a run; ``host`` is "here" for this machine."""
    by_name = {name: _taken_in(each) for name, each in analysis.disturbances.items()}
    return DisturbanceRow(**vars(_taken_in(analysis.disturbance)), environments=by_name)


def _taken_in(disturbance: Disturbance) -> TakenInTrials:
    taken = tuple(
        TakenRow(each.code, each.host or "here", each.flagged, each.low, each.high, each.mean)
        for each in disturbance.taken
    )
    return TakenInTrials(disturbance.trials, disturbance.disturbed, taken)
