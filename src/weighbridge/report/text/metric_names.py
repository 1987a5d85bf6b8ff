"""Metrics as people read them."""

import re

from weighbridge.analysis.resources import is_resource_use
from weighbridge.analysis.results import MetricReport

ABOUT = {"one_way_latency": "derived: half of 1/rate", "memory_usage": "committed, used or not"}
"""What a metric is computed from where its name would be taken for more, or for another thing."""

ALL, ALL_WORDS = "cpu_all_per_", "cpu of all of the machine beyond idle per "
"""How the names of metrics begin that tell the CPU time of all who worked, and how they are read."""


SPELLED = {"cpu": "CPU", "gbit": "Gbit"}
"""Words that are not written in small letters."""


def metric_words(metric: str) -> str:
    """Return a metric's name in words: ``p99 latency``, ``one way latency (derived: half of 1/rate)``."""
    words = " ".join(SPELLED.get(word, word) for word in metric.replace(ALL, ALL_WORDS).replace("_", " ").split(" "))
    return f"{words} ({ABOUT[metric]})" if metric in ABOUT else words


def metric_label(workload: str, metric: str, unit: str) -> str:
    """Return a metric's label beside its workload's: the words that the workload has not, a rate by its unit.

    ``requests/s`` for ``set_throughput`` of ``redis-set``, ``mean`` for ``latency_mean`` of ``latency``.
    """
    if is_resource_use(metric) or metric in ABOUT:
        return metric_words(metric)
    said = set(re.split(r"[-_ ]", workload))
    kept = [word for word in metric.split("_") if word not in said]
    words = metric_words("_".join(kept or [metric]))
    counted = unit.removesuffix("/s")
    return unit if counted in ("requests", "transactions") and words in ("throughput", counted) else words


def titled(label: str, workload: str, metric: str, unit: str) -> str:
    """Return a metric's title, its workload and level once: ``redis-set · requests/s``, ``jitter`` of ``jitter``."""
    name = metric_label(workload, metric, unit)
    return label if name == workload else f"{label} · {name}"


def metric_title(report: MetricReport) -> str:
    """Return workload, level and metric: ``tcp · throughput``."""
    return titled(report.label, report.workload, report.metric, report.unit)


def metric_phrase(report: MetricReport) -> str:
    """Return the same inside a sentence: ``tcp throughput``."""
    return metric_title(report).replace(" · ", " ")


def metric_name(report: MetricReport) -> str:
    """Return the metric, where workload and level are said already."""
    return metric_label(report.workload, report.metric, report.unit)
