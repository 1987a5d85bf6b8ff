"""A veth pair that joins a network namespace to its host: two addresses, and a route to sidecars. No engine."""

import contextlib
import itertools
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from weighbridge.errors import Unavailable
from weighbridge.hosts.bridge import routes_of
from weighbridge.hosts.chroot import ChrootSite
from weighbridge.linux import links, network
from weighbridge.linux.links import must, must_output
from weighbridge.linux.network import in_network_of
from weighbridge.linux.process import link_prefix
from weighbridge.model.command import Command
from weighbridge.model.environment import Needs
from weighbridge.model.host import Host, RunContext
from weighbridge.model.plugin import Readiness
from weighbridge.model.site import SiteRequest

NETWORK = (198, 18)
"""198.18.0.0/15 is reserved for measurements (RFC 2544), so it does not collide with real addresses."""

NO_CABLE = (
    "only root can connect a network namespace to its host; without root it has only the loopback interface",
    "run as root, or weigh a program that has no server",
)
WITHOUT_CABLE = Readiness(True, NO_CABLE[0], caveat="programs without a server")
"""The part that is ready for a user without root."""
_numbers = itertools.count()
_networks = itertools.count()
_BLOCKS = 2**14
"""The number of four-address networks in this half of the range; the other half is for bridges."""


@dataclass(frozen=True, slots=True)
class VethCable:
    """``link`` is the host's end; the other is eth0 of the network namespace, with the ``address``."""

    link: str
    address: str


def problems(needs: Needs) -> list[str]:
    """Return why a study cannot have such a network: its addresses are only known on its own host."""
    text = (
        "its network does not reach beyond its host: put both roles on one host, or use docker with attach: interface"
    )
    return [text] if needs.separate_hosts and needs.network else []


def unmet(needs: Needs | None) -> Readiness | None:
    """Return why this machine's user cannot have a server behind a cable; None if the user can."""
    if needs is None:
        return None
    local_hosts = [host for host in needs.holding.values() if host.this_machine]
    return Readiness(False, *NO_CABLE) if needs.network and local_hosts and os.geteuid() != 0 else None


@contextmanager
def joined(request: SiteRequest, site: ChrootSite) -> Iterator[VethCable | None]:
    """Join a site's own network to its host if it is root; add a route to the request's sidecars.

    Sets the site's addresses. Yields None without root: the network then only has its own loopback interface, and
    Unavailable is raised if the site needs more.
    """
    if not request.host.root:
        if request.supporting_services is not None or request.separate_hosts:
            raise Unavailable(": ".join(NO_CABLE))
        site.address = site.listen = "127.0.0.1"
        site.notes["link"] = f"none: {NO_CABLE[0]}"
        yield None
        return
    name = f"{link_prefix(request.run.id)}v{next(_numbers) % 1000}"
    with ExitStack() as stack:
        site.address = site.listen = stack.enter_context(_link(request, name, site.pid))
        if request.supporting_services is not None:
            stack.enter_context(_routed(request, name, site.pid))
        yield VethCable(name, site.address)


@contextmanager
def _link(request: SiteRequest, name: str, pid: int) -> Iterator[str]:
    """Make a veth pair between the host and the namespace of ``pid``; yield the address at the far end."""
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
    """Add a route to the sidecars' bridge and back, with packet filter rules, because an engine sets it to drop.

    Docker 28 already drops packets that are routed to its containers in table raw. The engine has already enabled
    forwarding. The rules also end with the run, by `links.remove_all`.
    """
    assert request.supporting_services is not None
    host, services = request.host, request.supporting_services
    gateway = must_output(host, "ip", "-o", "-4", "address", "show", "dev", name).split()[3].split("/")[0]
    must(host, *in_network_of(pid), "ip", "route", "add", services.subnet, "via", gateway)
    rules = [
        links.rule(first, request.run.id, second) for first, second in ((name, services.link), (services.link, name))
    ]
    places = [("filter", "FORWARD", way) for way in rules]
    if links.drops_routed(must_output(host, "iptables-save"), services.link):
        places.append(("raw", "PREROUTING", links.rule_to_subnet(name, services.subnet, request.run.id)))
    with ExitStack() as stack:
        for table, chain, rule in places:
            must(host, "iptables", "--wait", "-t", table, "-I", chain, *rule)
            stack.callback(host.run, Command(("iptables", "--wait", "-t", table, "-D", chain, *rule), 10))
        yield


def _free_block(run: RunContext, host: Host) -> int:
    """Return the first of four addresses without a route on the host; the search starts at a number of the run."""
    routes = routes_of(host)
    for _ in range(_BLOCKS):
        block = 4 * ((int(run.id, 16) + next(_networks)) % _BLOCKS)
        if network.route_in(routes, f"{_address(block)}/30") is None:
            return block
    raise Unavailable(
        f"host {host.name} uses every address in {_address(0)}/16. Run 'weighbridge clean' to remove leftovers of "
        "earlier runs"
    )


def _address(number: int) -> str:
    first, second = NETWORK
    return f"{first}.{second + (number >> 16 & 1)}.{number >> 8 & 255}.{number & 255}"
