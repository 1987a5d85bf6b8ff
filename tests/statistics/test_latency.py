"""HDR histograms: merging and percentiles."""

import numpy as np
import pytest

from weighbridge.statistics import Histogram, compare_percentiles, merge_histograms, percentile


def histogram(values, highest=60_000_000, figures=3):
    made = Histogram(1, highest, figures)
    for value in values:
        made.record(int(value))
    return made


def latencies(seed, scale=300.0, n=1000):
    return np.ceil(scale * np.exp(np.random.default_rng(seed).normal(0, 0.8, n))).astype(int)


def test_the_merge_holds_every_count_and_the_percentiles_of_all():
    runs = [latencies(seed, 300 * (1 + seed)) for seed in range(4)]
    made = [histogram(run) for run in runs]
    merged = merge_histograms(made)
    assert merged.count == 4000
    for percent in (0, 50, 90, 99, 99.5, 100):
        exact = np.quantile(np.concatenate(runs), percent / 100, method="inverted_cdf")
        assert percentile(merged, percent) == pytest.approx(exact, rel=0.005)
    assert merged.maximum == pytest.approx(max(run.max() for run in runs), rel=0.001)
    assert [each.count for each in made] == [1000] * 4  # unchanged
    averaged = np.mean([percentile(each, 99) for each in made])
    assert abs(averaged / percentile(merged, 99) - 1) > 0.05


def test_ranges_may_differ():
    merged = merge_histograms([histogram([10, 20], highest=1000), histogram([5_000_000], figures=2)])
    assert merged.count == 3
    assert percentile(merged, 100) == pytest.approx(5_000_000, rel=0.01)
    assert percentile(merged, 50) == pytest.approx(20, rel=0.01)


def test_an_empty_run_adds_nothing():
    merged = merge_histograms([histogram([]), histogram([7])])
    assert percentile(merged, 50) == 7


def test_nothing_to_say():
    with pytest.raises(ValueError, match="no histogram"):
        merge_histograms([])
    with pytest.raises(ValueError, match="empty"):
        percentile(histogram([]), 99)
    for wrong in (-1, 100.1):
        with pytest.raises(ValueError, match="between 0 and 100"):
            percentile(histogram([1]), wrong)


def test_the_interval_is_that_of_the_runs():
    baseline = [histogram(latencies(seed)) for seed in range(12)]
    other = [histogram(latencies(100 + seed, 360.0)) for seed in range(12)]
    cost = compare_percentiles(baseline, other, 50, equivalence=0.02, looks=8)
    assert (cost.blocks, cost.better, cost.verdict) == (12, "lower", "different")
    assert cost.low < 1.2 < cost.high
