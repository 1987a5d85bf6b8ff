"""A network namespace of one's own, joined to the host by a veth pair, with an optional link rate. No engine."""

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any, ClassVar

from pydantic import Field

from weighbridge.errors import Unavailable
from weighbridge.hosts.bridge import routes_of
from weighbridge.hosts.chroot import chroot_site
from weighbridge.linux import links, network, tc, user_namespaces
from weighbridge.linux.links import must, must_tell
from weighbridge.linux.network import in_network_of
from weighbridge.linux.process import link_prefix, output
from weighbridge.model.by_hand import ByHand, ByHandRequest
from weighbridge.model.command import Command
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs
from weighbridge.model.host import Host, Link, RunContext
from weighbridge.model.plugin import Readiness
from weighbridge.model.quantity import Rate
from weighbridge.model.site import Site, SiteRequest

NETWORK = (198, 18)
"""198.18.0.0/15 is set aside for measuring networks (RFC 2544), so it collides with nobody's addresses."""

_NO_CABLE = (
    "only root can join a network namespace to its host, and that of a user has no other interface than loopback",
    "run as root, or weigh a program that has no server",
)
_numbers = itertools.count()
_networks = itertools.count()
_BLOCKS = 2**14
"""Networks of four addresses in its half of them; the other half is that of bridges."""


class NetnsOptions(EnvironmentOptions):
    """``rate`` is the rate of the link in each direction, in bits per second of Ethernet; without it none is set."""

    rate: Annotated[Rate, Field(ge=1e6, le=1e10, description="Link rate in each direction")] | None = None


class Netns(Environment):
    """What an own network costs without any engine: the step between host network and a container's bridge."""

    kind = "netns"
    summary = "native in a network namespace of its own, joined by a veth pair, with an optional link rate"
    options = NetnsOptions
    limited_by_host = True
    mounts = frozenset({"folder"})
    storage = "directory"
    shares_root = True
    programs: ClassVar = ("ip", "tc")

    def problems(self, options: Any, *, needs: Needs) -> list[str]:
        """Its addresses are known on its own host only."""
        text = "its network ends at its host: put both roles on one host, or use docker with attach: interface"
        return [text] if needs.apart and needs.network else []

    def way_to_companions(self, options: Any) -> str:
        """Its packets are the host's to pass on."""
        return "routed by the host to the bridge"

    def readiness(self, options: Any | None = None) -> Readiness:
        """Ready for root; a user's has no cable, where user namespaces are allowed."""
        if output(("unshare", "--net", "true")) is not None:
            return Readiness(True)
        if (refusal := user_namespaces.refusal()) is not None:
            return Readiness(False, *refusal)
        if options is not None and options.rate is not None:
            return Readiness(False, f"'rate': {_NO_CABLE[0]}", _NO_CABLE[1])
        return Readiness(True, _NO_CABLE[0], caveat="programs without a server")

    def unmet(self, options: Any, *, needs: Needs) -> Readiness | None:
        """A cable to the host, without root."""
        here = any(host.this_machine for host in needs.holding.values())
        return Readiness(False, *_NO_CABLE) if needs.network and here and os.geteuid() != 0 else None

    def by_hand(self, options: Any, request: ByHandRequest) -> ByHand:
        """Not by hand."""
        return ByHand("Weighbridge makes its network namespace and its cable")

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """A chroot behind a veth pair, of a user without one; the link goes away with the namespace."""
        if not request.host.root:
            with _without_cable(request) as site:
                yield site
            return
        name = f"{link_prefix(request.run.id)}v{next(_numbers) % 1000}"
        with ExitStack() as stack:
            site = stack.enter_context(chroot_site(request, own_network=True))
            address = stack.enter_context(_link(request, name, site.pid))
            site.address = site.listen = address
            if request.companions is not None:
                stack.enter_context(_routed(request, name, site.pid))
            if options.rate is not None:
                _limit(request.host, name, site.pid, options.rate)
                site.notes["link"] = tc.rate_words(options.rate)
                site.links = (_shaped(request, name, site.pid, options.rate),)
            yield site


@contextmanager
def _without_cable(request: SiteRequest) -> Iterator[Site]:
    """The network namespace of a user, with its own loopback interface alone."""
    if request.companions is not None or request.apart:
        raise Unavailable(": ".join(_NO_CABLE))
    with chroot_site(request, own_network=True) as site:
        site.address = site.listen = "127.0.0.1"
        site.notes["link"] = f"none: {_NO_CABLE[0]}"
        yield site


@contextmanager
def _link(request: SiteRequest, name: str, pid: int) -> Iterator[str]:
    """A veth pair between the host and the namespace of ``pid``; gives the address at the far end."""
    host, block = request.host, _free_block(request.run, request.host)
    ours, theirs = (_address(block + offset) for offset in (1, 2))
    must(host, "ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    try:
        must(host, "ip", "address", "add", f"{ours}/30", "dev", name)
        must(host, "ip", "link", "set", name, "up")
        must(host, *in_network_of(pid), "ip", "address", "add", f"{theirs}/30", "dev", "eth0")
        for device in ("lo", "eth0"):
            must(host, *in_network_of(pid), "ip", "link", "set", device, "up")
        yield theirs
    finally:
        with contextlib.suppress(Unavailable):
            must(host, "ip", "link", "delete", name)


@contextmanager
def _routed(request: SiteRequest, name: str, pid: int) -> Iterator[None]:
    """A route to the companions' bridge and back, which the packet filter lets pass: an engine sets it to drop.

    Docker 28 drops what is routed to its containers already in table raw. The engine has the host forward packets
    already. The rules end with the run by `links.remove_all`, too.
    """
    assert request.companions is not None
    host, there = request.host, request.companions
    gateway = must_tell(host, "ip", "-o", "-4", "address", "show", "dev", name).split()[3].split("/")[0]
    must(host, *in_network_of(pid), "ip", "route", "add", there.subnet, "via", gateway)
    ways = [links.rule(one, request.run.id, other) for one, other in ((name, there.link), (there.link, name))]
    places = [("filter", "FORWARD", way) for way in ways]
    if links.drops_routed(must_tell(host, "iptables-save"), there.link):
        places.append(("raw", "PREROUTING", links.rule_to_subnet(name, there.subnet, request.run.id)))
    with ExitStack() as stack:
        for table, chain, way in places:
            must(host, "iptables", "--wait", "-t", table, "-I", chain, *way)
            stack.callback(host.run, Command(("iptables", "--wait", "-t", table, "-D", chain, *way), 10))
        yield


def _free_block(run: RunContext, host: Host) -> int:
    """The first of four addresses that the host has no route to; where to begin to look depends on the run."""
    routes = routes_of(host)
    for _ in range(_BLOCKS):
        block = 4 * ((int(run.id, 16) + next(_networks)) % _BLOCKS)
        if network.route_in(routes, f"{_address(block)}/30") is None:
            return block
    raise Unavailable(f"host {host.name} uses all of {_address(0)}/16: no network is left for a namespace")


def _limit(host: Host, name: str, pid: int, rate: float) -> None:
    """Limit the link in both directions."""
    bucket = ("root", *tc.token_bucket(rate, peakrate="10gbit"))
    must(host, "tc", "qdisc", "add", "dev", name, *bucket)
    must(host, *in_network_of(pid), "tc", "qdisc", "add", "dev", "eth0", *bucket)


def _shaped(request: SiteRequest, name: str, pid: int, rate: float) -> Link:
    """The link between the token buckets: each counts what it lets through."""

    def carried() -> Mapping[str, float]:
        ends = {"out": (*in_network_of(pid), *tc.show("eth0")), "in": tc.show(name)}
        return tc.carried({way: request.host.run(Command(argv, 10)).text for way, argv in ends.items()})

    return Link(request.role, rate, carried)


def _address(number: int) -> str:
    first, second = NETWORK
    return f"{first}.{second + (number >> 16 & 1)}.{number >> 8 & 255}.{number & 255}"


PLUGIN = Netns()
