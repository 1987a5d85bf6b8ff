"""The results of a comparison: intervals, costs and verdicts, as frozen data."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Better = Literal["higher", "lower"]
"""The good direction of a metric: ``higher`` for throughput, ``lower`` for latency."""

Scale = Literal["ratio", "difference"]
"""Whether a cost is other/baseline (1 means no cost) or other - baseline in the metric's unit (0 means no cost)."""

Verdict = Literal["different", "equivalent", "inconclusive", "hidden"]
"""The conclusion about a cost. ``inconclusive`` never means "no difference".

``hidden`` only occurs in reports: both sides met the same limit, so that both have the same result."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the limits of its confidence interval, all in one unit; a limit can be infinite."""

    estimate: float
    low: float
    high: float


def exp_interval(logs: Interval) -> Interval:
    """Return the ratios for an interval of logarithms; inf if a float cannot hold the value."""
    with np.errstate(over="ignore"):
        return Interval(*(float(np.exp(value)) for value in (logs.estimate, logs.low, logs.high)))


def cost_percent(ratio: Interval, better: Better) -> Interval:
    """Return the cost in percent for a ratio other/baseline. Positive is worse, and low <= high.

    With ``better="higher"`` a ratio of 0.726 is a cost of 27.4%; with ``"lower"`` a ratio of 1.2 is a cost of 20%.
    """
    if better == "higher":
        return Interval(*(100 * (1 - value) for value in (ratio.estimate, ratio.high, ratio.low)))
    return Interval(*(100 * (value - 1) for value in (ratio.estimate, ratio.low, ratio.high)))


def cost_difference(difference: Interval, better: Better) -> Interval:
    """Return the cost for a difference other - baseline, in its unit. Positive is worse, and low <= high."""
    if better == "higher":
        return Interval(*(-value + 0.0 for value in (difference.estimate, difference.high, difference.low)))
    return difference


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one environment against the baseline, or any other contrast, as computed by `Contrast.cost`.

    On the ``ratio`` scale `typical`, `low`, `high`, `geometric` and `arithmetic` are other/baseline, and 1.0 means no
    cost. On the ``difference`` scale (some value was zero or negative) they are other - baseline in the metric's
    unit, 0.0 means no cost, and `geometric` is None.
    """

    typical: float
    """Hodges-Lehmann estimate of the cost of a typical run."""
    low: float
    """Lower limit for `typical`; 0 (ratio) or -inf (difference) if there are too few blocks for a limit."""
    high: float
    """Upper limit for `typical`; inf if there are too few blocks for a limit."""
    geometric: Interval | None
    """Ratio of geometric means; None on the difference scale."""
    arithmetic: Interval
    """Ratio of arithmetic means (on the difference scale, their difference): the total that a long job pays."""
    blocks: int
    """Number of blocks compared."""
    exploratory: bool
    """True with fewer than 10 blocks, because the interval then assumes normal data."""
    p_value: float
    """Two-sided sign-flip permutation p-value of "no cost"; with several looks divided by 0.7, as the interval is."""
    equivalent: bool | None
    """Whether the cost is proven to be within the margin; None without a margin or if undecidable."""
    verdict: Verdict
    """The verdict; ``equivalent`` wins if the cost is both proven non-zero and proven within the margin."""
    better: Better
    """The good direction of the metric."""
    scale: Scale
    """How to read the numbers: as ratios or as differences."""
    confidence: float
    """The reported confidence of the intervals, such as 0.95."""
    margin: float | None
    """The equivalence margin, as a fraction (0.03 is ±3%)."""
    two_one_sided: Interval | None = None
    """The interval that lies within the margin if the cost is `equivalent`: at 90% for a confidence of 95%.

    It is on the scale of `typical`; None without a margin and on the difference scale."""
    level: float = 0.95
    """The level at which a report shows the intervals: `confidence`, or higher if not all looks were planned.

    See `weighbridge.statistics.contrast.shown_level`."""

    @property
    def interval(self) -> Interval:
        """Return the typical cost with its limits."""
        return Interval(self.typical, self.low, self.high)

    @property
    def half_width(self) -> float:
        """Return the relative half-width of the interval, on the log scale: sqrt(high / low) - 1; 0.02 is ±2%.

        A relative width has no meaning on the difference scale: return 0.0 if the interval is one point, else inf.
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
        """Return the typical cost in percent, positive is worse; None on the difference scale."""
        return cost_percent(self.interval, self.better) if self.scale == "ratio" else None

    @property
    def penalty(self) -> Interval:
        """Return the typical cost, positive is worse: in percent, or (difference scale) in the metric's unit."""
        if self.scale == "ratio":
            return cost_percent(self.interval, self.better)
        return cost_difference(self.interval, self.better)

    @property
    def two_one_sided_penalty(self) -> Interval | None:
        """Return `two_one_sided` in percent, positive is worse."""
        return cost_percent(self.two_one_sided, self.better) if self.two_one_sided is not None else None

    @property
    def disagreement(self) -> float | None:
        """Return the distance of the arithmetic cost from the typical one, as a fraction; None on the difference
        scale.

        A large value means rare stalls (or rare luck) that a typical run does not show.
        """
        if self.scale == "difference" or not (self.typical > 0 and self.arithmetic.estimate > 0):
            return None
        return math.expm1(abs(math.log(self.arithmetic.estimate) - math.log(self.typical)))
