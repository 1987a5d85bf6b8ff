"""A network namespace of one's own, joined to the host by a veth pair, with an optional link rate. No engine."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar

from pydantic import Field

from weighbridge.hosts import cable
from weighbridge.hosts.chroot import chroot_site
from weighbridge.linux import tc, user_namespaces
from weighbridge.linux.links import must
from weighbridge.linux.network import in_network_of
from weighbridge.linux.process import output
from weighbridge.model.by_hand import ByHand, ByHandRequest
from weighbridge.model.command import Command
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs
from weighbridge.model.facts import NAMESPACES
from weighbridge.model.host import Host, NetworkLink
from weighbridge.model.plugin import Readiness
from weighbridge.model.quantity import Rate
from weighbridge.model.site import Site, SiteRequest


class NetnsOptions(EnvironmentOptions):
    """``rate`` is the rate of the link in each direction, in bits per second of Ethernet; without it none is set."""

    rate: Annotated[Rate | None, Field(ge=1e6, le=1e10, description="Link rate in each direction")] = None


class Netns(Environment):
    """A separate network without an engine: the step between the host's network and a container's bridge."""

    kind = "netns"
    group = "network"
    summary = "native programs in a network namespace behind a veth pair, with an optional link rate"
    options = NetnsOptions
    limited_by_host = True
    mounts = frozenset({"folder"})
    storage = "directory"
    shares_root = True
    takes = frozenset({"shm_size"})
    enters = True
    programs: ClassVar = ("ip", "tc")
    host_programs: ClassVar = programs

    def check(self, options: Any, needs: Needs) -> list[str]:
        """Return why the roles cannot reach each other: the namespace's addresses are known on its own host only."""
        return cable.problems(needs)

    def confinement(self, options: Any) -> Mapping[str, str]:
        """Return the namespaces only, because everything else is as in ``native``."""
        return {NAMESPACES: ""}

    def route_to_supporting_services(self, options: Any) -> str:
        """Return the route to the supporting services: the host forwards the site's packets."""
        return "routed by the host to the bridge"

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        """Return whether root or user namespaces are there; without root the site has no cable to its host."""
        if output(("unshare", "--net", "true")) is not None:
            return cable.unmet(needs) or Readiness(True)
        if (refusal := user_namespaces.refusal()) is not None:
            return Readiness(False, *refusal)
        if options is not None and options.rate is not None:
            return Readiness(False, f"'rate': {cable.NO_CABLE[0]}", cable.NO_CABLE[1])
        return cable.unmet(needs) or cable.WITHOUT_CABLE

    def by_hand(self, options: Any, request: ByHandRequest) -> ByHand:
        return ByHand("Weighbridge creates its network namespace and its cable")

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """Open a chroot behind a veth pair, or without one for a user; the link ends with the namespace."""
        with chroot_site(request, own_network=True) as site, cable.joined(request, site) as laid:
            if options.rate is not None and laid is not None:
                _limit(request.host, laid.link, site.pid, options.rate)
                site.notes["link"] = tc.rate_words(options.rate)
                site.links = (_shaped(request, laid.link, site.pid, options.rate),)
            yield site


def _limit(host: Host, name: str, pid: int, rate: float) -> None:
    """Limit the link in both directions."""
    bucket = ("root", *tc.token_bucket(rate, peakrate="10gbit"))
    must(host, "tc", "qdisc", "add", "dev", name, *bucket)
    must(host, *in_network_of(pid), "tc", "qdisc", "add", "dev", "eth0", *bucket)


def _shaped(request: SiteRequest, name: str, pid: int, rate: float) -> NetworkLink:
    """Return the link between the token buckets, which count the bits that they let through."""

    def carried() -> Mapping[str, float]:
        ends = {"out": (*in_network_of(pid), *tc.show("eth0")), "in": tc.show(name)}
        return tc.carried({way: request.host.run(Command(argv, 10)).text for way, argv in ends.items()})

    return NetworkLink(request.role, rate, carried)


PLUGIN = Netns()
