"""What changes on the path: each environment's network path beside what the trials used of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from weighbridge.analysis.paths import ClientPlace
from weighbridge.analysis.results import Analysis
from weighbridge.model.facts import NetworkPath

FIGURES = ("tcp_retransmits_per_", "softirq_share", "cpu_all_per_", "context_switches_per_")
"""How the names of the metrics begin that tell how a path works, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One environment: its path, and the medians of the figures in the order of `PathTable.metrics`."""

    environment: str
    path: NetworkPath
    figures: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class PathTable:
    """The paths of all environments for the clients on one host, with the figures of one workload.

    ``client`` is that host and ``place`` where that is; empty and None where all clients are on one.
    ``metrics`` are name and unit of the figures.
    """

    client: str
    place: ClientPlace | None
    label: str
    metrics: tuple[tuple[str, str], ...]
    rows: tuple[Mechanism, ...]


def path_tables(analysis: Analysis) -> tuple[PathTable, ...]:
    """Give a table for each workload that needs a network, in the order of the report."""
    paths, several = analysis.paths, len(analysis.paths.clients) > 1
    found = []
    for label in analysis.labels:
        reports = analysis.of(label)
        if not reports or not paths.needed(reports[0].workload):
            continue
        client = paths.client_of(reports[0].level)
        shown = [report for start in FIGURES for report in reports if report.metric.startswith(start)]
        figures: list[Mapping[str, float | None]] = [
            {analysis.baseline: report.baseline_value} | {row.environment: row.value for row in report.comparisons}
            for report in shown
        ]
        rows = [
            Mechanism(name, path, tuple(each.get(name) for each in figures))
            for name in analysis.environments
            if (path := paths.known.get((name, client))) is not None
            and name in {analysis.baseline, *(row.environment for row in reports[0].comparisons)}
            and name != analysis.aa_arm
        ]
        metrics = tuple((report.metric, report.unit) for report in shown)
        where, place = (client, paths.place(client)) if several else ("", None)
        found.append(PathTable(where, place, label, metrics, tuple(rows)))
    return tuple(found)
