"""The network paths of a run: in what they differ besides the isolation, and what the trials used of them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from weighbridge.model.address import CellId
from weighbridge.model.facts import NetworkPath
from weighbridge.model.level import Level
from weighbridge.model.measurement import ALL_CPU, RETRANSMITS, SOFTIRQ_SHARE, SWITCHES
from weighbridge.model.study import CLIENT

if TYPE_CHECKING:
    from weighbridge.analysis.results import Analysis


SCOPE = "path"
"""Scope of the facts: "ENVIRONMENT@HOST OF THE CLIENT" -> the path as JSON (`model.facts.NetworkPath`)."""

SAME_MSS = 0.05
"""Relative difference of two MSS up to which they are the same: a header's option more or less."""


@dataclass(frozen=True, slots=True)
class ClientPlace:
    """Where clients are; ``host`` names theirs where that tells it from others."""

    kind: Literal["this-machine", "beside-the-server", "elsewhere", "on-a-host"]
    host: str = ""


@dataclass(frozen=True, slots=True)
class PathFigures:
    """The figures of a path that are compared with another path's."""

    loopback: bool
    mtu: int | None
    mss: int | None
    segmentation: bool | None

    @classmethod
    def of(cls, path: NetworkPath) -> "PathFigures":
        """Return the figures of a path."""
        kind = ProxiedFigures if path.translation == "proxy" else cls
        return kind(path.loopback, path.mtu, path.mss, path.segmentation)


@dataclass(frozen=True, slots=True)
class ProxiedFigures(PathFigures):
    """The same where the client's connection ends at a proxy: the MSS is that of the connection to it."""


@dataclass(frozen=True, slots=True)
class PathDifference:
    """A path that differs from that of ``baseline``."""

    here: PathFigures
    there: PathFigures
    baseline: str


@dataclass(frozen=True, slots=True)
class Paths:
    """Every path of a run that is known, by environment and host of the client.

    ``networked`` are the workloads that need a path; None where the run is from before paths were recorded.
    """

    by_environment: Mapping[tuple[str, str], NetworkPath] = field(default_factory=dict)
    networked: frozenset[str] | None = None
    local: str = "here"
    """The name of this machine among the study's hosts."""
    server: str = "here"
    """The name of the server's host."""

    def place(self, client: str) -> ClientPlace:
        """Where the clients on a host are."""
        if client == self.local:
            return ClientPlace("this-machine")
        if client == self.server:
            return ClientPlace("beside-the-server", client)
        return ClientPlace("elsewhere") if len(self.clients) <= 2 else ClientPlace("on-a-host", client)

    @property
    def clients(self) -> tuple[str, ...]:
        """The hosts of clients, in the order in which their paths were probed."""
        return tuple(dict.fromkeys(client for _, client in self.by_environment))

    def client_of(self, level: Level) -> str:
        """The host of the client at a level, which is the only one where the study has only one."""
        chosen = level.value_of(CLIENT)
        return chosen if chosen in self.clients else next(iter(self.clients), "")

    def of(self, environment: str, level: Level) -> NetworkPath | None:
        """The path of an environment at a level."""
        return self.by_environment.get((environment, self.client_of(level)))

    def needed(self, workload: str) -> bool:
        """Whether a workload needs a path and the run recorded paths."""
        return self.networked is not None and workload in self.networked

    def missing(self, cell: CellId, *environments: str) -> bool:
        """Whether a comparison of these environments lacks the path of one of them: then it is none."""
        return self.needed(cell.workload) and any(self.of(name, cell.level) is None for name in environments)

    def difference(self, cell: CellId, environment: str, baseline: str) -> PathDifference | None:
        """In what an environment's path differs from the baseline's; None where in nothing."""
        one, other = self.of(environment, cell.level), self.of(baseline, cell.level)
        if not self.needed(cell.workload) or one is None or other is None or environment == baseline:
            return None
        figures, baseline_figures = PathFigures.of(one), PathFigures.of(other)
        if (
            figures.loopback and baseline_figures.loopback
        ):  # whose MSS follows the window, from one connection to the next
            return None
        unlike = (
            figures.loopback != baseline_figures.loopback
            or figures.mtu != baseline_figures.mtu
            or not _same_mss(figures.mss, baseline_figures.mss)
        )
        unlike = unlike or {figures.segmentation, baseline_figures.segmentation} == {True, False}
        return PathDifference(figures, baseline_figures, baseline) if unlike else None


def paths_of(facts: Iterable[tuple[str, str, str, float]], info: Mapping[str, str]) -> Paths:
    """Give the paths from a run's facts and keys; what cannot be read is not known."""
    paths = {}
    for scope, key, value, _ in facts:
        environment, _, client = key.rpartition("@")
        if scope == SCOPE and environment:
            try:
                paths[environment, client] = NetworkPath.model_validate_json(value)
            except ValidationError:
                continue
    networked = frozenset(map(str, json.loads(info["networked"]))) if "networked" in info else None
    return Paths(paths, networked, info.get("local_host", "here"), info.get("server_host", "here"))


def _same_mss(one: int | None, other: int | None) -> bool:
    if one is None or other is None:
        return one == other
    return abs(one - other) <= SAME_MSS * max(one, other)


FIGURES = (RETRANSMITS, SOFTIRQ_SHARE, ALL_CPU, SWITCHES)
"""How the names of the metrics begin that tell how a path works, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class PathMechanism:
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
    rows: tuple[PathMechanism, ...]


def path_tables(analysis: "Analysis") -> tuple[PathTable, ...]:
    """Give a table for each workload that needs a network, in the order of the report."""
    paths, several = analysis.paths, len(analysis.paths.clients) > 1
    tables = []
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
            PathMechanism(name, path, tuple(each.get(name) for each in figures))
            for name in analysis.environments
            if (path := paths.by_environment.get((name, client))) is not None
            and name in {analysis.baseline, *(row.environment for row in reports[0].comparisons)}
            and name != analysis.aa_arm
        ]
        metrics = tuple((report.metric, report.unit) for report in shown)
        where, place = (client, paths.place(client)) if several else ("", None)
        tables.append(PathTable(where, place, label, metrics, tuple(rows)))
    return tuple(tables)
