"""What others took of the machine in a run, for machines."""

from typing_extensions import TypedDict

from weighbridge.model.disturbance import Disturbance
from weighbridge.model.flag import FlagCode


class TakenRow(TypedDict):
    """What others took in the ``flagged`` trials; ``mean`` is over all of them, one without the flag counts as 0.

    Of code "other-work" CPUs, of "steal" the hypervisor's share of all CPU time.
    """

    code: FlagCode
    host: str
    flagged: int
    low: float
    high: float
    mean: float


class DisturbanceRow(TypedDict):
    """How many of the good ``trials`` of the baseline and its A/A arm others have disturbed, and what they took."""

    trials: int
    disturbed: int
    taken: list[TakenRow]


def disturbance_json(disturbance: Disturbance) -> DisturbanceRow:
    """Return what others took; ``host`` is "here" of this machine."""
    taken: list[TakenRow] = [
        {"code": each.code, "host": each.host or "here", "flagged": each.flagged, "low": each.low, "high": each.high,
         "mean": each.mean}
        for each in disturbance.taken
    ]  # fmt: skip
    return {"trials": disturbance.trials, "disturbed": disturbance.disturbed, "taken": taken}
