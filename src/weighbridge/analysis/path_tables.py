"""The tables of the network paths of a run, with the figures of the workloads that use them."""

from collections.abc import Mapping
from dataclasses import dataclass

from weighbridge.analysis.paths import ClientPlace
from weighbridge.analysis.results import Analysis
from weighbridge.model.facts import NetworkPath
from weighbridge.model.measurement import ALL_CPU, RETRANSMITS, SOFTIRQ_SHARE, SWITCHES

FIGURES = (RETRANSMITS, SOFTIRQ_SHARE, ALL_CPU, SWITCHES)
"""Prefixes of the metrics that show how a path works, in display order."""


@dataclass(frozen=True, slots=True)
class PathMechanism:
    """One environment: its path, and the medians of the figures in the order of `PathTable.metrics`."""

    environment: str
    path: NetworkPath
    figures: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class PathTable:
    """The paths of all environments for the clients on one host, with the figures of one workload.

    ``client`` is that host and ``place`` its position; empty and None if all clients are on one host. ``metrics`` has
    the names and units of the figures.
    """

    client: str
    place: ClientPlace | None
    label: str
    metrics: tuple[tuple[str, str], ...]
    rows: tuple[PathMechanism, ...]


def path_tables(analysis: Analysis) -> tuple[PathTable, ...]:
    """Return a table for each workload that needs a network, in the order of the report."""
    paths, several = analysis.paths, len(analysis.paths.clients) > 1
    tables = []
    for label in analysis.labels:
        reports = analysis.of(label)
        if not reports or not paths.needed(reports[0].workload):
            continue
        client = paths.client_of(reports[0].level)
        shown = [report for start in FIGURES for report in reports if report.metric.startswith(start)]
        figures: list[Mapping[str, float | None]] = [
            analysis.references(report) | {row.environment: row.value for row in report.comparisons}
            for report in shown
        ]
        rows = [
            PathMechanism(name, path, tuple(each.get(name) for each in figures))
            for name in analysis.environments
            if (path := paths.by_environment.get((name, client))) is not None
            and name in {*analysis.references(reports[0]), *(row.environment for row in reports[0].comparisons)}
            and name != analysis.aa_arm
        ]
        metrics = tuple((report.metric, report.unit) for report in shown)
        where, place = (client, paths.place(client)) if several else ("", None)
        tables.append(PathTable(where, place, label, metrics, tuple(rows)))
    return tuple(tables)
