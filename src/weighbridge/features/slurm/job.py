"""The current job: the assignment of its nodes to hosts, and their addresses."""

import socket
from collections.abc import Collection, Mapping
from functools import cached_property

from weighbridge.errors import Unavailable
from weighbridge.features.slurm import client as slurm


class Job:
    """A job, and the assignment of its nodes to hosts."""

    def __init__(self, number: str) -> None:
        self.id = number
        self._taken: dict[str, str] = {}

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Return its nodes, in Slurm's order. Raises Unavailable."""
        return slurm.job_nodes()

    def must_have(self, node: str | None) -> None:
        """Raise Unavailable if a node is not in the job, or there is no job."""
        if node is not None and node not in self.nodes:
            raise Unavailable(f"node {node} is not one of the nodes of job {self.id} ({', '.join(self.nodes)})")

    def node_for(self, host: str, node: str | None, named: Collection[str]) -> str:
        """Return the node for a host: the named one, else the first that no other host uses or is meant to use.

        ``named`` are the nodes that the study assigns to its hosts. Raises Unavailable.
        """
        try:
            self.must_have(node)
        except Unavailable as error:
            raise Unavailable(f"host {host}: {error}") from error
        taken = {*named, *self._taken.values()}
        free = [node] if node else [each for each in self.nodes if each not in taken]
        if not free:
            raise Unavailable(
                f"host {host}: job {self.id} has only {len(self.nodes)} nodes, and other hosts use them: request "
                "more nodes, or put both roles on one host"
            )
        self._taken[host] = free[0]
        return free[0]

    def address(self, node: str) -> str:
        """Return the IPv4 address of a node, by Slurm and this machine's resolver; "" if unknown."""
        known = slurm.field("NodeAddr", slurm.ask("scontrol", "--oneliner", "show", "node", node)) or node
        try:
            return str(socket.getaddrinfo(known, None, socket.AF_INET)[0][4][0])
        except OSError:
            return ""


def address_among(host: str, known: str, interfaces: Mapping[str, str]) -> str:
    """Return the address at which others reach a machine with these interfaces.

    It is the ``known`` one; if that leads nowhere there (Debian has a machine's own name at 127.0.1.1), it is the
    machine's only address. Raises Unavailable if it has several.
    """
    addresses = {name: address for name, address in interfaces.items() if not address.startswith("127.")}
    if known in addresses.values():
        return known
    if len(addresses) == 1:
        return next(iter(addresses.values()))
    names = ", ".join(f"{name} ({address})" for name, address in sorted(addresses.items())) or "none"
    raise Unavailable(f"host {host}: Slurm does not report its IPv4 address. Name its 'interface' (it has {names})")
