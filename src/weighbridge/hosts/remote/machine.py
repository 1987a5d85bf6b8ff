"""Permanent machines with an agent for the duration of a run: their network card, engine and address."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weighbridge.errors import Unavailable
from weighbridge.hosts.agent.sweep import Membership
from weighbridge.hosts.local import SinglePurpose
from weighbridge.hosts.remote.channel import Channel
from weighbridge.hosts.remote.host import AgentHost
from weighbridge.linux.tc import AROUND
from weighbridge.model.host import Capabilities, Host, NetworkLink, RunContext

_WHOLE = 1514
"""Bytes of a full frame. A card that splits large packets itself might count those instead of frames."""
_IPV4 = re.compile(r"[0-9.]{7,15}")


def card(read: Callable[[str], bytes], where: str, interface: str) -> NetworkLink | None:
    """Return the link of a network card whose driver reports its rate, else None; ``read`` reads the host's files."""
    folder = f"/sys/class/net/{interface}"
    try:
        read(f"{folder}/device/uevent")  # only hardware has it; a veth reports 10 Gbit/s
        rate = int(read(f"{folder}/speed")) * 1e6
    except (OSError, ValueError):
        return None

    def carried() -> Mapping[str, float]:
        bits = {}
        for direction, name in (("out", "tx"), ("in", "rx")):
            try:
                count, packets = (int(read(f"{folder}/statistics/{name}_{kind}")) for kind in ("bytes", "packets"))
            except (OSError, ValueError):
                continue
            bits[direction] = 8.0 * (count + AROUND * max(packets, count / _WHOLE))
        return bits

    return NetworkLink(where, rate, carried) if interface and rate > 0 else None


class MachineHost(AgentHost, ABC):
    """A machine that exists before and after the run. Implements ``Host`` and ``HostEngine``."""

    def __init__(
        self, name: str, run: RunContext, hello: Mapping[str, Any], channel: Channel, place: tuple[str, str]
    ) -> None:
        """``place`` is its address and its interface."""
        super().__init__(name, run, hello, channel, place)
        self._claim = SinglePurpose(f"host {name}")
        self._card: NetworkLink | None = None
        self._card_known = False

    @property
    def capabilities(self) -> Capabilities:
        """Return the host's capabilities: its own engine, card and clock."""
        return Capabilities(engine=self, link=self.link, clock=self.clock)

    def dedicated_host(self, purpose: str) -> Host:
        """Return the host itself; Unavailable if it is changed for another purpose."""
        self._claim.take(purpose)
        return self

    def link(self) -> NetworkLink | None:
        """Return the link of the network card with the host's address, if its driver reports the rate."""
        if not self._card_known:
            self._card, self._card_known = card(self.read, f"host {self.name}", self.interface), True
        return self._card

    @abstractmethod
    def forward(self, path: str) -> Path:
        """Return a local socket that leads to the host's engine at ``path`` ("" means the default), while it is open.

        Raises Unavailable.
        """

    def engine_url(self) -> str:
        return f"unix://{self.forward('')}"

    def engine_socket(self, path: str) -> str:
        """Return the path there of an engine's socket for this user; "" means the default. Raises Unavailable."""
        return str(self._channel.call("engine", path=path).fields["value"])

    def in_swarm(self, node: str | None, *, made_bridge: bool) -> None:
        """Make the host's engine leave a swarm when the connection ends in any way; None means that it has left."""
        membership = None if node is None else Membership(node, made_bridge)
        self._channel.call("swarm", membership=membership and asdict(membership))


def place_of(
    name: str, address: str | None, interface: str | None, reached_at: str, interfaces: Mapping[str, str]
) -> tuple[str, str]:
    """Return a host's address and interface: the study's, or else those where it was reached.

    ``interfaces`` are the addresses of the machine's interfaces by name. Raises Unavailable.
    """
    ip = address or reached_at
    if interface:
        if interface not in interfaces and not address:
            names = ", ".join(sorted(interfaces))
            raise Unavailable(f"host {name} has no interface {interface} with an IPv4 address: use {names}")
        ip = address or interfaces[interface]
    if not _IPV4.fullmatch(ip):  # reached by IPv6, or through a ProxyCommand without an address
        raise Unavailable(f"host {name} was not reached over IPv4: set 'address' to its IPv4 address")
    return ip, interface or next((i for i, a in interfaces.items() if a == ip), "")


@contextmanager
def reported_failures(channel: Channel, run: RunContext) -> Iterator[None]:
    """Close the channel at the end, and report what the agent could not end or remove there."""
    try:
        yield
    finally:
        channel.close()
        for failure in channel.failures():
            run.say(failure)
