"""Flags for suspicious values and for drift in a series of runs. Flags accompany a number; they never change it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weighbridge.statistics.cost import Floats
from weighbridge.statistics.distributions import beta_cdf
from weighbridge.statistics.ranks import kendall_against_order, mid_ranks, signed_rank_p_value

OUTLIER = 5 * 1.4826
"""Distance from the median, in median absolute deviations, from which a value is flagged (5 SD of a normal)."""

OUTLIERS_FROM = 8
"""Number of values from which outliers are flagged: with fewer, the MAD is too uncertain."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A statistic of one series in run order with its p-value, not corrected for the number of series of a run."""

    statistic: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Flags:
    """The outliers, the drift and the autocorrelation of a series of runs."""

    outliers: tuple[int, ...]
    """Positions (from 0) of values with ``|x - median| > 5 * 1.4826 * MAD``; none below 8 values or with a MAD
    of 0."""
    drift: Trend | None
    """Kendall's tau against run order (-1 .. 1), two-sided; None with fewer than 5 values or a constant series."""
    autocorrelation: Trend | None
    """Rank von Neumann ratio (2 is independent, near 0 is sticky), one-sided; None with fewer than 10 or constant."""


def flags(values: Sequence[float]) -> Flags:
    """Return outliers, drift and autocorrelation of `values`, which are in run order.

    No value is dropped. Outliers are only flagged from 8 values on, because the MAD of fewer is too uncertain, and
    only if at most half of the values are equal: a MAD of 0 reflects the resolution of the metric, not its spread.
    Raises ValueError for values that are not finite.
    """
    series = np.asarray(values, dtype=np.float64)
    if not np.isfinite(series).all():
        raise ValueError("Every value must be finite: a missing or failed measurement cannot be flagged.")
    if not series.size:
        return Flags((), None, None)
    distance = np.abs(series - _median(series))
    spread = float(_median(distance))
    informative = series.size >= OUTLIERS_FROM and spread > 0
    outliers = tuple(int(i) for i in np.flatnonzero(distance > OUTLIER * spread)) if informative else ()
    if np.all(series == series[0]):
        return Flags(outliers, None, None)
    return Flags(
        outliers,
        _drift(series) if series.size >= 5 else None,
        _autocorrelation(series) if series.size >= 10 else None,
    )


def _median(values: Floats) -> np.float64:
    """Return the median; numpy.median needs ten times as long for a few values."""
    ordered, middle = np.sort(values), values.size // 2
    return np.float64(ordered[middle] if values.size % 2 else (ordered[middle - 1] + ordered[middle]) / 2)


def _drift(series: Floats) -> Trend:
    """Test for a monotone trend (Kendall 1938; Mann, Econometrica 13 (1945))."""
    tau, p_value = kendall_against_order(series)
    return Trend(tau, p_value)


def _autocorrelation(series: Floats) -> Trend:
    """Test for positive serial correlation by ranks, with the beta approximation to the null distribution.

    Source: Bartels, "The rank version of von Neumann's ratio test for randomness", JASA 77 (1982).
    """
    n = series.size
    ranks = mid_ranks(series)
    ratio = float(np.sum(np.diff(ranks) ** 2) / np.sum((ranks - ranks.mean()) ** 2))
    shape = 5 * n * (n + 1) * (n - 1) ** 2 / (2 * (n - 2) * (5 * n * n - 2 * n - 9)) - 0.5
    p_value = beta_cdf(shape, shape, min(1.0, ratio / 4))
    return Trend(ratio, p_value)


# -- the place of a run in its block ---------------------------------------------------------------

Placed = tuple[float, str, float]
"""A run's place in its block, its environment, and its value."""

POLISHED = 3
"""The rounds of median polish; for complete blocks, more rounds change nothing relevant."""


def place_slopes(blocks: Sequence[Sequence[Placed]]) -> list[float]:
    """Return for each block the rise of a value from one place to the next.

    The slope is computed on the residuals of the values (of their logarithms if all are positive) after Tukey's
    median polish, which removes the medians of environments and blocks. So neither an environment that happened to be
    first nor a drift from block to block affects it. Every order within a block is as likely as its reverse: without
    an effect of the place, the slopes are symmetric around 0 for any noise, and `place_p_value` is exact. Blocks with
    a single run are skipped. Raises ValueError for values that are not finite.
    """
    values = [value for block in blocks for _, _, value in block]
    if not np.isfinite(values).all():
        raise ValueError("Every value must be finite: a missing or failed measurement has no effect.")
    if not values:
        return []
    names = sorted({name for block in blocks for _, name, _ in block})
    logs = min(values) > 0
    table = np.full((len(blocks), len(names)), np.nan)
    places = np.full_like(table, np.nan)
    for row, block in enumerate(blocks):
        for place, name, value in block:
            column = names.index(name)
            table[row, column], places[row, column] = np.log(value) if logs else value, place
    comparable = np.isfinite(table).sum(axis=1) > 1
    table, places = table[comparable], places[comparable]
    table, places = (each[:, np.isfinite(table).any(axis=0)] for each in (table, places))
    if not table.size:
        return []
    for _ in range(POLISHED):
        table -= _medians(table, axis=1)
        table -= _medians(table, axis=0)
    places -= np.nanmean(places, axis=1, keepdims=True)
    slopes: list[float] = (np.nansum(places * table, axis=1) / np.nansum(places**2, axis=1)).tolist()
    return slopes


def _medians(table: Floats, axis: int) -> Floats:
    """Return the medians along an axis, ignoring NaN and keeping the axis; nanmedian needs ten times as long."""
    ordered, count = np.sort(table, axis=axis), np.isfinite(table).sum(axis=axis, keepdims=True)  # NaN is sorted last
    low, high = (np.take_along_axis(ordered, places, axis=axis) for places in ((count - 1) // 2, count // 2))
    return np.asarray((low + high) / 2)


def place_p_value(slopes: Sequence[float]) -> float:
    """Return the exact two-sided p-value of "the place of a run in its block has no effect", by signed ranks."""
    return signed_rank_p_value(np.asarray(slopes, dtype=np.float64)) if slopes else 1.0
