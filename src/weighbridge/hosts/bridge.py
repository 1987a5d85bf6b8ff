"""A run's own bridge on a host: system containers and guests are its ports, and the host has an address on it.

It corresponds to Docker's bridge for containers, without address translation and published ports. Nothing on it has a
route to other networks.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.linux import links, network
from weighbridge.linux.links import must
from weighbridge.linux.network import in_network_of
from weighbridge.linux.process import link_prefix
from weighbridge.model.command import Command
from weighbridge.model.host import DisposableHost, Host, RunContext
from weighbridge.model.site import SiteRequest

_FIRST, _SUBNETS = 202, 48
"""198.19.202.0/24 and the following networks, in 198.18.0.0/15, which is reserved for measurements (RFC 2544)."""
_LAST = 254


class Bridge:
    """A bridge on ``host``.

    ``name`` is the name of the link. ``gateway`` is the host's address on it. ``prefix`` is the length of the network
    prefix. ``mtu``, in bytes, applies to everything on it. ``next_address`` returns an unused address, and raises
    Unavailable if none is left.
    """

    prefix = 24

    def __init__(
        self, run: RunContext, host: Host, name: str, gateway: str, mtu: int, next_address: Callable[[], str]
    ) -> None:
        self.host, self.name, self.gateway, self.mtu = host, name, gateway, mtu
        self.next_address = next_address
        self._run = run
        self._passes = False

    def next_port(self) -> str:
        """Return a name for a link (a veth's end, a tap) that becomes a port, by which ``clean`` finds it."""
        numbers = self._run.share("names of ports", lambda: contextlib.nullcontext(itertools.count()))
        return f"{link_prefix(self._run.id)}p{next(numbers)}"

    @contextmanager
    def joined(self, pid: int) -> Iterator[str]:
        """Join a process's network namespace by a veth pair, as its eth0; yield its address there."""
        port, address, mtu = self.next_port(), self.next_address(), str(self.mtu)
        inside = in_network_of(pid)
        must(self.host, "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        try:
            must(self.host, "ip", "link", "set", port, "mtu", mtu, "master", self.name, "up")
            must(
                self.host,
                *inside,
                "ip",
                "address",
                "add",
                f"{address}/{self.prefix}",
                "broadcast",
                "+",
                "dev",
                "eth0",
            )
            must(self.host, *inside, "ip", "link", "set", "eth0", "mtu", mtu, "up")
            yield address
        finally:
            with contextlib.suppress(EnvironmentLost, Unavailable):  # it also ends with the namespace
                must(self.host, "ip", "link", "delete", port)

    def let_ports_pass(self) -> None:
        """Make the packet filter accept frames between ports, which is needed if both roles are on the bridge.

        This happens once, and is undone with the bridge. A host without iptables has no known filter that drops them.
        """
        if self._passes:
            return
        self._passes = True
        try:
            completed = self.host.run(Command(("iptables", "--wait", "-I", "FORWARD", *self._rule), 10))
        except Unavailable:  # no such program
            return
        if completed.returncode not in (0, 127):
            raise Unavailable(
                f"host {self.host.name}: its packet filter can drop traffic between bridge ports, and a rule that "
                f"accepts this traffic cannot be added (iptables: {completed.last_words})"
            )

    @property
    def _rule(self) -> tuple[str, ...]:
        return links.rule(self.name, self._run.id)

    def remove(self) -> None:
        """Remove the bridge and its rule, which can be gone already with its host or an engine's links."""
        with contextlib.suppress(EnvironmentLost, Unavailable):
            if self._passes:
                self.host.run(Command(("iptables", "--wait", "-D", "FORWARD", *self._rule), 10))
        with contextlib.suppress(EnvironmentLost, Unavailable):
            must(self.host, "ip", "link", "delete", self.name)


def bridge_of(run: RunContext, host: Host) -> Bridge:
    """Return the run's bridge on a host, made at first use and removed with the run.

    Raises Unavailable if it cannot be made, or if its name belongs to another link.
    """
    return run.share(f"bridge {host.name}", lambda: _own(run, host))


def bridge_for(request: SiteRequest, *, attached: bool) -> Bridge:
    """Return the bridge for a site; with ``attached``, the interface of its host is also a port of it.

    Raises Unavailable if a host's interface must not be changed. Frames pass between two sites if both roles are on
    the bridge, which is the case where its client is.
    """
    if attached:
        disposable = request.host.capabilities.disposable
        if disposable is None:
            raise Unavailable(
                f"attach: interface would take over the address of {request.host.interface or 'an interface'} on "
                f"{request.host.name}. Use hosts of kind testbed"
            )
        return bridge_over(request.run, disposable)
    bridge = bridge_of(request.run, request.host)
    if request.role == "client":
        bridge.let_ports_pass()
    return bridge


def bridge_over(run: RunContext, host: DisposableHost) -> Bridge:
    """Return a bridge with the interface of a host made for the run as a permanent port: one subnet for all hosts."""
    return run.share(f"bridge over the interface of {host.name}", lambda: _over(run, host))


@contextmanager
def _own(run: RunContext, host: Host) -> Iterator[Bridge]:
    if not host.root:
        raise Unavailable("only root can create a network bridge: run as root")
    name, third = f"{link_prefix(run.id)}b0", _free_network(run, host)
    if (number := _file(host, f"/sys/class/net/{name}/ifindex")) is not None:
        raise Unavailable(
            f"host {host.name} has a network link {name} (number {number}) that this run did not create. Remove it "
            f"with: ip link delete {name}"
        )
    mtu = (_file(host, f"/sys/class/net/{host.interface}/mtu") if host.interface else None) or "1500"
    bridge = Bridge(run, host, name, f"198.19.{third}.1", int(mtu), addresses(f"198.19.{third}"))
    link_options = ("type", "bridge", "stp_state", "0", "forward_delay", "0")
    try:
        # its own hardware address: otherwise it would be that of a port, and change with the ports
        must(host, "ip", "link", "add", name, "address", f"02:77:c6:13:{third:02x}:01", *link_options)
        # no IPv6, which some kernels do not have
        host.run(Command(("ip", "link", "set", name, "addrgenmode", "none"), 10))
        must(host, "ip", "link", "set", name, "mtu", mtu, "up")
        must(host, "ip", "address", "add", f"{bridge.gateway}/{bridge.prefix}", "broadcast", "+", "dev", name)
        yield bridge
    finally:
        bridge.remove()


@contextmanager
def _over(run: RunContext, host: DisposableHost) -> Iterator[Bridge]:
    name = f"{link_prefix(run.id)}b"
    mtu = _file(host, f"/sys/class/net/{host.interface}/mtu") or "1500"
    hardware = _file(host, f"/sys/class/net/{host.interface}/address") or ""
    for words in links.over_interface(name, host.interface, f"{host.address}/24", host.gateway, hardware, mtu):
        must(host, "ip", *words)
    yield Bridge(run, host, name, host.address, int(mtu), host.next_address)


def addresses(network: str) -> Callable[[], str]:
    """Return a function that returns the next address of a network, given its first three numbers."""
    numbers = itertools.count(2)

    def give() -> str:
        number = next(numbers)
        if number > _LAST:
            raise Unavailable(f"a bridge has room for {_LAST - 1} addresses: use fewer environments")
        return f"{network}.{number}"

    return give


def routes_of(host: Host) -> str:
    """Return the host's routes according to its kernel (/proc/net/route); empty if unknown."""
    return _file(host, str(Path(host.network[1]).parent / "route")) or ""


def _free_network(run: RunContext, host: Host) -> int:
    """Return the third number of a network without a route on the host; the search starts at a number of the run."""
    routes = routes_of(host)
    start = int(run.id, 16)
    for step in range(_SUBNETS):
        third = _FIRST + (start + step) % _SUBNETS
        if network.route_in(routes, f"198.19.{third}.0/24") is None:
            return third
    raise Unavailable(
        f"host {host.name} uses every network from 198.19.{_FIRST}.0/24 to 198.19.{_FIRST + _SUBNETS - 1}.0/24, so "
        "none is left for a bridge. Run 'weighbridge clean' to remove leftovers of earlier runs"
    )


def _file(host: Host, path: str) -> str | None:
    try:
        return host.read(path).decode().strip()
    except OSError:
        return None
