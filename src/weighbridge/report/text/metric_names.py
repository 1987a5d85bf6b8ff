"""Metrics as people read them: the only module that turns names of metrics and loads into words; column units."""

import math
import re
from collections.abc import Iterable

from weighbridge.analysis.program_use import GUEST_CPU, GUEST_STEAL, SITE_CPU
from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.model.measurement import (
    ALL_CPU,
    MEMORY_USAGE,
    RETRANSMITS,
    SOFTIRQ_SHARE,
    SWITCHES,
    is_resource_use,
)
from weighbridge.model.stored_study import ENTRY
from weighbridge.report.text.formatting import Shown, shared_unit

ABOUT = {"one_way_latency": "derived: half of 1/rate", MEMORY_USAGE: "committed, used or not"}
"""Metrics whose names could be mistaken for something else, with how they are computed."""

ALL_WORDS = "whole-machine cpu above idle per "
"""The beginning of the name of the CPU time of all hosts."""

COLUMNS = {
    RETRANSMITS: "retransmits",
    SOFTIRQ_SHARE: "softirq share",
    ALL_CPU: "CPU of the machine",
    SWITCHES: "context switches",
}
"""Heads of narrow columns for metrics of resource use, by the beginning of their names; the unit follows."""

PROGRAM_COLUMNS = {
    "program_cpu_user_s": "CPU, user",
    "program_cpu_system_s": "CPU, system",
    SITE_CPU: "CPU, whole site",
    GUEST_CPU: "CPU, guest's view",
    GUEST_STEAL: "steal, guest's view",
    "program_peak_bytes": "peak memory",
    "program_switches": "context switches",
    "program_preemptions": "preemptions",
    "program_minor_faults": "minor faults",
    "program_major_faults": "major faults",
    "program_outside_s": "wall time from outside",
}
"""The figures of each program and of its site, as heads of columns in their order."""

LOAD_UNITS = {"rate": "requests/s"}
"""Units of loads whose option is not named after the unit: "400 connections", but "400 requests/s"."""

PROTOCOLS = {"tcp": "TCP", "udp": "UDP", "http": "HTTP"}
"""Workloads that are named after a protocol, which is written in capital letters."""

SPELLED = {"c": "C", "cpu": "CPU", "gbit": "Gbit", "javascript": "JavaScript", "python": "Python", **PROTOCOLS}
"""Words that are not written in small letters."""

RUN_TIME = "run time"
"""The name of the time of a command that is the whole workload."""
_COMMAND = ("command", "time")
_ENTRY = (ENTRY, "time_to_ready")
_ENTRY_TIME = "start time of a command"
"""The time to ready of a command that does nothing, next to the run time of a program."""


def metric_words(metric: str) -> str:
    """Return a metric's name in words: ``p99 latency``, ``one way latency (derived: half of 1/rate)``."""
    words = metric.replace(ALL_CPU, ALL_WORDS).replace("_", " ").split(" ")
    name = " ".join(SPELLED.get(word, word) for word in words)
    return f"{name} ({ABOUT[metric]})" if metric in ABOUT else name


def column_head(metric: str, unit: str) -> str:
    """Return a metric of `COLUMNS` as the head of a column, with its unit: ``CPU of the machine, s/Gbit``."""
    words = next(words for start, words in COLUMNS.items() if metric.startswith(start))
    return f"{words}, {unit.replace('1/', 'per ')}"


def load_words(load: str) -> str:
    """Return a load as the title of an axis: ``connections``; ``rate, requests/s``."""
    words = load.replace("_", " ")
    return f"{words}, {LOAD_UNITS[load]}" if load in LOAD_UNITS else words


def load_unit(load: str, *, one: bool = False) -> str:
    """Return the unit after a number of a load: ``connections``, with `one` ``connection``; ``requests/s``."""
    words = load.replace("_", " ")
    return LOAD_UNITS.get(load, words.removesuffix("s") if one else words)


def metric_label(workload: str, metric: str, unit: str) -> str:
    """Return a metric's label next to its workload's: without the words of the workload, and a rate by its unit.

    ``requests/s`` for ``set_throughput`` of ``redis-set``, ``mean`` for ``latency_mean`` of ``latency``.
    """
    if is_resource_use(metric) or metric in ABOUT:
        return metric_words(metric)
    if (workload, metric) == _ENTRY:
        return _ENTRY_TIME
    workload_words = set(re.split(r"[-_ ]", workload))
    own_words = [word for word in metric.split("_") if word not in workload_words]
    words = metric_words("_".join(own_words or [metric]))
    counted = unit.removesuffix("/s")
    return unit if counted in ("requests", "transactions") and words in ("throughput", counted) else words


def titled(label: str, workload: str, metric: str, unit: str) -> str:
    """Return a metric's title, its workload and level once: ``redis-set · requests/s``, ``jitter`` of ``jitter``."""
    name, spelled = metric_label(workload, metric, unit), label_words(label, workload)
    if (label, metric) == _COMMAND:
        return RUN_TIME
    if name == workload:
        return spelled
    if (label, metric) == _ENTRY:
        return name
    return f"{spelled} {name}" if workload in PROTOCOLS and label == workload else f"{spelled} · {name}"


def label_words(label: str, workload: str) -> str:
    """Return a workload's label with its level as people write it: ``TCP`` for ``tcp``."""
    rest = label.removeprefix(workload)
    return f"{PROTOCOLS[workload]}{rest}" if workload in PROTOCOLS and rest != label else label


def metric_title(report: MetricReport) -> str:
    """Return workload, level and metric: ``TCP throughput``, ``web (connections=3) · requests/s``."""
    return titled(report.label, report.workload, report.metric, report.unit)


def metric_phrase(report: MetricReport) -> str:
    """Return the same inside a sentence: ``TCP throughput``, ``web (connections=3) requests/s``."""
    return metric_title(report).replace(" · ", " ")


def metric_name(report: MetricReport) -> str:
    """Return the metric alone, for a place that names workload and level already."""
    return metric_label(report.workload, report.metric, report.unit)


# -- units: one for all values of a column, so that rows can be compared by eye --------------------


def value_unit(*reports: MetricReport) -> Shown:
    """Return the unit for the values of one metric at one level, or at several."""
    values = [row.value for report in reports for row in report.comparisons]
    return shared_unit([*(report.baseline_value for report in reports), *values], reports[0].unit)


def difference_unit_of(rows: Iterable[Comparison], unit: str) -> Shown:
    """Return the unit for the costs of one metric in `unit` that are differences."""
    costs = [row.cost for row in rows if row.cost is not None and row.cost.scale == "difference" and not row.few]
    ends = [[abs(each) for each in (cost.typical, cost.low, cost.high) if math.isfinite(each)] for cost in costs]
    return shared_unit([max(each) for each in ends if each], unit)
