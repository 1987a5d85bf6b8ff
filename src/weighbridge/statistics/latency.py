"""Latency as HDR histograms: one per run, merged per environment. Percentiles are never averaged.

Source: Tene, HdrHistogram; `weighbridge.statistics.histogram` does the counting.
"""

from __future__ import annotations

from collections.abc import Sequence

from weighbridge.statistics.comparison import compare
from weighbridge.statistics.cost import Better, Cost
from weighbridge.statistics.histogram import Histogram


def merge_histograms(histograms: Sequence[Histogram]) -> Histogram:
    """Give one histogram with the counts of all; those given stay as they are.

    It spans the widest range among them with the fewest significant figures, so no count is lost or invented.
    Raises ValueError where there is none.
    """
    if not len(histograms):
        raise ValueError("There is no histogram to merge.")
    merged = Histogram(
        min(each.lowest for each in histograms),
        max(each.highest for each in histograms),
        min(each.significant_figures for each in histograms),
    )
    for each in histograms:
        merged.add(each)
    return merged


def percentile(histogram: Histogram, percent: float) -> float:
    """Give the value, in the histogram's unit, at or below which `percent` (0 .. 100) of the counts are.

    Exact to the histogram's significant figures, by the nearest rank (at least the first).
    Raises ValueError for a percentage out of range or no counts.
    """
    return percentiles(histogram, [percent])[0]


def percentiles(histogram: Histogram, percents: Sequence[float]) -> list[float]:
    """Give several of them, in the order given, for about the price of the highest one."""
    for percent in percents:
        if not 0 <= percent <= 100:
            raise ValueError(f"A percentile is between 0 and 100, not {percent}.")
    if histogram.count == 0:
        raise ValueError("The histogram is empty: it has no percentiles.")
    return [float(value) for value in histogram.percentiles(percents)]


def compare_percentiles(
    baseline: Sequence[Histogram],
    other: Sequence[Histogram],
    percent: float,
    *,
    better: Better = "lower",
    confidence: float = 0.95,
    equivalence: float | None = None,
    looks: int = 1,
) -> Cost:
    """Give the cost at one percentile from one histogram per run, paired by block; see `compare`.

    The interval is that of the per-run log ratios, because requests within a run are not independent.
    The percentile to show for an environment is that of `merge_histograms`.
    Raises ValueError as `percentile` and `compare` do.
    """
    return compare(
        [percentile(each, percent) for each in baseline],
        [percentile(each, percent) for each in other],
        better=better,
        confidence=confidence,
        equivalence=equivalence,
        looks=looks,
    )
