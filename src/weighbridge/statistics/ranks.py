"""Inference by ranks: one sample (signed ranks), the shift between two (Mann-Whitney), a trend (Kendall's tau).

Source: Hollander, Wolfe & Chicken, *Nonparametric Statistical Methods* (3rd ed. 2014), sections 3.1 to 3.3 and 4.1 to
4.4; Hodges & Lehmann, "Estimates of location based on rank tests", Ann. Math. Statist. 34 (1963). scipy has the
tests, but has no public estimates, intervals or exact null distributions. Importing scipy.stats also takes longer
than a complete report. The tests compare this module with scipy.
"""

from functools import lru_cache
from itertools import count

import numpy as np
from numpy.typing import NDArray

from weighbridge.statistics.cost import Floats, Interval
from weighbridge.statistics.distributions import normal_cdf, normal_quantile
from weighbridge.statistics.parametric import t_quantile, welch_degrees

KENDALL_EXACT_UP_TO = 33
"""Number of values, without ties, up to which the p-value of Kendall's tau is exact."""


def mid_ranks(values: Floats) -> Floats:
    """Return the ranks from 1; tied values share their mean rank."""
    ordered = np.sort(values)
    below = np.searchsorted(ordered, values, side="left")
    up_to = np.searchsorted(ordered, values, side="right")
    return np.asarray((below + up_to + 1) / 2)


def kendall_against_order(series: Floats) -> tuple[float, float]:
    """Return Kendall's tau-b of a series against the order of its values, with the two-sided p-value.

    The p-value is exact without ties up to `KENDALL_EXACT_UP_TO` values, or with at most one pair out of order.
    Otherwise it is normal with the variance for ties (Kendall, Rank Correlation Methods, 1970). The series must not
    be constant.
    """
    n = series.size
    pairs = n * (n - 1) // 2
    discordant = int(np.count_nonzero((series[None, :] < series[:, None]) & _later(n)))
    _, counts = np.unique(series, return_counts=True)
    ties = int(np.sum(counts * (counts - 1) // 2))
    score = pairs - ties - 2 * discordant
    tau = score / float(np.sqrt(pairs)) / float(np.sqrt(pairs - ties))
    tau = max(-1.0, min(1.0, tau))
    fewer = min(discordant, pairs - discordant)
    if not ties and (n <= KENDALL_EXACT_UP_TO or fewer <= 1):
        return tau, _exact_p_value(n, fewer)
    spread = n * (n - 1) * (2 * n + 5) - float(np.sum(counts * (counts - 1) * (2 * counts + 5.0)))
    return tau, 2 * normal_cdf(-abs(score) / (spread / 18) ** 0.5)


@lru_cache(maxsize=16)
def _later(n: int) -> NDArray[np.bool_]:
    """Return which value (column) is later in a series than which (row)."""
    return np.triu(np.ones((n, n), dtype=np.bool_), 1)


@lru_cache(maxsize=1024)
def _exact_p_value(n: int, inversions: int) -> float:
    """Return the two-sided p-value of at most ``inversions`` inversions (or pairs in order) of a permutation."""
    if 2 * inversions == n * (n - 1) // 2:
        return 1.0
    shares = np.ones(1)  # of the permutations of i values, those with k inversions
    for i in range(2, n + 1):
        shares = np.convolve(shares, np.full(i, 1 / i))[: inversions + 1]
    return min(1.0, 2 * float(shares.sum()))


# -- one sample: signed ranks ---------------------------------------------------------------------

SIGNED_RANK_EXACT_UP_TO = 500
"""Above this number of differences, the normal approximation replaces the exact null distribution."""


def _null(ranks: NDArray[np.int64], most: int) -> Floats:
    """Return P(sum of the ranks that a fair coin picks = k) for k = 0 .. `most`, by convolution."""
    ways, moved = np.zeros(most + 1), np.empty(most + 1)
    ways[0] = 1.0
    top = 0
    for rank in np.sort(ranks):
        if rank > most:
            break
        low, high = int(rank), min(top + int(rank), most)
        moved[: high + 1 - low] = ways[: high + 1 - low]  # the slices overlap
        ways[low : high + 1] += moved[: high + 1 - low]
        top = max(top, high)
    return np.ldexp(ways, -ranks.size)  # exact: SIGNED_RANK_EXACT_UP_TO keeps 2^n finite


@lru_cache(maxsize=256)
def signed_rank_cumulative(n: int) -> Floats:
    """Return P(T+ <= k) for k = 0 .. n(n+1)/2, for n differences without ties."""
    return np.cumsum(_null(np.arange(1, n + 1), n * (n + 1) // 2))


@lru_cache(maxsize=256)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(n)


@lru_cache(maxsize=1024)
def critical_rank(n: int, confidence: float) -> int:
    """Return k so that the k-th smallest and k-th largest Walsh averages limit the interval; 0 if n is too small.

    k is the largest with 2 P(T+ <= k - 1) <= 1 - confidence, so the true confidence is at least the requested one.
    """
    tail = (1 - confidence) / 2
    if n <= SIGNED_RANK_EXACT_UP_TO:
        return int(np.searchsorted(signed_rank_cumulative(n), tail * (1 + 1e-9), side="right"))
    mean, variance = n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24
    return int(np.floor(mean + normal_quantile(tail) * variance**0.5))


def fewest_differences(confidence: float) -> int:
    """Return the lowest number of differences for which `signed_rank_interval` has limits.

    Fewer have the same sign by chance too often: n of them with a probability of 2^(1-n).
    """
    return next(n for n in count(1) if critical_rank(n, confidence) >= 1)


def hodges_lehmann(differences: Floats) -> float:
    """Return the median of all pairwise (Walsh) averages, including each value with itself."""
    first, second = _pairs(differences.size)
    return float(np.median(differences[first] / 2 + differences[second] / 2))


def signed_rank_interval(differences: Floats, confidence: float) -> Interval:
    """Return the Hodges-Lehmann estimate with its exact interval; infinite limits if n is too small.

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
    """Return the two-sided p-value of the signed-rank sum among all 2^n flips of signs, exact even with ties and
    zeros.

    Tied values share their mean rank; zeros keep their rank and have no sign (Pratt 1959). This is the test that
    `signed_rank_interval` inverts, so the two agree. Above `SIGNED_RANK_EXACT_UP_TO` values it is normal.
    """
    doubled = _doubled_ranks(np.abs(differences))
    moving = doubled[differences != 0]
    if not moving.size:
        return 1.0
    positive = int(doubled[differences > 0].sum())
    smaller = min(positive, int(moving.sum()) - positive)
    if differences.size > SIGNED_RANK_EXACT_UP_TO:
        squares = float((moving.astype(float) ** 2).sum())
        z = (smaller + 1 - moving.sum() / 2) / (squares / 4) ** 0.5  # half a rank of continuity, doubled
        return min(1.0, 2 * normal_cdf(z))
    if moving.size == differences.size and np.all(np.diff(np.sort(doubled)) > 0):
        return min(1.0, 2 * float(signed_rank_cumulative(differences.size)[smaller // 2]))
    return min(1.0, 2 * float(_null(moving, smaller).sum()))


def _doubled_ranks(values: Floats) -> NDArray[np.int64]:
    return (2 * mid_ranks(values)).astype(np.int64)


def sign_flip_p_value(differences: Floats) -> float:
    """Return the two-sided p-value of the mean among all 2^n flips of signs, by enumeration (for small n).

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


# -- two samples: the shift -----------------------------------------------------------------------

SHIFT_EXACT_UP_TO = 3600
"""Number of pairs (60 blocks of both) up to which the null distribution is exact; above, it is normal."""


@lru_cache(maxsize=256)
def _shift_cumulative(first: int, second: int) -> Floats:
    """Return P(U <= u) for u = 0 .. first x second without ties, by the recurrence of Mann & Whitney (1947)."""
    top = first * second
    one = np.zeros(top + 1)
    one[0] = 1.0
    row = [one] * (second + 1)  # without a value of the first sample
    for i in range(1, first + 1):
        following = [one]
        for j in range(1, second + 1):
            shares = following[j - 1] * (j / (i + j))
            shares[j:] += row[j][: top + 1 - j] * (i / (i + j))
            following.append(shares)
        row = following
    return np.cumsum(row[second])


@lru_cache(maxsize=1024)
def critical_pair(first: int, second: int, confidence: float) -> int:
    """Return k so that the k-th smallest and k-th largest differences limit the interval; 0 with too few values.

    k is the largest with 2 P(U <= k - 1) <= 1 - confidence, so the true confidence is at least the one asked for.
    """
    tail = (1 - confidence) / 2
    if first * second <= SHIFT_EXACT_UP_TO:
        smaller, larger = sorted((first, second))
        return int(np.searchsorted(_shift_cumulative(smaller, larger), tail * (1 + 1e-9), side="right"))
    mean, variance = first * second / 2, first * second * (first + second + 1) / 12
    return max(0, int(np.floor(mean + normal_quantile(tail) * variance**0.5)))


def shift_interval(first: Floats, second: Floats, confidence: float) -> Interval:
    """Return the shift from `first` to `second`: the median of all pairwise differences with its interval.

    The limits are infinite with too few values. The closed interval keeps its confidence under ties. If the spreads
    differ, it has the width of a test that allows this (`_unlike_pair`): for ten noisy blocks against sixty quiet
    ones, the plain interval covers only 84% of the cases.
    """
    differences = np.sort((second[:, None] - first[None, :]).ravel())
    estimate = float(np.median(differences))
    k = min(critical_pair(first.size, second.size, confidence), _unlike_pair(first, second - estimate, confidence))
    if k < 1:
        return Interval(estimate, -np.inf, np.inf)
    return Interval(estimate, float(differences[k - 1]), float(differences[-k]))


def _unlike_pair(first: Floats, second: Floats, confidence: float) -> int:
    """Return k as `critical_pair` does, for two samples around one centre with different spreads.

    Source: Fligner & Policello, "Robust rank procedures for the Behrens-Fisher problem", JASA 76 (1981), with Welch's
    degrees of freedom in place of their table.
    """
    ordered = [np.sort(first), np.sort(second)]
    below = [
        (np.searchsorted(other, values, "left") + np.searchsorted(other, values, "right")) / 2
        for values, other in ((first, ordered[1]), (second, ordered[0]))
    ]
    variance = sum(float(((each - each.mean()) ** 2).sum()) for each in below)
    variance += float(below[0].mean() * below[1].mean())
    parts = [float(each.var(ddof=1)) / each.size for each in (first, second)]
    if min(first.size, second.size) < 2 or sum(parts) == 0:
        return first.size * second.size
    half = t_quantile(welch_degrees(parts, (first.size, second.size)), confidence) * variance**0.5
    return max(0, int(np.floor(first.size * second.size / 2 - half)) + 1)
