"""Percentiles of a small, fixed number of values, such as the starts of one trial.

Source: Hyndman and Fan (1996), Sample Quantiles in Statistical Packages, type 8. Its estimate is approximately
median-unbiased for every continuous distribution. The usual definitions are not: with 100 values they report the 98th
percentile as the 99th.
"""

import math
from collections.abc import Sequence


def fewest_values(percent: float) -> int:
    """Return how many values a percentile needs. One of them is then expected beyond the percentile.

    They are 2 for the 50th percentile, 20 for the 95th and 100 for the 99th. Raises ValueError unless ``percent`` is
    from 50 to less than 100.
    """
    if not 50 <= percent < 100:
        raise ValueError(f"A percentile of few values is from 50 to less than 100, not {percent}.")
    return math.ceil(round(100 / (100 - percent), 9))


def sample_percentile(values: Sequence[float], percent: float) -> float:
    """Return the median-unbiased estimate of a percentile, in the unit of the values.

    Raises ValueError if there are too few values (`fewest_values`).
    """
    if len(values) < (fewest := fewest_values(percent)):
        raise ValueError(f"The percentile {percent:g} needs at least {fewest} values, not {len(values)}.")
    ordered = sorted(values)
    rank = (len(ordered) + 1 / 3) * percent / 100 + 1 / 3
    below = math.floor(rank)
    upper = ordered[min(below, len(ordered) - 1)]
    return ordered[below - 1] + (rank - below) * (upper - ordered[below - 1])
