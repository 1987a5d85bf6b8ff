"""The job in which we run: which host has which of its nodes, and the addresses of those."""

import socket
from collections.abc import Collection, Mapping
from functools import cached_property

from weighbridge.errors import Unavailable
from weighbridge.linux import slurm


class Job:
    """A job, and which of its nodes each host has."""

    def __init__(self, number: str) -> None:
        self.id = number
        self._taken: dict[str, str] = {}

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Its nodes, in Slurm's order. Raises Unavailable."""
        return slurm.job_nodes()

    def must_have(self, node: str | None) -> None:
        """Raise Unavailable where a node is none of the job's, or there is no job."""
        if node is not None and node not in self.nodes:
            raise Unavailable(f"node {node} is not one of the nodes of job {self.id} ({', '.join(self.nodes)})")

    def node_for(self, host: str, node: str | None, named: Collection[str]) -> str:
        """Return the node for a host: the one of this name, else the first that no other host has, or is to have.

        ``named``: those that the study gives to its hosts. Raises Unavailable.
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
        """Return the IPv4 address of a node, as Slurm and this machine's resolver know it; "" where they do not."""
        known = slurm.field("NodeAddr", slurm.ask("scontrol", "--oneliner", "show", "node", node)) or node
        try:
            return str(socket.getaddrinfo(known, None, socket.AF_INET)[0][4][0])
        except OSError:
            return ""


def address_among(host: str, known: str, interfaces: Mapping[str, str]) -> str:
    """Return the address at which others reach a machine with these interfaces.

    That is the one by which it is ``known``; where that leads nowhere there (Debian has a machine's own name at
    127.0.1.1), the only one that it has. Raises Unavailable where it has several.
    """
    addresses = {name: address for name, address in interfaces.items() if not address.startswith("127.")}
    if known in addresses.values():
        return known
    if len(addresses) == 1:
        return next(iter(addresses.values()))
    names = ", ".join(f"{name} ({address})" for name, address in sorted(addresses.items())) or "none"
    raise Unavailable(f"host {host}: Slurm does not report its IPv4 address. Name its 'interface' (it has {names})")
