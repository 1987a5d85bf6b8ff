"""Machines reached by OpenSSH, with the user's own configuration and keys: one multiplexed connection a host."""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weighbridge.errors import Unavailable
from weighbridge.hosts.agent.operations import machine
from weighbridge.hosts.agent.sweep import Membership
from weighbridge.hosts.kinds.ssh import SshOptions
from weighbridge.hosts.local import SinglePurpose
from weighbridge.hosts.remote.channel import Channel
from weighbridge.hosts.remote.host import AgentHost
from weighbridge.hosts.ssh.connect import Connection
from weighbridge.linux.tc import AROUND
from weighbridge.model.host import Capabilities, Host, Link, RunContext

_WHOLE = 1514
"""Bytes of a whole frame. A card that splits large packets itself may count those: there were more frames."""


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


_IPV4 = re.compile(r"[0-9.]{7,15}")


class SshHost(AgentHost):
    """A machine that ssh reaches. Implements ``Host``, ``HostEngine`` and ``Cable``."""

    def __init__(
        self, name: str, options: SshOptions, run: RunContext, connection: Connection, hello: Mapping[str, Any],
        channel: Channel,
    ) -> None:  # fmt: skip
        super().__init__(name, run, hello, channel, _place(name, options, hello))
        self._options = options
        self._connection = connection
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

    def facts(self) -> Mapping[str, str]:
        """Return the host's fingerprint, as this machine's, and how it is reached."""
        return {
            **super().facts(),
            "kind": f"ssh: {self._options.destination}" + (" (sudo)" if self._options.sudo else ""),
        }

    def forward(self, path: str) -> Path:
        """A socket of this machine that leads to the host's socket at ``path``, for as long as the host is open."""
        return self._connection.forward(str(self._channel.call("engine", path=path).fields["value"]))

    def engine_url(self) -> str:
        """The host's own Docker engine, as an address for the SDK. Unavailable: none is there, or it may not be used.

        Its socket is forwarded through the one connection rather than reached by the SDK's ``ssh://``, which logs in
        anew for each of its connections (with paramiko or a shell, each asked for keys), cannot become root, and does
        not carry half-closed streams (standard input of an exec) on all of its ways.
        """
        return f"unix://{self.forward('')}"

    def in_swarm(self, node: str | None, *, made_bridge: bool) -> None:
        """Have the host's engine leave a swarm when the connection ends, however it ends; None: it has left it."""
        membership = None if node is None else Membership(node, made_bridge)
        self._channel.call("swarm", membership=membership and asdict(membership))


def _place(name: str, options: SshOptions, hello: Mapping[str, Any]) -> tuple[str, str]:
    """Return the host's address and interface: the study's, else those at which the connection came in."""
    interfaces: Mapping[str, str] = hello["interfaces"]
    address = options.address or str(hello["server"]).removeprefix("::ffff:")
    if options.interface:
        if options.interface not in interfaces and not options.address:
            interface_names = ", ".join(sorted(interfaces))
            raise Unavailable(
                f"host {name} has no interface {options.interface} with an IPv4 address: use {interface_names}"
            )
        address = options.address or interfaces[options.interface]
    if not _IPV4.fullmatch(address):  # reached by IPv6, or through a program (ProxyCommand) that tells no address
        raise Unavailable(f"host {name} was not reached by IPv4: name its IPv4 address as 'address'")
    return address, options.interface or next((i for i, a in interfaces.items() if a == address), "")


def _tell_failures(channel: Channel, run: RunContext) -> None:
    for each in channel.failures():
        run.say(each)


@contextmanager
def ssh_host(name: str, options: SshOptions, run: RunContext) -> Iterator[SshHost]:
    """Connect to a host, and leave it as it was. Unavailable, in one sentence, where it cannot be used."""
    connection = Connection(name, options, run.state)
    with contextlib.ExitStack() as stack:
        stack.callback(connection.close)
        channel, hello = connection.open(run.id, machine())
        stack.callback(_tell_failures, channel, run)
        stack.callback(channel.close)
        yield SshHost(name, options, run, connection, hello, channel)
