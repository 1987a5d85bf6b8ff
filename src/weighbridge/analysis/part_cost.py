"""One part of a cost that a remark states, with the verdict of its own comparison."""

from dataclasses import dataclass

from weighbridge.statistics import Interval, Verdict


@dataclass(frozen=True, slots=True)
class PartCost:
    """The cost of a part, from its comparison with the baseline. Positive is worse."""

    verdict: Verdict
    """The verdict of the report; the part has a cost only if it is "different" or "equivalent"."""
    cost: Interval
    unit: str
    """The unit of ``cost``: "%", or the metric's if it is a difference."""
    margin: float | None
    """The equivalence margin (a fraction)."""
    baseline_value: float
    """The baseline's median over the compared rounds, in the metric's unit."""
    value: float
    """The environment's median over the same rounds."""
