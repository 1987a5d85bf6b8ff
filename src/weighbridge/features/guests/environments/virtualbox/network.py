"""The network of a VirtualBox machine, and the address at which the other role reaches it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.guests import virtualbox
from weighbridge.features.guests.environments.virtualbox import commands, output
from weighbridge.features.guests.environments.virtualbox.commands import Attachment
from weighbridge.features.guests.environments.virtualbox.site import VirtualBox
from weighbridge.hosts.bridge import addresses, bridge_for
from weighbridge.linux.links import must
from weighbridge.linux.process import link_prefix
from weighbridge.model.command import Command
from weighbridge.model.site import SiteRequest

_INTERNAL = "198.19.201"
"""The first three numbers of the addresses in a network without a host."""
_HOST_ONLY, _NETWORKS = 56, 8
"""192.168.56.0/24 and those after it, which VirtualBox has set aside."""


@dataclass(frozen=True, slots=True)
class _HostOnly:
    link: str
    gateway: str
    next_address: Callable[[], str]


def attachment(options: Any, request: SiteRequest, box: VirtualBox) -> tuple[Attachment | None, str]:
    """Return the machine's network, and the address at which the other role reaches it. Raises Unavailable."""
    if options.network == "none":
        return None, "127.0.0.1"
    if options.network == "nat":
        outside = request.host.address if request.separate_hosts else "127.0.0.1"
        return commands.translated(outside, request.ports), outside
    machine_attachment = _ON[options.network](options, request, box)
    return machine_attachment, machine_attachment.guest_address


def _bridged(options: Any, request: SiteRequest, _: VirtualBox) -> Attachment:
    bridge = bridge_for(request, attached=bool(options.attach))
    return commands.bridged(bridge.name, bridge.next_address(), bridge.gateway, bridge.mtu)


def _internal(_: Any, request: SiteRequest, __: VirtualBox) -> Attachment:
    give = request.run.share(f"internal network {request.host.name}", lambda: nullcontext(addresses(_INTERNAL)))
    return commands.internal(f"{link_prefix(request.run.id)}internal", give())


def _host_only(_: Any, request: SiteRequest, box: VirtualBox) -> Attachment:
    network = request.run.share(f"host-only network {request.host.name}", lambda: _link(request, box))
    return commands.host_only(network.link, network.next_address(), network.gateway)


_ON: dict[str, Callable[[Any, SiteRequest, VirtualBox], Attachment]] = {
    "bridge": _bridged,
    "internal": _internal,
    "host-only": _host_only,
}


@contextmanager
def _link(request: SiteRequest, box: VirtualBox) -> Iterator[_HostOnly]:
    """A link that VirtualBox makes, and that a program of its own removes: its service has ended by then."""
    host = request.host
    try:
        name = output.made_link(box.must("hostonlyif", "create"))
    except ValueError as error:
        raise Unavailable(f"host {host.name}: {error}") from error
    if host.this_machine:
        virtualbox.note_link(request.run.state, name)
    try:
        third = _HOST_ONLY + int(name.removeprefix("vboxnet")) % _NETWORKS
        gateway = f"192.168.{third}.1"
        must(host, "ip", "address", "add", f"{gateway}/24", "broadcast", "+", "dev", name)
        must(host, "ip", "link", "set", name, "up")
        yield _HostOnly(name, gateway, addresses(f"192.168.{third}"))
    finally:
        with suppress(EnvironmentLost, Unavailable):
            host.run(Command((f"{box.programs}/{virtualbox.LINKS_OF}", name, "remove"), 20))
