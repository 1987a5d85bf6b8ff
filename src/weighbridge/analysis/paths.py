"""The network paths of a run: in what those of two environments differ besides the isolation that is compared."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from weighbridge.model.path import NetworkPath
from weighbridge.model.study import CLIENT

SCOPE = "path"
"""Scope of the facts: "ENVIRONMENT@HOST OF THE CLIENT" -> the path as JSON (`weighbridge.model.path.NetworkPath`)."""

SAME_MSS = 0.05
"""Relative difference of two MSS up to which they are the same: a header's option more or less."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Every path of a run that is known, by environment and host of the client.

    ``networked`` are the workloads that need a path; None where the run is from before paths were recorded.
    """

    known: Mapping[tuple[str, str], NetworkPath] = field(default_factory=dict)
    networked: frozenset[str] | None = None
    local: str = "here"
    """The name of this machine among the study's hosts."""
    server: str = "here"
    """The name of the server's host."""

    def place(self, client: str) -> str:
        """Where the clients on a host are, in words."""
        if client == self.local:
            return "clients on this machine"
        if client == self.server:
            return f"clients on {client}, beside the server"
        return "clients elsewhere" if len(self.clients) <= 2 else f"clients on {client}"

    @property
    def clients(self) -> tuple[str, ...]:
        """The hosts of clients, in the order in which their paths were probed."""
        return tuple(dict.fromkeys(client for _, client in self.known))

    def client_of(self, level: str) -> str:
        """The host of the client at a level (JSON), which is the only one where the study has only one."""
        chosen = json.loads(level).get(CLIENT)
        return str(chosen) if chosen in self.clients else next(iter(self.clients), "")

    def of(self, environment: str, level: str) -> NetworkPath | None:
        """The path of an environment at a level."""
        return self.known.get((environment, self.client_of(level)))

    def needed(self, workload: str) -> bool:
        """Whether a workload needs a path and the run recorded paths."""
        return self.networked is not None and workload in self.networked

    def missing(self, workload: str, level: str, *environments: str) -> bool:
        """Whether a comparison of these environments lacks the path of one of them: then it is none."""
        return self.needed(workload) and any(self.of(name, level) is None for name in environments)

    def difference(self, workload: str, level: str, environment: str, baseline: str) -> str:
        """Say in what an environment's path differs from the baseline's; empty where in nothing."""
        here, there = self.of(environment, level), self.of(baseline, level)
        if not self.needed(workload) or here is None or there is None or environment == baseline:
            return ""
        if here.loopback and there.loopback:  # whose MSS follows the window, from one connection to the next
            return ""
        unlike = here.loopback != there.loopback or here.mtu != there.mtu or not _alike(here.mss, there.mss)
        offloads = {here.segmentation, there.segmentation}
        unlike = unlike or offloads == {True, False}
        return f"{words(here)}, but {words(there)} in {baseline}" if unlike else ""


def paths_of(facts: Iterable[tuple[str, str, str, float]], info: Mapping[str, str]) -> Paths:
    """Give the paths from a run's facts and keys; what cannot be read is not known."""
    found = {}
    for scope, key, value, _ in facts:
        environment, _, client = key.rpartition("@")
        if scope == SCOPE and environment:
            try:
                found[environment, client] = NetworkPath.model_validate_json(value)
            except ValidationError:
                continue
    networked = frozenset(map(str, json.loads(info["networked"]))) if "networked" in info else None
    return Paths(found, networked, info.get("local_host", "here"), info.get("server_host", "here"))


def words(path: NetworkPath) -> str:
    """A path in few words: ``loopback, MSS 65483`` or ``MTU 1500, MSS 1448``."""
    where = "loopback" if path.loopback else f"MTU {path.mtu}"
    sizes = f"{where}, MSS {path.mss}" if path.mss else where
    return f"{sizes}, no segmentation offload" if path.segmentation is False else sizes


def interfaces(path: NetworkPath) -> str:
    """The interfaces in words, by place in the order of the path: ``host: veth, bridge; server: veth``."""
    if path.loopback:
        return "loopback"
    by_place: dict[str, list[str]] = {}
    for each in path.interfaces:
        by_place.setdefault(each.place, []).append(each.name if each.kind == "other" else each.kind)
    hosts = [place for place in by_place if place.startswith("host ")]
    named = {place: "host" if len(hosts) == 1 else place.removeprefix("host ") for place in hosts}
    return "; ".join(f"{named.get(place, place)}: {', '.join(kinds)}" for place, kinds in by_place.items())


def _alike(one: int | None, other: int | None) -> bool:
    if one is None or other is None:
        return one == other
    return abs(one - other) <= SAME_MSS * max(one, other)
