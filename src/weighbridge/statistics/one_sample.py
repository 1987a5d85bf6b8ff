"""Statistics of one environment's values, one per block: the typical value, the spread, and the rate of slow runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from weighbridge.statistics.cost import Better, Interval
from weighbridge.statistics.distributions import beta_quantile, chi_square_quantile
from weighbridge.statistics.parametric import t_interval
from weighbridge.statistics.ranks import signed_rank_interval
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK

CONFIDENCE = 0.95


def typical_interval(values: Sequence[float]) -> Interval:
    """Return the median with the 95% interval of the typical value.

    The interval is the exact signed-rank interval from ten blocks on and Student's t below, of the logarithms if all
    values are positive. It never excludes the median. A single block has infinite limits.
    """
    middle = median(values)
    logs = min(values) > 0
    numbers = np.log(values) if logs else np.asarray(values, dtype=np.float64)
    interval_of = signed_rank_interval if len(values) >= MIN_BLOCKS_SIGNED_RANK else t_interval
    interval = interval_of(numbers, CONFIDENCE)
    with np.errstate(over="ignore"):
        low, high = (float(np.exp(each)) if logs else each for each in (interval.low, interval.high))
    if min(values) >= 0:
        low = max(low, 0.0) if math.isfinite(low) else low
    return Interval(middle, min(low, middle), max(high, middle))


def median_interval(values: Sequence[float]) -> Interval:
    """Return the median with its 95% interval from order statistics, which assumes no distribution.

    It is exact and conservative: the k-th smallest and largest values, with P(Binomial(n, 1/2) < k) <= 2.5% (Conover,
    Practical Nonparametric Statistics, section 3.2). With too few values, the limits are the extremes.
    """
    ordered = sorted(values)
    k = max(1, _rank(len(ordered)))
    return Interval(median(ordered), ordered[k - 1], ordered[-k])


def has_median_interval(blocks: int) -> bool:
    """Return whether the median of this number of values has a 95% interval: from six on."""
    return _rank(blocks) > 0


def _rank(n: int) -> int:
    below, k = 0.0, 0
    while k < n // 2 + 1:
        below += math.comb(n, k) / 2**n
        if below > (1 - CONFIDENCE) / 2:
            return k
        k += 1
    return k


# -- the spread of runs -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunSpread:
    """Mean and standard deviation of runs, in their unit."""

    mean: float
    deviation: float
    runs: int

    @property
    def variation(self) -> float | None:
        """Return the coefficient of variation, deviation / mean (0.08 is 8%); None if the mean is not positive."""
        return self.deviation / self.mean if self.mean > 0 else None

    @property
    def limits(self) -> tuple[float, float] | None:
        """Return the 95% limits of the coefficient of variation; None below two runs.

        They are the chi-square limits of the deviation divided by the mean, which is right for small coefficients
        (McKay, J. R. Statist. Soc. 95, 1932: below a third) and about normal runs.
        """
        variation = self.variation
        if variation is None or self.runs < 2:
            return None
        degrees = self.runs - 1
        low, high = (math.sqrt(degrees / chi_square_quantile(degrees, share)) for share in (0.975, 0.025))
        return variation * low, variation * high


def spread(values: Sequence[float]) -> RunSpread | None:
    """Return mean and standard deviation (n - 1) of fresh runs; None below two."""
    if len(values) < 2:
        return None
    every = np.asarray(values, dtype=np.float64)
    return RunSpread(float(every.mean()), float(every.std(ddof=1)), len(values))


# -- slow runs ----------------------------------------------------------------------------------

SLOW = 0.15
"""How much worse a slow run is than the median run, as a fraction."""


@dataclass(frozen=True, slots=True)
class SlowRuns:
    """The share of slow runs with its exact interval, as fractions of 1."""

    slow: int
    """Number of slow runs."""
    runs: int
    """Number of runs."""
    rate: float
    """slow / runs."""
    low: float
    """Lower limit of the rate."""
    high: float
    """Upper limit of the rate: with no slow run, the rate that is ruled out."""


def slow_run_rate(
    values: Sequence[float], *, better: Better, threshold: float = SLOW, confidence: float = 0.95
) -> SlowRuns:
    """Return the share of slow runs with its exact binomial interval.

    A run is slow if it is worse than the median of `values` by more than `threshold`: above 1.15 times the median if
    lower is better, below the median / 1.15 if higher is better. The threshold of 15% exceeds seven standard
    deviations of a quiet machine's runs (CV 2%), so noise does not count as a stall. It is half of the 30% that a
    throttled or contended run typically loses, so a stall is not missed. It is relative to the session's own median:
    a session that is slow throughout has no slow runs. With a median of 0 (loss), every run above 0 is slow if lower
    is better.

    The interval is two-sided (Clopper & Pearson, Biometrika 26 (1934)): at 95%, 0 slow in 30 rules out rates above
    11.6%. It assumes independent runs; `flags` checks that. Raises ValueError for no values, negative or non-finite
    ones.
    """
    runs = np.asarray(values, dtype=np.float64)
    if not runs.size or not np.isfinite(runs).all() or runs.min() < 0:
        raise ValueError("The slow-run rate needs at least one value, all of them finite and not negative.")
    middle, factor = median(runs.tolist()), 1 + threshold
    slow = int(np.sum(runs * factor < middle) if better == "higher" else np.sum(runs > middle * factor))
    return SlowRuns(slow, runs.size, slow / runs.size, *_clopper_pearson(slow, runs.size, confidence))


def _clopper_pearson(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    """Return the exact interval of a proportion, from the quantiles of the beta distribution."""
    tail, failures = (1 - confidence) / 2, trials - successes
    low = beta_quantile(successes, failures + 1, tail) if successes else 0.0
    high = beta_quantile(successes + 1, failures, 1 - tail) if failures else 1.0
    return low, high
