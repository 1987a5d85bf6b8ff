"""Machines that are there without us and have an agent for the length of a run: their card, engine and place."""

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
from weighbridge.model.host import Capabilities, Host, Link, RunContext

_WHOLE = 1514
"""Bytes of a whole frame. A card that splits large packets itself may count those: there were more frames."""
_IPV4 = re.compile(r"[0-9.]{7,15}")


def card(read: Callable[[str], bytes], where: str, interface: str) -> Link | None:
    """Return the link of a network card whose driver tells its rate, else None; ``read`` reads the host's files."""
    folder = f"/sys/class/net/{interface}"
    try:
        read(f"{folder}/device/uevent")  # only hardware has it: a veth says 10 Gbit/s of itself
        rate = int(read(f"{folder}/speed")) * 1e6
    except (OSError, ValueError):
        return None

    def carried() -> Mapping[str, float]:
        bits = {}
        for way, name in (("out", "tx"), ("in", "rx")):
            try:
                count, packets = (int(read(f"{folder}/statistics/{name}_{what}")) for what in ("bytes", "packets"))
            except (OSError, ValueError):
                continue
            bits[way] = 8.0 * (count + AROUND * max(packets, count / _WHOLE))
        return bits

    return Link(where, rate, carried) if interface and rate > 0 else None


class MachineHost(AgentHost, ABC):
    """A machine that was there before the run and stays. Implements ``Host``, ``HostEngine`` and ``Cable``."""

    def __init__(
        self, name: str, run: RunContext, hello: Mapping[str, Any], channel: Channel, place: tuple[str, str]
    ) -> None:
        """``place``: its address and its interface."""
        super().__init__(name, run, hello, channel, place)
        self._claim = SinglePurpose(f"host {name}")
        self._card: Link | None = None
        self._card_known = False

    @property
    def capabilities(self) -> Capabilities:
        """The host's capabilities: its own engine, card and clock."""
        return Capabilities(engine=self, cable=self, clock=self.clock)

    def dedicated_host(self, purpose: str) -> Host:
        """The host itself; Unavailable once it is changed for another purpose."""
        self._claim.take(purpose)
        return self

    def link(self) -> Link | None:
        """Return the link of the network card with the host's address, where its driver tells the rate."""
        if not self._card_known:
            self._card, self._card_known = card(self.read, f"host {self.name}", self.interface), True
        return self._card

    @abstractmethod
    def forward(self, path: str) -> Path:
        """A socket of this machine that leads to the host's engine at ``path`` ("": the usual one), while it is open.

        Raises Unavailable.
        """

    def engine_url(self) -> str:
        """The host's own Docker engine, as an address for the SDK. Raises Unavailable."""
        return f"unix://{self.forward('')}"

    def engine_socket(self, path: str) -> str:
        """Return the path there of the engine's socket that this user may use; "": the usual one. Unavailable."""
        return str(self._channel.call("engine", path=path).fields["value"])

    def in_swarm(self, node: str | None, *, made_bridge: bool) -> None:
        """Have the host's engine leave a swarm when the connection ends, however it ends; None: it has left it."""
        membership = None if node is None else Membership(node, made_bridge)
        self._channel.call("swarm", membership=membership and asdict(membership))


def place_of(
    name: str, address: str | None, interface: str | None, reached_at: str, interfaces: Mapping[str, str]
) -> tuple[str, str]:
    """Return a host's address and interface: the study's ``address`` and ``interface``, else where it was reached.

    ``interfaces``: the addresses of the machine's, by their names. Raises Unavailable.
    """
    found = address or reached_at
    if interface:
        if interface not in interfaces and not address:
            names = ", ".join(sorted(interfaces))
            raise Unavailable(f"host {name} has no interface {interface} with an IPv4 address: use {names}")
        found = address or interfaces[interface]
    if not _IPV4.fullmatch(found):  # reached by IPv6, or through a program (ProxyCommand) that tells no address
        raise Unavailable(f"host {name} was not reached over IPv4: set 'address' to its IPv4 address")
    return found, interface or next((i for i, a in interfaces.items() if a == found), "")


@contextmanager
def told_failures(channel: Channel, run: RunContext) -> Iterator[None]:
    """Close the channel at the end, and tell what the agent could not end or remove there."""
    try:
        yield
    finally:
        channel.close()
        for each in channel.failures():
            run.say(each)
