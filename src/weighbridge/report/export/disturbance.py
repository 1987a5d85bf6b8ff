"""What others took of the machine in a run, for machines."""

from typing_extensions import TypedDict

from weighbridge.analysis.results import Analysis
from weighbridge.model.disturbance import Disturbance
from weighbridge.model.flag import FlagCode


class TakenRow(TypedDict):
    """Other load in the ``flagged`` trials; ``mean`` is over all trials, those without the flag count as 0.

    In CPUs for code "other-work"; for "steal" the hypervisor's share of all CPU time.
    """

    code: FlagCode
    host: str
    flagged: int
    low: float
    high: float
    mean: float


class TakenInTrials(TypedDict):
    """How many of the good ``trials`` other load disturbed, and what it took."""

    trials: int
    disturbed: int
    taken: list[TakenRow]


class DisturbanceRow(TakenInTrials):
    """Other load in trials of the baseline and its A/A arm; ``environments``: in those of each that had any."""

    environments: dict[str, TakenInTrials]


def disturbance_json(analysis: Analysis) -> DisturbanceRow:
    """Return what others took in a run; ``host`` is "here" of this machine."""
    by_name = {name: _taken_in(each) for name, each in analysis.disturbances.items()}
    return {**_taken_in(analysis.disturbance), "environments": by_name}


def _taken_in(disturbance: Disturbance) -> TakenInTrials:
    taken: list[TakenRow] = [
        {"code": each.code, "host": each.host or "here", "flagged": each.flagged, "low": each.low, "high": each.high,
         "mean": each.mean}
        for each in disturbance.taken
    ]  # fmt: skip
    return {"trials": disturbance.trials, "disturbed": disturbance.disturbed, "taken": taken}
