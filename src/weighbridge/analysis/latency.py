"""Latency from HDR histograms, merged over the runs of an environment. Percentiles are never averaged.

A merged percentile covers all requests of all runs. Its cost compares the runs' own percentiles, paired by block,
because requests within a run are not independent. The cost belongs to no family and has no verdict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weighbridge.analysis.plan import Comparisons
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.errors import RunDirectoryError
from weighbridge.model.address import CellId, HasMetricId, MetricId
from weighbridge.statistics import Cost, Histogram, compare_percentiles, merge_histograms, percentiles
from weighbridge.store.blocks import complete_blocks
from weighbridge.store.run import RunStore, Value


@dataclass(frozen=True, slots=True)
class Latency:
    """The merged latency of one environment, with percentiles over all requests of all runs.

    ``costs`` compare the runs' own percentiles by block as the costs of metrics are compared. They are None without a
    pair, for the baseline itself, and for percentiles with too few requests beyond them.
    """

    environment: str
    runs: int
    requests: int
    percentiles: tuple[float, ...]
    """The percentiles in `weighbridge.analysis.latency.PERCENTS`, in seconds."""
    costs: tuple[Cost | None, ...]
    curve: tuple[tuple[float, float], ...]
    """Pairs of percent and seconds, closer and closer to 100%."""


@dataclass(frozen=True, slots=True)
class LatencyReport(HasMetricId):
    """Every environment's merged latency for one metric of one workload at one level."""

    metric_id: MetricId
    rows: tuple[Latency, ...]
    """One row per environment, in the study's order."""


PERCENTS = (50.0, 90.0, 99.0, 99.9)
"""The percentiles that are shown."""

BEYOND = 10
"""Requests that each run needs beyond a percentile before its cost is shown; fewer are left to chance."""

NANOSECONDS = 1e-9
"""Histograms count nanoseconds."""

DECADES, PER_DECADE = 5, 8


def latencies(
    store: RunStore, plan: Comparisons, cells: Sequence[CellId], trials: Sequence[TrialRow]
) -> tuple[LatencyReport, ...]:
    """Return the merged latencies of a run in the order of `cells`; none if no workload gives histograms.

    Raises RunDirectoryError for a histogram that cannot be read.
    """
    good = {trial.id: trial for trial in trials if trial.ok}
    by_metric: dict[MetricId, dict[int, Histogram]] = {}
    for number, metric, encoded in store.histograms():
        trial, histogram = good[number], _decode(encoded, number, metric)
        if histogram.count:
            by_metric.setdefault(MetricId(trial.cell, metric), {})[number] = histogram
    order = {cell: position for position, cell in enumerate(cells)}
    return tuple(
        LatencyReport(each, _environments(by_metric[each], each.metric, plan, good))
        for each in sorted(by_metric, key=lambda each: order.get(each.cell, len(order)))
    )


def _decode(encoded: str, trial: int, metric: str) -> Histogram:
    try:
        return Histogram.decode(encoded)
    except ValueError as error:
        raise RunDirectoryError(f"trial {trial}: the histogram of {metric} cannot be read: {error}") from error


def _environments(
    histograms: Mapping[int, Histogram], metric: str, plan: Comparisons, trials: Mapping[int, TrialRow]
) -> tuple[Latency, ...]:
    places = [_place(trials[each], metric) for each in histograms]
    rows = []
    for environment in plan.environments:
        mine = [histograms[each.trial_id] for each in places if each.environment == environment]
        if mine:
            merged = merge_histograms(mine)
            arms = (plan.against(environment), environment)
            blocks = complete_blocks(places, arms) if arms[0] != environment else []
            sides = [(histograms[first.trial_id], histograms[second.trial_id]) for first, second in blocks]
            rows.append(
                Latency(
                    environment,
                    len(mine),
                    merged.count,
                    tuple(NANOSECONDS * value for value in percentiles(merged, PERCENTS)),
                    tuple(_cost(sides, percent, plan) for percent in PERCENTS),
                    _curve(merged),
                )
            )
    return tuple(rows)


def _place(trial: TrialRow, metric: str) -> Value:
    """Return a trial's histogram as a value, so that blocks can be paired."""
    return Value(
        trial.id, trial.block, trial.attempt, trial.environment, trial.workload, trial.level, metric, "s", "lower",
        0.0, trial.started_at, trial.flags,
    )  # fmt: skip


def _cost(sides: Sequence[tuple[Histogram, Histogram]], percent: float, plan: Comparisons) -> Cost | None:
    fewest = min((each.count for pair in sides for each in pair), default=0)
    if fewest * (100 - percent) / 100 < BEYOND - 1e-6:
        return None
    first, second = [pair[0] for pair in sides], [pair[1] for pair in sides]
    return compare_percentiles(first, second, percent, equivalence=plan.equivalence, looks=plan.looks)


def _curve(histogram: Histogram) -> tuple[tuple[float, float], ...]:
    """Return points that are evenly spaced on the scale of 1 / (1 - share), up to the last request."""
    requests = histogram.count
    beyond = (10 ** (-step / PER_DECADE) for step in range(1, DECADES * PER_DECADE + 1))
    percents = [100 * (1 - share) for share in beyond if requests * share >= 1]
    values = percentiles(histogram, percents)
    return tuple((percent, NANOSECONDS * value) for percent, value in zip(percents, values, strict=True))
