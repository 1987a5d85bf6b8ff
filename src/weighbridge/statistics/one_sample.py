"""The interval of one environment's own values, one a block."""

import math
from collections.abc import Sequence
from statistics import median

import numpy as np

from weighbridge.statistics.cost import Interval
from weighbridge.statistics.parametric import t_interval
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK
from weighbridge.statistics.signed_rank import signed_rank_interval

CONFIDENCE = 0.95


def typical_interval(values: Sequence[float]) -> Interval:
    """Return the median with the 95 % interval of the typical value.

    The exact signed-rank interval from ten blocks on, Student's t below, of the logarithms where all are positive; it
    never excludes the median. Infinite limits for a single block.
    """
    middle = median(values)
    logs = min(values) > 0
    numbers = np.log(values) if logs else np.asarray(values, dtype=np.float64)
    of = signed_rank_interval if len(values) >= MIN_BLOCKS_SIGNED_RANK else t_interval
    found = of(numbers, CONFIDENCE)
    with np.errstate(over="ignore"):
        low, high = (float(np.exp(each)) if logs else each for each in (found.low, found.high))
    if min(values) >= 0:
        low = max(low, 0.0) if math.isfinite(low) else low
    return Interval(middle, min(low, middle), max(high, middle))


def median_interval(values: Sequence[float]) -> Interval:
    """Return the median with its 95 % interval from order statistics, which asks nothing of the distribution.

    It is exact and conservative: the k-th smallest and largest values, with P(Binomial(n, 1/2) < k) <= 2.5 %
    (Conover, Practical Nonparametric Statistics, section 3.2). Where there is none the extremes are given.
    """
    ordered = sorted(values)
    k = max(1, _rank(len(ordered)))
    return Interval(median(ordered), ordered[k - 1], ordered[-k])


def has_median_interval(blocks: int) -> bool:
    """Whether the median of so many values has a 95 % interval: from six on."""
    return _rank(blocks) > 0


def _rank(n: int) -> int:
    """The largest k of that interval; 0 where there is none."""
    below, k = 0.0, 0
    while k < n // 2 + 1:
        below += math.comb(n, k) / 2**n
        if below > (1 - CONFIDENCE) / 2:
            return k
        k += 1
    return k
