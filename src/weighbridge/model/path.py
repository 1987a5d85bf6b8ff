"""The network path between the two roles of a workload, as it was probed before the first trial. Pure."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from weighbridge.model.command import Transport

InterfaceKind = Literal["loopback", "bridge", "veth", "tap", "other"]
Translation = Literal["none", "source", "destination", "source and destination", "proxy"]
"""Whose address is another one at the server's end of a connection than at the client's.

``proxy``: a program in between ends the client's connection and makes one of its own to the server.
"""


class Interface(BaseModel):
    """A network interface that the traffic crosses. ``mtu`` is in bytes; ``place`` is a role, or ``host NAME``.

    ``offloads`` are those of TSO, GSO and GRO that are on; None where they could not be read.
    """

    model_config = ConfigDict(frozen=True)
    place: str
    name: str
    kind: InterfaceKind
    mtu: Annotated[int, Field(ge=0)]
    offloads: tuple[str, ...] | None = None


class NetworkPath(BaseModel):
    """How a client reaches a server in one environment, from probes of that very path.

    ``interfaces`` carried the probe's bytes, the client's side first. ``mss`` is the size in bytes of the segments
    that the client's kernel sends on a TCP connection, ``mss_back`` the server's; None for UDP. ``routers`` is how
    many forward the packets. ``hooks`` are the netfilter chains of the hosts (``nat OUTPUT``) whose counters rose
    during the probe, ``rules`` how many of their rules did; None where they could not be read. ``unseen_rules``: how
    many rules the hosts have that count nothing (nftables), so that nobody can tell whether they were crossed.
    ``uncertain``: others sent so much at an end that all of its interfaces are named that may have carried it.
    """

    model_config = ConfigDict(frozen=True)
    transport: Transport
    interfaces: tuple[Interface, ...]
    mss: int | None = None
    mss_back: int | None = None
    routers: int | None = None
    translation: Translation = "none"
    hooks: tuple[str, ...] | None = None
    rules: int | None = None
    unseen_rules: int = 0
    uncertain: bool = False

    @property
    def loopback(self) -> bool:
        """Whether it does not leave the loopback interface."""
        return all(each.kind == "loopback" for each in self.interfaces)

    @property
    def segmentation(self) -> bool | None:
        """Whether packets larger than the MTU go to its interfaces (TSO and GSO); None where that is not known."""
        known = [each.offloads for each in self.interfaces if each.offloads is not None]
        return all({"tso", "gso"} <= {*on} for on in known) if known else None

    @property
    def mtu(self) -> int | None:
        """The smallest MTU of its interfaces, in bytes; None where none is known."""
        return min((each.mtu for each in self.interfaces), default=None)
