"""Assigns ports to the servers of a run, and probes the paths from their clients."""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.facts.connection import connection
from weighbridge.facts.path import DatagramPath, probe
from weighbridge.model.command import PublishedPort, Transport
from weighbridge.model.facts import NetworkPath
from weighbridge.model.host import Host
from weighbridge.model.site import Site
from weighbridge.model.study import Arm, Cell, Role, Study
from weighbridge.model.workload import Endpoint

REACHED_S = 15.0
"""How long the path between two sites can take to come up: nodes of an overlay network learn of members by gossip."""
_LISTENS = 20_000
"""The first port of a fresh site that is published."""
Reached = TypeVar("Reached")
PortKey = tuple[str, int]
"""A workload, and the only port on which its server can listen (0: any)."""


@dataclass(slots=True)
class Route:
    """The path from the clients on one host to the servers of one environment."""

    ports: dict[PortKey, int] = field(default_factory=dict)
    payload: DatagramPath | None = None
    """The largest payload that passes in a datagram, if a workload sends any."""
    path: NetworkPath | None = None


@dataclass(slots=True)
class Routes:
    """The routes of a run, by environment and host of the clients."""

    _routes: dict[tuple[str, str], Route] = field(default_factory=dict)
    _password: str = field(default="", repr=False)
    """The password of servers that strangers could reach: behind a node port, all clients have the same address."""

    def give_ports(self, study: Study, server: Host) -> None:
        """Choose the ports on which servers listen, from the free ports of their host.

        Each environment has different ports, because a published port takes its number on the whole host. On cluster
        nodes, servers also get a password, because every pod can reach them.
        """
        if any(host.traits.managed for host in study.file.hosts.values()):
            self._password = secrets.token_hex(16)
        for cell in study.cells:
            for arm in study.arms_of(cell):
                if transports_of(study, arm, cell):
                    ports = self._routes.setdefault((arm.name, cell.client), Route()).ports
                    if (key := port_key(cell)) not in ports:
                        unavailable = taken_ports(study, [route.ports for route in self._routes.values()])
                        ports[key] = server.free_ports(unavailable)

    def ports(self, environment: str, client: str) -> Mapping[PortKey, int]:
        """Return an environment's ports for the clients on a host: the servers' own, or published ones."""
        return self._of(environment, client).ports

    def _of(self, environment: str, client: str) -> Route:
        return self._routes.get((environment, client), Route())

    def endpoints(self, arm: Arm, cell: Cell, sites: Mapping[Role, Site]) -> dict[Role, Endpoint]:
        """Return the addresses of a workload's server and client in an environment, for each role."""
        server = sites.get("server", next(iter(sites.values())))
        client, route = sites.get("client", server), self._of(arm.name, cell.client)
        port = port_of(cell, route.ports)
        port = server.assigned_ports.get(port, port)
        at = Endpoint(server.listen, server.address, port, client.address, password=self._password)
        if route.payload is not None:
            at = replace(at, client=route.payload.client, udp_payload=route.payload.udp_payload)
        ports = {"client": server.reached.get(port, port)}
        return {role: replace(at, port=ports.get(role, port)) for role in sites}

    def find_payload(self, arm: Arm, cell: Cell, sites: Mapping[Role, Site]) -> None:
        """Find the largest datagram that reaches a workload's server. Raises Unavailable if none does."""
        at = self.endpoints(arm, cell, sites)
        self._routes[arm.name, cell.client].payload = _reached(arm.name, "datagram", sites, at, probe)

    def find_path(self, arm: Arm, cell: Cell, transport: Transport, sites: Mapping[Role, Site]) -> None:
        """Find the path between a workload's two roles. Raises Unavailable if its server is not reached."""
        at, attempt = self.endpoints(arm, cell, sites), partial(connection, transport=transport)
        self._routes[arm.name, cell.client].path = _reached(arm.name, "connection", sites, at, attempt)

    def forget(self, environment: str) -> None:
        """Forget the routes of an environment."""
        self._routes = {place: route for place, route in self._routes.items() if place[0] != environment}

    def paths(self) -> dict[str, str]:
        """Return the path of each environment as JSON (`model.facts.NetworkPath`), by "ENVIRONMENT@CLIENT'S HOST"."""
        paths = ((place, route.path) for place, route in self._routes.items())
        return {f"{name}@{client}": path.model_dump_json() for (name, client), path in paths if path is not None}


def _reached(
    environment: str,
    what: str,
    sites: Mapping[Role, Site],
    at: Mapping[Role, Endpoint],
    attempt: Callable[[Site, Site, Mapping[Role, Endpoint]], Reached | None],
) -> Reached:
    """Return what an attempt finds between two frozen sites, repeated until it succeeds. Raises Unavailable."""
    with ExitStack() as awake:
        for site in sites.values():
            site.thaw()
            awake.callback(site.freeze)
        deadline = time.monotonic() + REACHED_S
        while not (reached := attempt(sites["server"], sites["client"], at)):
            if time.monotonic() > deadline:
                raise unreached(environment, what, at["client"], REACHED_S)
    return reached


def unreached(name: str, what: str, at: Endpoint, tried_s: float) -> Unavailable:
    """Return an error that says that no client reached the server's address."""
    problem = f"no {what} from the client reached the server at {at.address} within {tried_s:.0f} s"
    return Unavailable(f"environment {name}: {problem}")


def transports_of(study: Study, arm: Arm, cell: Cell) -> tuple[Transport, ...]:
    """Return the transports of the server's port in an environment; empty if the workload needs no network."""
    return registry.workloads()[cell.kind].transports(study.options(arm, cell))


def port_key(cell: Cell) -> PortKey:
    """Return the key under which the server of a cell shares its port with others."""
    return cell.workload, registry.workloads()[cell.kind].fixed_port(cell.options) or 0


def published_ports(study: Study, arm: Arm, ports: Mapping[PortKey, int]) -> tuple[PublishedPort, ...]:
    """Return every port on which clients reach the servers of an environment that publishes them."""
    published: dict[PublishedPort, None] = {}
    for cell in study.cells:
        workload, reached = registry.workloads()[cell.kind], ports.get(port_key(cell), 0)
        listens = port_of(cell, ports)
        for transport in transports_of(study, arm, cell) if reached else ():
            for each in (0, 1) if workload.has_data_port else (0,):
                published[PublishedPort(transport, reached + each, listens + each)] = None
    return tuple(published)


def fresh_ports(host: Host, number: int) -> tuple[PublishedPort, ...]:
    """Return different free ports of a host for a fresh site, each for a port of the site's own."""
    chosen: list[int] = []
    for _ in range(number):
        chosen.append(host.free_ports(chosen))
    return tuple(PublishedPort("tcp", reached, _LISTENS + place) for place, reached in enumerate(chosen))


def port_of(cell: Cell, ports: Mapping[PortKey, int]) -> int:
    """Return the port of a server: the only one that it supports, or its workload's in ``ports``; 0 if none."""
    return port_key(cell)[1] or ports.get(port_key(cell), 0)


def taken_ports(study: Study, assigned: Iterable[Mapping[PortKey, int]]) -> set[int]:
    """Return the ports that no further server can get: assigned ports, and fixed ports of servers."""
    fixed = {port_of(cell, {}) for cell in study.cells} - {0}
    before_fixed = {port - 1 for port in fixed}  # a server can use the port after its own, too
    return {port for each in assigned for port in each.values()} | fixed | before_fixed


def first_over(study: Study, transport: Transport) -> dict[tuple[str, str], tuple[Transport, Arm, Cell]]:
    """Return the first workload over a transport for each environment and host of clients, to probe the path."""
    first: dict[tuple[str, str], tuple[Transport, Arm, Cell]] = {}
    for cell in study.cells:
        for arm in study.arms_of(cell):
            if transport in transports_of(study, arm, cell):
                first.setdefault((arm.name, cell.client), (transport, arm, cell))
    return first
