"""Which sites, ports and paths the cells of a study need. Pure."""

from collections.abc import Iterable, Mapping

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.model.command import PublishedPort, Transport
from weighbridge.model.study import Arm, Cell, Role, Study
from weighbridge.model.workload import Endpoint


def roles_of(cell: Cell) -> tuple[Role, ...]:
    """The roles of a cell's workload, in the order in which they start."""
    return registry.workloads()[cell.kind].roles(cell.options)


def transports_of(study: Study, arm: Arm, cell: Cell) -> tuple[Transport, ...]:
    """What the server's port carries in an environment; empty where the workload needs no network."""
    return registry.workloads()[cell.kind].transports(study.options(arm, cell))


PortKey = tuple[str, int]
"""Whose port it is: a workload's, and the only one on which its server can listen (0: on any)."""


def port_key(cell: Cell) -> PortKey:
    """Return what the server of a cell shares its port with."""
    return cell.workload, registry.workloads()[cell.kind].fixed_port(cell.options) or 0


def published_ports(study: Study, arm: Arm, ports: Mapping[PortKey, int]) -> tuple[PublishedPort, ...]:
    """Every port on which clients reach the servers of an environment that publishes them."""
    found: dict[PublishedPort, None] = {}
    for cell in study.cells:
        workload, reached = registry.workloads()[cell.kind], ports.get(port_key(cell), 0)
        listens = port_of(cell, ports)
        for transport in transports_of(study, arm, cell) if reached else ():
            for each in (0, 1) if workload.has_data_port else (0,):
                found[PublishedPort(transport, reached + each, listens + each)] = None
    return tuple(found)


def port_of(cell: Cell, ports: Mapping[PortKey, int]) -> int:
    """Where a server listens: at the only port that it can, else at that of its workload in ``ports``; 0: nowhere."""
    return port_key(cell)[1] or ports.get(port_key(cell), 0)


def taken_ports(study: Study, given: Iterable[Mapping[PortKey, int]]) -> set[int]:
    """The ports that no other server is to be given: those given, and those that alone some can have."""
    fixed = {port_of(cell, {}) for cell in study.cells} - {0}
    beside = {port - 1 for port in fixed}  # the one after a port is given with it
    return {port for each in given for port in each.values()} | fixed | beside


def unreached(name: str, what: str, at: Endpoint, tried_s: float) -> Unavailable:
    """Say that nothing reaches where a server is to be."""
    told = f"no {what} from its client reaches its server at {at.address} (tried for {tried_s:.0f} s)"
    return Unavailable(f"environment {name}: {told}")


def first_over(study: Study, transport: Transport) -> list[tuple[tuple[str, str], Arm, Cell]]:
    """For each environment and host of clients the first workload over a transport: to try the path at its port."""
    found: dict[tuple[str, str], tuple[Arm, Cell]] = {}
    for cell in study.cells:
        for arm in study.arms_of(cell):
            if transport in transports_of(study, arm, cell):
                found.setdefault((arm.name, cell.client), (arm, cell))
    return [(place, arm, cell) for place, (arm, cell) in found.items()]
