"""Ranks, and Kendall's tau against the order of a series.

scipy.stats has both; importing it takes longer than a whole report. The tests hold these against it.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

EXACT_UP_TO = 33
"""Number of values, without ties, up to which the p-value of Kendall's tau is exact."""


def mid_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ranks from 1; tied values share their mean rank."""
    ordered = np.sort(values)
    below = np.searchsorted(ordered, values, side="left")
    up_to = np.searchsorted(ordered, values, side="right")
    return np.asarray((below + up_to + 1) / 2)


def kendall_against_order(series: NDArray[np.float64]) -> tuple[float, float]:
    """Return Kendall's tau-b of a series against the order of its values, with the two-sided p-value.

    Exact without ties up to `EXACT_UP_TO` values or where at most one pair is out of order, else normal with the
    variance for ties (Kendall, Rank Correlation Methods, 1970). The series must not be constant.
    """
    from scipy.special import ndtr

    n = series.size
    pairs = n * (n - 1) // 2
    discordant = int(np.count_nonzero((series[None, :] < series[:, None]) & _later(n)))
    _, counts = np.unique(series, return_counts=True)
    ties = int(np.sum(counts * (counts - 1) // 2))
    score = pairs - ties - 2 * discordant
    tau = score / float(np.sqrt(pairs)) / float(np.sqrt(pairs - ties))
    tau = max(-1.0, min(1.0, tau))
    fewer = min(discordant, pairs - discordant)
    if not ties and (n <= EXACT_UP_TO or fewer <= 1):
        return tau, _exact_p_value(n, fewer)
    spread = n * (n - 1) * (2 * n + 5) - float(np.sum(counts * (counts - 1) * (2 * counts + 5.0)))
    return tau, 2 * float(ndtr(-abs(score) / (spread / 18) ** 0.5))


@lru_cache(maxsize=16)
def _later(n: int) -> NDArray[np.bool_]:
    """Return which value (column) is later in a series than which (row)."""
    return np.triu(np.ones((n, n), dtype=np.bool_), 1)


@lru_cache(maxsize=1024)
def _exact_p_value(n: int, inversions: int) -> float:
    """Return the two-sided p-value of so few inversions, or so few pairs in order, among all permutations."""
    if 2 * inversions == n * (n - 1) // 2:
        return 1.0
    shares = np.ones(1)  # of the permutations of i values, those with k inversions
    for i in range(2, n + 1):
        shares = np.convolve(shares, np.full(i, 1 / i))[: inversions + 1]
    return min(1.0, 2 * float(shares.sum()))
