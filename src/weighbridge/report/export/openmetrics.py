"""The costs of a finished run as OpenMetrics text, for node_exporter's textfile folder and for the Pushgateway.

Both read Prometheus's older text format. Gauges without timestamps are the same in both formats, and the lines
``# UNIT`` and ``# EOF`` are comments in the older one. Neither program accepts timestamps, so the time of the run is
a metric.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.conditions import NO_HYPERVISOR
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.run_result import VERDICT_CODES
from weighbridge.model.text import printable
from weighbridge.report.export.metric_labels import CELL, PREFIX, environment_labels
from weighbridge.report.export.provenance import provenance
from weighbridge.store.run import RunStore

COST = ("study", *CELL, "against", "metric")
"""The labels of a cost. Every metric has the study, so that files of several studies can be in one folder.

``against`` is the environment that the cost is compared with: the baseline, or the base of a head.
"""


@dataclass(frozen=True, slots=True)
class RunMetric:
    """A metric: its name without `PREFIX`, and without its unit's own line if ``unit`` is empty."""

    name: str
    description: str
    labels: tuple[str, ...]
    unit: str = ""


FAMILIES = (
    RunMetric(
        "result_info",
        "Finished run, its kernel, and the version of Weighbridge that measured it",
        ("study", "baseline", "run", "version", "kernel"),
    ),
    RunMetric("result_start_time_seconds", "Start of the run, since the epoch", ("study",), "seconds"),
    RunMetric("control_passed", "Whether the control passed; absent without a usable control", ("study",)),
    RunMetric(
        "noise_floor_ratio",
        "Noise floor of a primary metric (0.02 is 2%)",
        ("study", "workload", "level", "metric"),
        "ratio",
    ),
    RunMetric("cost_ratio", "Cost on a primary metric, positive is worse (0.02 is 2%)", COST, "ratio"),
    RunMetric("cost_low_ratio", "Lower limit of the cost's interval", COST, "ratio"),
    RunMetric("cost_high_ratio", "Upper limit of the cost's interval", COST, "ratio"),
    RunMetric("cost_difference", "Cost as a difference in the unit, positive is worse", (*COST, "unit")),
    RunMetric("cost_low_difference", "Lower limit of the difference's interval", (*COST, "unit")),
    RunMetric("cost_high_difference", "Upper limit of the difference's interval", (*COST, "unit")),
    RunMetric("cost_verdict_info", "Verdict: significant, equivalent, undecided or hidden", (*COST, "verdict")),
)
LIMITS = ("", "low_", "high_")
"""The parts of the names of a cost and of the limits of its interval."""

Labelled = tuple[str, tuple[str, ...]]
"""The name of a metric, and the values of its labels."""


def openmetrics(store: RunStore, analysis: Analysis) -> str:
    """Return the costs of the primary metrics with their intervals and verdicts, the control and the time of the run.

    A run whose control failed has verdicts but no costs. Infinite limits are left out.
    """
    samples: dict[Labelled, float] = {}  # hidden characters can make two names equal, which readers refuse
    for name, labels, value in _samples(store, analysis):
        if value is not None and math.isfinite(value):
            samples[name, tuple(map(printable, labels))] = value
    families = {
        each.name: GaugeMetricFamily(PREFIX + each.name, each.description, labels=each.labels, unit=each.unit)
        for each in FAMILIES
    }
    for (name, labels), value in samples.items():
        families[name].add_metric(labels, value)
    used = [family for family in families.values() if family.samples]
    text: bytes = generate_latest(SimpleNamespace(collect=lambda: used))  # type: ignore[no-untyped-call]
    return text.decode()


def _samples(store: RunStore, analysis: Analysis) -> Iterator[tuple[str, tuple[str, ...], float | None]]:
    study, trusted, origin = analysis.study, analysis.trust.trusted, provenance(store)
    versions = origin.versions.weighbridge or "", origin.kernel or ""
    yield "result_info", (study, analysis.baseline, analysis.run_id, *versions), 1.0
    if origin.date is not None:
        yield "result_start_time_seconds", (study,), datetime.fromisoformat(origin.date).timestamp()
    if trusted is not None:
        yield "control_passed", (study,), float(trusted)
    for report in analysis.headlines:
        place = study, report.workload, report.level.label
        yield "noise_floor_ratio", (*place, report.metric), report.noise_floor
        for row in (each for each in report.comparisons if not each.aa):
            sites = analysis.isolation.get(row.environment, NO_HYPERVISOR).sites
            labels = *place, *environment_labels(row.environment, sites), row.against, report.metric
            yield "cost_verdict_info", (*labels, VERDICT_CODES[row.verdict]), 1.0
            if (cost := row.usable_cost) is None or trusted is False:
                continue
            numbers = cost.penalty.estimate, cost.penalty.low, cost.penalty.high
            for part, number in zip(LIMITS, numbers, strict=True):
                if cost.scale == "ratio":
                    yield f"cost_{part}ratio", labels, number / 100
                else:
                    yield f"cost_{part}difference", (*labels, difference_unit(report.unit)), number
