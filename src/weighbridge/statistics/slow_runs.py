"""How often a run is slow: what a typical cost does not say."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weighbridge.statistics.cost import Better

SLOW = 0.15
"""By how much a slow run is worse than the median run, as a fraction."""


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
    """Give the share of slow runs with its exact binomial interval.

    A run is slow when it is worse than the median of `values` by more than `threshold`: above 1.15 times the median
    where lower is better, below the median / 1.15 where higher is. 15 % is beyond seven standard deviations of
    a quiet machine's runs (CV 2 %), so noise does not count as a stall, and half of the 30 % that a throttled or
    contended run typically loses, so a stall is not missed. It is relative to the session's own median: a
    session that is slow throughout has no slow runs. Median 0 (loss): every run above 0 is
    slow where lower is better.

    The interval is two-sided (Clopper & Pearson, Biometrika 26 (1934)): at 95 %, 0 slow in 30
    rules out rates above 11.6 %. It takes the runs as independent; see `flags` for whether they are.
    Raises ValueError for no values, negative or non-finite ones.
    """
    runs = np.asarray(values, dtype=np.float64)
    if not runs.size or not np.isfinite(runs).all() or runs.min() < 0:
        raise ValueError("The slow-run rate needs at least one value, all of them finite and not negative.")
    median, factor = float(np.median(runs)), 1 + threshold
    slow = int(np.sum(runs * factor < median) if better == "higher" else np.sum(runs > median * factor))
    return SlowRuns(slow, runs.size, slow / runs.size, *_clopper_pearson(slow, runs.size, confidence))


def _clopper_pearson(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    """Return the exact interval of a proportion, from the quantiles of the beta distribution."""
    from scipy.special import betaincinv

    tail, failures = (1 - confidence) / 2, trials - successes
    low = float(betaincinv(successes, failures + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, failures, 1 - tail)) if failures else 1.0
    return low, high
