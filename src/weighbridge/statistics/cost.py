"""What a comparison gives: intervals, costs and verdicts. Frozen data and its readings."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Better = Literal["higher", "lower"]
"""Which direction of a metric is good: throughput is ``higher``, latency is ``lower``."""

Scale = Literal["ratio", "difference"]
"""Whether a cost is other/baseline (1 is no cost) or other - baseline in the metric's unit (0 is no cost)."""

Verdict = Literal["different", "equivalent", "inconclusive", "hidden"]
"""What may be claimed. ``inconclusive`` is never "no difference".

``hidden``, which only a report gives: both sides met the same limit, which gives both the same result."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the limits of its confidence interval, all in one unit; a limit may be infinite."""

    estimate: float
    low: float
    high: float


def exp_interval(logs: Interval) -> Interval:
    """Return the ratios of an interval of logarithms; inf beyond what a float holds."""
    with np.errstate(over="ignore"):
        return Interval(*(float(np.exp(value)) for value in (logs.estimate, logs.low, logs.high)))


def cost_percent(ratio: Interval, better: Better) -> Interval:
    """Give the cost in percent of a ratio other/baseline, positive is worse and low <= high.

    With ``better="higher"`` a ratio of 0.726 is a cost of 27.4 %; with ``"lower"`` a ratio of 1.2 is one of 20 %.
    """
    if better == "higher":
        return Interval(*(100 * (1 - value) for value in (ratio.estimate, ratio.high, ratio.low)))
    return Interval(*(100 * (value - 1) for value in (ratio.estimate, ratio.low, ratio.high)))


def cost_difference(difference: Interval, better: Better) -> Interval:
    """Give the cost of a difference other - baseline, in its own unit, positive is worse and low <= high."""
    if better == "higher":
        return Interval(*(-value + 0.0 for value in (difference.estimate, difference.high, difference.low)))
    return difference


@dataclass(frozen=True, slots=True)
class Cost:
    """What one environment costs against the baseline, or any other contrast, as `Contrast.cost` makes it.

    On the ``ratio`` scale `typical`, `low`, `high`, `geometric` and `arithmetic` are other/baseline (1.0 is no cost).
    On the ``difference`` scale (some value was zero or negative) they are other - baseline in the metric's unit
    (0.0 is no cost), and `geometric` is None.
    """

    typical: float
    """Hodges-Lehmann estimate of the cost of a typical run."""
    low: float
    """Lower limit for `typical`; 0 (ratio) or -inf (difference) where the blocks are too few for a limit."""
    high: float
    """Upper limit for `typical`; inf where the blocks are too few for a limit."""
    geometric: Interval | None
    """Ratio of geometric means; None on the difference scale."""
    arithmetic: Interval
    """Ratio of arithmetic means (difference of means on the difference scale): what a long job pays in total."""
    blocks: int
    """Number of blocks compared."""
    exploratory: bool
    """True with fewer than 10 blocks: the interval leans on normality."""
    p_value: float
    """Two-sided sign-flip permutation p-value of "no cost"; with several looks divided by 0.7, as the interval is."""
    equivalent: bool | None
    """Whether the cost is proven to be within the margin; None without a margin or where it cannot be decided."""
    verdict: Verdict
    """``equivalent`` wins where the cost is both proven non-zero and proven within the margin."""
    better: Better
    """Which direction of the metric is good."""
    scale: Scale
    """How to read the numbers."""
    confidence: float
    """The confidence of the intervals as reported, such as 0.95."""
    margin: float | None
    """The equivalence margin asked for, as a fraction (0.03 is ±3 %)."""
    two_one_sided: Interval | None = None
    """The interval that is within the margin where it is `equivalent`: at 90 % for a confidence of 95 %.

    On the scale of `typical`; None without a margin and on the difference scale."""
    level: float = 0.95
    """The level at which a report shows the intervals: `confidence`, or higher if the looks were not all planned.

    See `weighbridge.statistics.contrast.shown_level`."""

    @property
    def interval(self) -> Interval:
        """The typical cost with its limits."""
        return Interval(self.typical, self.low, self.high)

    @property
    def half_width(self) -> float:
        """Relative half-width of the interval, taken on the log scale: sqrt(high / low) - 1; 0.02 is ±2 %.

        On the difference scale a relative width has no meaning: 0.0 where the interval is one point, else inf.
        """
        if self.low == self.high:
            return 0.0
        if self.scale == "difference" or self.low <= 0 or math.isinf(self.high):
            return math.inf
        try:
            return math.expm1((math.log(self.high) - math.log(self.low)) / 2)
        except OverflowError:
            return math.inf

    @property
    def percent(self) -> Interval | None:
        """The typical cost in percent, positive is worse; None on the difference scale."""
        return cost_percent(self.interval, self.better) if self.scale == "ratio" else None

    @property
    def worsening(self) -> Interval:
        """The typical cost, positive is worse: in percent, or in the metric's unit on the difference scale."""
        if self.scale == "ratio":
            return cost_percent(self.interval, self.better)
        return cost_difference(self.interval, self.better)

    @property
    def two_one_sided_worsening(self) -> Interval | None:
        """`two_one_sided` as `worsening` is: in percent, positive is worse."""
        return cost_percent(self.two_one_sided, self.better) if self.two_one_sided is not None else None

    @property
    def disagreement(self) -> float | None:
        """How far the arithmetic cost is from the typical one, as a fraction; None on the difference scale.

        A large value means rare stalls (or rare luck) that a typical run does not show.
        """
        if self.scale == "difference" or not (self.typical > 0 and self.arithmetic.estimate > 0):
            return None
        return math.expm1(abs(math.log(self.arithmetic.estimate) - math.log(self.typical)))
