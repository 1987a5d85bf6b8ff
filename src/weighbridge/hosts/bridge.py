"""A bridge of a run's own on a host: system containers and guests are its ports, and the host has an address on it.

It is what Docker's bridge is to a container, without address translation and published ports. Nothing on it is given
a route to anywhere else.
"""

import contextlib
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.linux import links, network
from weighbridge.linux.process import link_prefix
from weighbridge.model.command import Command
from weighbridge.model.site import Host, RunContext

_FIRST, _SUBNETS = 202, 48
"""198.19.202.0/24 and those after it: of 198.18.0.0/15, which is set aside for measuring networks (RFC 2544)."""
_LAST = 254


class Bridge:
    """A bridge on ``host``.

    ``name``: of the link. ``gateway``: the host's address on it. ``prefix``: how many bits of an address tell the
    network. ``mtu``: in bytes, that of everything on it.
    """

    prefix = 24

    def __init__(self, host: Host, run: RunContext, third: int, mtu: int) -> None:
        self.host = host
        self.name = f"{link_prefix(run.id)}b0"
        self.mtu = mtu
        self._network = f"198.19.{third}"
        self.gateway = f"{self._network}.1"
        self._hardware = f"02:77:c6:13:{third:02x}:01"
        self._run = run
        self._numbers = itertools.count(2)
        self._ports = itertools.count()
        self._passes = False

    def next_address(self) -> str:
        """An address on it that nothing else has. Raises Unavailable."""
        number = next(self._numbers)
        if number > _LAST:
            raise Unavailable(f"a bridge has at most {_LAST - 1} sites")
        return f"{self._network}.{number}"

    def next_port(self) -> str:
        """A name for a link (a veth's end, a tap) that becomes a port of it, by which ``clean`` finds that."""
        return f"{link_prefix(self._run.id)}p{next(self._ports)}"

    def let_ports_pass(self) -> None:
        """Have the packet filter let frames pass from port to port: needed where both roles are on it.

        Once; taken back with the bridge. A host without iptables has nothing that drops them that we know of.
        """
        if self._passes:
            return
        self._passes = True
        try:
            done = self.host.run(Command(("iptables", "--wait", "-I", "FORWARD", *self._rule), 10))
        except Unavailable:  # no such program
            return
        if done.returncode not in (0, 127):
            raise Unavailable(
                f"host {self.host.name}: its packet filter may drop what passes between two ports of a bridge, "
                f"and cannot be told to let it pass: iptables: {done.last_words}"
            )

    @property
    def _rule(self) -> tuple[str, ...]:
        return links.rule(self.name, self._run.id)

    def make(self) -> None:
        """Make it. Unavailable where the kernel cannot."""
        made = ("type", "bridge", "stp_state", "0", "forward_delay", "0")
        # its own hardware address: else it is that of a port, and changes with them
        _must(self.host, "link", "add", self.name, "address", self._hardware, *made)
        quiet = ("ip", "link", "set", self.name, "addrgenmode", "none")  # no IPv6, which not every kernel has
        self.host.run(Command(quiet, 10))
        _must(self.host, "link", "set", self.name, "mtu", str(self.mtu), "up")
        _must(self.host, "address", "add", f"{self.gateway}/{self.prefix}", "broadcast", "+", "dev", self.name)

    def remove(self) -> None:
        """Remove it and its rule; with its host, or an engine's links, it may have gone already."""
        with contextlib.suppress(EnvironmentLost, Unavailable):
            if self._passes:
                self.host.run(Command(("iptables", "--wait", "-D", "FORWARD", *self._rule), 10))
        with contextlib.suppress(EnvironmentLost, Unavailable):
            _must(self.host, "link", "delete", self.name)


def bridge_of(run: RunContext, host: Host) -> Bridge:
    """The run's bridge on a host, made at first use and gone with the run. Raises Unavailable."""
    return run.share(f"bridge {host.name}", lambda: _made(run, host))


@contextmanager
def _made(run: RunContext, host: Host) -> Iterator[Bridge]:
    if not host.root:
        raise Unavailable("only root may make a network bridge: run as root")
    mtu = _file(host, f"/sys/class/net/{host.interface}/mtu") if host.interface else None
    bridge = Bridge(host, run, _free_network(run, host), int(mtu or 1500))
    if (number := _file(host, f"/sys/class/net/{bridge.name}/ifindex")) is not None:
        raise Unavailable(
            f"host {host.name} has a network link {bridge.name} (number {number}), which this run has not made: "
            f"ip link delete {bridge.name}"
        )
    try:
        bridge.make()
        yield bridge
    finally:
        bridge.remove()


def _free_network(run: RunContext, host: Host) -> int:
    """The third number of a network that the host has no route into; where to begin to look depends on the run."""
    routes = _file(host, str(Path(host.network[1]).parent / "route")) or ""
    start = int(run.id, 16)
    for step in range(_SUBNETS):
        third = _FIRST + (start + step) % _SUBNETS
        if network.route_in(routes, f"198.19.{third}.0/24") is None:
            return third
    raise Unavailable(
        f"host {host.name} uses every network from 198.19.{_FIRST}.0/24 to 198.19.{_FIRST + _SUBNETS - 1}.0/24: none "
        "is left for a bridge"
    )


def _file(host: Host, path: str) -> str | None:
    try:
        return host.read(path).decode().strip()
    except OSError:
        return None


def _must(host: Host, *words: str) -> None:
    done = host.run(Command(("ip", *words), 10))
    if done.returncode != 0:
        raise Unavailable(f"host {host.name}: ip {' '.join(words)}: {done.last_words}")
