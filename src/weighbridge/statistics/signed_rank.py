"""Exact one-sample signed-rank inference, over the last axis of an array.

Source: Hollander, Wolfe & Chicken, *Nonparametric Statistical Methods* (3rd ed. 2014), sections 3.1 to 3.3;
Hodges & Lehmann, "Estimates of location based on rank tests", Ann. Math. Statist. 34 (1963).
scipy has the test, but neither the estimate, nor its interval, nor the exact null distribution in public.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from weighbridge.statistics.cost import Interval
from weighbridge.statistics.ranks import mid_ranks

Floats = NDArray[np.float64]

EXACT_UP_TO = 500
"""Above so many differences the normal approximation replaces the exact null distribution."""


def _null(ranks: NDArray[np.int64], most: int) -> Floats:
    """Give P(sum of the ranks that a fair coin picks = k) for k = 0 .. `most`, by convolution."""
    ways = np.zeros(most + 1)
    ways[0] = 1.0
    top = 0
    for rank in np.sort(ranks):
        if rank > most:
            break
        low, high = int(rank), min(top + int(rank), most)
        ways[low : high + 1] += ways[: high + 1 - low].copy()
        top = max(top, high)
    return np.ldexp(ways, -ranks.size)  # exact: EXACT_UP_TO keeps 2^n finite


@lru_cache(maxsize=256)
def _cumulative(n: int) -> Floats:
    """Give P(T+ <= k) for k = 0 .. n(n+1)/2 where n differences have no ties."""
    return np.cumsum(_null(np.arange(1, n + 1), n * (n + 1) // 2))


@lru_cache(maxsize=256)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(n)


@lru_cache(maxsize=1024)
def critical_rank(n: int, confidence: float) -> int:
    """Give k so that the k-th smallest and k-th largest Walsh averages limit the interval; 0 where n is too small.

    k is the largest with 2 P(T+ <= k - 1) <= 1 - confidence, so the true confidence is at least the one asked for.
    """
    tail = (1 - confidence) / 2
    if n <= EXACT_UP_TO:
        return int(np.searchsorted(_cumulative(n), tail * (1 + 1e-9), side="right"))
    from scipy.special import ndtri

    mean, variance = n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24
    return int(np.floor(mean + float(ndtri(tail)) * variance**0.5))


def hodges_lehmann(differences: Floats) -> float:
    """Give the median of all pairwise (Walsh) averages, each value with itself too."""
    first, second = _pairs(differences.size)
    return float(np.median(differences[first] / 2 + differences[second] / 2))


def signed_rank_interval(differences: Floats, confidence: float) -> Interval:
    """Give the Hodges-Lehmann estimate with its exact interval; infinite limits where n is too small.

    The closed interval keeps its confidence under ties and zeros (Noether 1967): it can only be conservative.
    """
    n = differences.size
    first, second = _pairs(n)
    halves = differences / 2
    walsh = halves[first] + halves[second]
    walsh.sort()  # faster than picking the three places that are needed
    middle = walsh.size // 2
    estimate = float(walsh[middle] if walsh.size % 2 else walsh[middle - 1] / 2 + walsh[middle] / 2)
    k = critical_rank(n, confidence)
    if k < 1:
        return Interval(estimate, -np.inf, np.inf)
    return Interval(estimate, float(walsh[k - 1]), float(walsh[-k]))


def signed_rank_p_value(differences: Floats) -> float:
    """Give the two-sided p-value of the signed-rank sum among all 2^n flips of signs, exact with ties and zeros too.

    Tied values share their mean rank; zeros keep their rank and have no sign (Pratt 1959). This is the test that
    `signed_rank_interval` inverts, so that the two agree. Above `EXACT_UP_TO` values: normal approximation.
    """
    doubled = _doubled_ranks(np.abs(differences))
    moving = doubled[differences != 0]
    if not moving.size:
        return 1.0
    positive = int(doubled[differences > 0].sum())
    smaller = min(positive, int(moving.sum()) - positive)
    if differences.size > EXACT_UP_TO:
        from scipy.special import ndtr

        squares = float((moving.astype(float) ** 2).sum())
        z = (smaller + 1 - moving.sum() / 2) / (squares / 4) ** 0.5  # half a rank of continuity, doubled
        return min(1.0, 2 * float(ndtr(z)))
    if moving.size == differences.size and np.all(np.diff(np.sort(doubled)) > 0):
        return min(1.0, 2 * float(_cumulative(differences.size)[smaller // 2]))
    return min(1.0, 2 * float(_null(moving, smaller).sum()))


def _doubled_ranks(values: Floats) -> NDArray[np.int64]:
    """Give twice the mid-ranks, which are whole numbers."""
    return (2 * mid_ranks(values)).astype(np.int64)


def sign_flip_p_value(differences: Floats) -> float:
    """Give the two-sided p-value of the mean among all 2^n flips of signs, by enumeration (for small n).

    Source: Fisher, *The Design of Experiments* (1935), section 21.
    """
    largest = float(np.max(np.abs(differences)))
    if largest == 0:
        return 1.0
    scaled = differences / largest
    flips = np.array([0.0])
    for value in scaled:
        flips = np.concatenate([flips + value, flips - value])
    return float(np.mean(np.abs(flips) >= abs(float(scaled.sum())) - 1e-12 * scaled.size))
