"""Network paths of a run: their differences besides the isolation, and how trials used them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import ValidationError

from weighbridge.model.address import CellId
from weighbridge.model.facts import NetworkPath
from weighbridge.model.level import CLIENT, Level

SCOPE = "path"
"""Scope of the facts: "ENVIRONMENT@HOST OF THE CLIENT" -> the path as JSON (`model.facts.NetworkPath`)."""

SAME_MSS = 0.05
"""The largest relative difference between two MSS that count as equal: about one header option."""


@dataclass(frozen=True, slots=True)
class ClientPlace:
    """The place of clients; ``host`` names their host if there are several."""

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
    """Figures of a path through a proxy; the MSS belongs to the connection between client and proxy."""


@dataclass(frozen=True, slots=True)
class PathDifference:
    """A path that differs from the path of ``baseline``."""

    here: PathFigures
    there: PathFigures
    baseline: str


@dataclass(frozen=True, slots=True)
class Paths:
    """Every known path of a run, by environment and host of the client.

    ``networked`` are the workloads that need a path; None if the run is from before paths were recorded.
    """

    by_environment: Mapping[tuple[str, str], NetworkPath] = field(default_factory=dict)
    networked: frozenset[str] | None = None
    local: str = "here"
    """The name of this machine among the study's hosts."""
    server: str = "here"
    """The name of the server's host."""

    def place(self, client: str) -> ClientPlace:
        """Return the place of the clients on a host."""
        if client == self.local:
            return ClientPlace("this-machine")
        if client == self.server:
            return ClientPlace("beside-the-server", client)
        return ClientPlace("elsewhere") if len(self.clients) <= 2 else ClientPlace("on-a-host", client)

    @property
    def clients(self) -> tuple[str, ...]:
        """The hosts of clients, in the order that their paths were probed."""
        return tuple(dict.fromkeys(client for _, client in self.by_environment))

    def client_of(self, level: Level) -> str:
        """Return the host of the client at a level, or the only one."""
        chosen = level.value_of(CLIENT)
        return chosen if chosen in self.clients else next(iter(self.clients), "")

    def of(self, environment: str, level: Level) -> NetworkPath | None:
        """Return the path of an environment at a level."""
        return self.by_environment.get((environment, self.client_of(level)))

    def needed(self, workload: str) -> bool:
        """Return whether a workload needs a path and the run recorded paths."""
        return self.networked is not None and workload in self.networked

    def missing(self, cell: CellId, *environments: str) -> bool:
        """Return whether a comparison is impossible because the path of one of its environments is unknown."""
        return self.needed(cell.workload) and any(self.of(name, cell.level) is None for name in environments)

    def difference(self, cell: CellId, environment: str, baseline: str) -> PathDifference | None:
        """Return how an environment's path differs from the baseline's; None if it does not."""
        one, other = self.of(environment, cell.level), self.of(baseline, cell.level)
        if not self.needed(cell.workload) or one is None or other is None or environment == baseline:
            return None
        figures, baseline_figures = PathFigures.of(one), PathFigures.of(other)
        if figures.loopback and baseline_figures.loopback:  # their MSS depends on the window of each connection
            return None
        unlike = (
            figures.loopback != baseline_figures.loopback
            or figures.mtu != baseline_figures.mtu
            or not _same_mss(figures.mss, baseline_figures.mss)
        )
        unlike = unlike or {figures.segmentation, baseline_figures.segmentation} == {True, False}
        return PathDifference(figures, baseline_figures, baseline) if unlike else None


def paths_of(facts: Iterable[tuple[str, str, str, float]], info: Mapping[str, str]) -> Paths:
    """Return the paths from a run's facts and keys; unreadable ones count as unknown."""
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
