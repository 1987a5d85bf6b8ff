"""The times of many starts in one trial: their geometric mean, and percentiles if there are enough of them."""

from collections.abc import Sequence
from statistics import geometric_mean

from weighbridge.model.measurement import Measurement, Metric
from weighbridge.statistics import fewest_values, sample_percentile

PERCENTILES = (50, 95, 99)
"""The percentiles of starts. They need 2, 20 and 100 starts in each trial (`weighbridge.statistics`)."""


def percentiles_of(metric: Metric, starts: int) -> tuple[Metric, ...]:
    """Return the metrics of the percentiles that a trial has with this number of starts."""
    possible = [percent for percent in PERCENTILES if starts >= fewest_values(percent)]
    return tuple(Metric(f"{metric.name}_p{percent}", metric.unit, metric.better) for percent in possible)


def mean_of(metric: Metric, times: Sequence[float]) -> Measurement:
    """Return the geometric mean of times, which are not empty and above 0."""
    return Measurement(metric, geometric_mean(times))


def measured_percentiles(metric: Metric, times: Sequence[float]) -> tuple[Measurement, ...]:
    """Return the values of `percentiles_of`."""
    metrics = percentiles_of(metric, len(times))
    return tuple(
        Measurement(each, sample_percentile(times, percent))
        for each, percent in zip(metrics, PERCENTILES, strict=False)
    )
