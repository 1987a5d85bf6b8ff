"""The state of a run as Prometheus metrics, named by the conventions of Prometheus.

Metrics use base units, and counters end in _total. The results of a workload keep the unit of the report as a label,
and the names of readings end in their unit. Every metric of an environment has labels for its hypervisors and for
emulation.
"""

import math
from collections.abc import Callable, Iterator
from importlib import metadata
from statistics import fmean

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from weighbridge.features.monitoring.snapshot import Snapshot, Where, where
from weighbridge.report.export.metric_labels import CELL, LAYERS, PREFIX, environment_labels

TRIAL = (*CELL, "block", "attempt")
READING = (*CELL, "place", "name")
COMPARED = ("cell", *LAYERS)


class Families:
    """A collector of the client library, which reads the state of the run only when Prometheus scrapes it.

    The metrics are cached until the state changes.
    """

    def __init__(self, now: Callable[[], Snapshot], study: str = "") -> None:
        self._now = now
        self._about = (metadata.version("weighbridge"), study)
        self._cached: tuple[Snapshot, tuple[Metric, ...]] | None = None

    def collect(self) -> tuple[Metric, ...]:
        """Return every metric."""
        moment, cached = self._now(), self._cached
        if cached is None or cached[0] is not moment:
            self._cached = cached = moment, tuple(self._families_of(moment))
        return cached[1]

    def _families_of(self, moment: Snapshot) -> Iterator[Metric]:
        info = _gauge("info", "Study that is running, and version of Weighbridge", ("version", "study"))
        info.add_metric(self._about, 1)
        yield info
        yield from _progress(moment)
        yield from _current(moment)
        yield from _results(moment)
        yield from _last_readings(moment)
        yield from _precision(moment)


def _gauge(
    name: str, description: str, labels: tuple[str, ...] = (), value: float | None = None
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(PREFIX + name, description, labels=labels)
    if value is not None:
        family.add_metric((), value)
    return family


def _named(environment: str, moment: Snapshot) -> tuple[str, str, str]:
    """Return the values of the labels `LAYERS`."""
    return environment_labels(environment, moment.layers.get(environment, ()))


def _cell(place: Where, moment: Snapshot) -> tuple[str, ...]:
    """Return the values of the labels `CELL`."""
    workload, level, environment = place
    return workload, level, *_named(environment, moment)


def _progress(moment: Snapshot) -> Iterator[Metric]:
    yield _gauge("run_start_time_seconds", "Start of this command, since the epoch", value=moment.begun_at)
    yield _gauge("trials_planned", "Expected number of trials", value=moment.planned)
    yield _gauge("trials_done", "Trials that ended, including those before an interruption", value=moment.finished)
    yield _gauge("block", "Current or last round", value=moment.block)
    ended = CounterMetricFamily(f"{PREFIX}trials", "Trials that ended since this command began", labels=("outcome",))
    for outcome, count in moment.outcomes.items():
        ended.add_metric((str(outcome),), count)
    yield ended


def _current(moment: Snapshot) -> Iterator[Metric]:
    info = _gauge("trial_info", "Trial that is running; absent between trials", TRIAL)
    began = _gauge("trial_start_time_seconds", "Start of the running trial, since the epoch", (*CELL, "block"))
    if (trial := moment.current) is not None:
        labels = _cell(where(trial), moment)
        info.add_metric((*labels, str(trial.block), str(trial.attempt)), 1)
        began.add_metric((*labels, str(trial.block)), moment.current_began_at)
    yield info
    yield began


def _results(moment: Snapshot) -> Iterator[Metric]:
    durations = _gauge("trial_duration_seconds", "Duration of the last trial", CELL)
    measured = _gauge("trial_measured_seconds", "Run time of its measured process", CELL)
    for place, (lasted, ran) in moment.lasted.items():
        durations.add_metric(_cell(place, moment), lasted)
        if ran is not None:
            measured.add_metric(_cell(place, moment), ran)
    yield durations
    yield measured
    values = _gauge("measurement", "Last value of each metric, in its unit", (*CELL, "metric", "unit"))
    for (place, metric), measurement in moment.measurements.items():
        values.add_metric((*_cell(place, moment), metric, measurement.metric.unit), measurement.value)
    yield values


def _last_readings(moment: Snapshot) -> Iterator[Metric]:
    samples = _gauge("sample", "Resources used in the last trial, by place; the name ends in the unit", READING)
    means = _gauge("meter_mean", "Mean of the meters' readings in the last trial, by place", READING)
    if (last := moment.last) is not None:
        labels = _cell(where(last.trial), moment)
        for (place, name), value in {(place, name): value for place, name, value in last.samples}.items():
            samples.add_metric((*labels, place, name), value)
        for (place, name), values in {(each.place, each.name): each.values for each in last.series}.items():
            if values:
                means.add_metric((*labels, place, name), fmean(values))
    yield samples
    yield means


def _precision(moment: Snapshot) -> Iterator[Metric]:
    yield _gauge("precision_blocks", "Rounds at the last interim look", value=moment.looked_after)
    width = _gauge("precision_ratio", "Half-width of a comparison's interval (0.02 is 2%)", COMPARED)
    reached = _gauge("precision_reached", "Whether a comparison has reached the target precision", COMPARED)
    blocks = _gauge("precision_predicted_blocks", "Rounds that a comparison needs, if known", COMPARED)
    for (cell, environment), status in moment.statuses.items():
        labels = (cell, *_named(environment, moment))
        if math.isfinite(status.width):
            width.add_metric(labels, status.width)
        reached.add_metric(labels, float(status.reached))
        if status.predicted_blocks is not None:
            blocks.add_metric(labels, status.predicted_blocks)
    yield from (width, reached, blocks)
