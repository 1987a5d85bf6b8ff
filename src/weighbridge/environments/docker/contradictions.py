"""Refuses options of a Docker environment that cannot work on any machine."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from weighbridge.engines import gvisor, runtimes
from weighbridge.engines.host_network import tuning_problems
from weighbridge.engines.network_problems import (
    LOOPBACK_IS_HERE,
    NO_NETWORK,
    PUBLISHED_ONE_WAY,
    apart_from_client,
    attach_problems,
    needs_bridge,
    server_out_of_reach,
    sysctl_problems,
)
from weighbridge.linux.memory_room import mib
from weighbridge.model.environment import Needs

ON_PARENT = ("macvlan", "ipvlan")
"""The networks that are attached to an interface of the host."""


def problems(options: Any, needs: Needs) -> Iterator[str]:
    """Yield a sentence for each combination that cannot work, and for each network that is not sufficient."""
    yield from _contradictions(options)
    yield from attach_problems(options, needs)
    yield from _no_such_parent(options, needs)
    memory = needs.resources.memory
    if options.runtime == "runsc" and memory is not None and memory < gvisor.LEAST_MEMORY:
        least, limit = mib(gvisor.LEAST_MEMORY), mib(memory)
        yield f"gVisor needs at least {least} of memory, but the limit is {limit}. Raise it (resources: memory)"
    if runtimes.is_path(options.runtime) and runtimes.is_gvisor(options.runtime):
        yield runtimes.gvisor_by_name(options.runtime)
    if options.runtime == "runsc" and needs.sysctls:
        yield "sysctls: gVisor's kernel has its own settings. Remove them, or use another runtime"
    own = {name: field.default for name, field in type(options).model_fields.items() if name.startswith("runsc_")}
    if options.runtime != "runsc" and (given := [name for name in own if getattr(options, name) != own[name]]):
        yield f"{given[0]}: this setting needs gVisor. Add 'runtime: runsc', or remove it"
    yield from sysctl_problems(needs, own_network=options.network != "host")
    if options.init and needs.of_this_machine:
        yield (
            "init: Docker would write its init into /sbin, which is not possible with this machine's own programs. "
            "Remove it"
        )
    yield from _addresses(options)
    yield from tuning_problems(options, needs)
    away = [kind for kind, host in needs.holding.items() if not host.here or host.own_kernel]
    if away and options.dockerd is not None:
        yield f"dockerd: hosts of kind {away[0]} cannot start a program of this machine. Use hosts of kind testbed"
    others = [kind for kind, host in needs.holding.items() if not host.disposable]
    if others and options.storage is not None and options.storage.engine_disk is not None:
        yield f"storage: 'disk' changes a whole engine. Use hosts of kind testbed or guest, not {others[0]}"
    if needs.network:
        yield from _out_of_reach(options, needs)
    if options.network not in ON_PARENT:
        return
    without_addresses = [kind for kind, host in needs.hosts.items() if not host.gives_addresses]
    if not _attachable(needs) and not options.parent:
        yield f"network: {options.network} needs a parent interface of this machine (for example parent: eth0)"
    if without_addresses and not (options.subnet and options.addresses):
        yield (
            f"network: {options.network} on {' and '.join(without_addresses)} hosts needs a subnet "
            "and the addresses of both roles in it "
            "(addresses: {server: 10.0.0.101, client: 10.0.0.102})"
        )
    elif needs.separate_hosts and options.subnet and len(options.addresses) < len(needs.inside):
        yield (
            "'subnet' needs the addresses of both roles in it, because otherwise the engines of two hosts would "
            "assign the same addresses"
        )


def _attachable(needs: Needs) -> bool:
    return all(host.attachable for host in needs.hosts.values())


def _no_such_parent(options: Any, needs: Needs) -> Iterator[str]:
    """Hosts that are made for the run have the one interface that they are made with."""
    for kind, host in needs.holding.items():
        if options.parent and host.interface not in ("", options.parent):
            text = f"parent: a {kind} host has no network interface '{options.parent}'"
            yield f"{text}, only {host.interface}. Remove 'parent'"


def _contradictions(options: Any) -> Iterator[str]:
    network = options.network
    if options.publish and network != "bridge":
        yield needs_bridge("publish", network)
    if options.publish and options.attach:
        yield (
            "'publish' has no effect with attach: interface, because clients reach its containers directly. Remove it"
        )
    if options.encrypted and network != "overlay":
        yield f"'encrypted' needs network: overlay, not {network}"
    if options.ipvlan_mode != "l2" and network != "ipvlan":
        yield f"'ipvlan_mode' needs network: ipvlan, not {network}"
    if options.publish_on == "loopback" and not options.publish:
        yield "'publish_on' needs publish: true"
    if options.publish_by == "proxy" and not (options.publish and options.userland_proxy):
        yield "'publish_by: proxy' needs publish: true and userland_proxy: true"
    if options.parent and network not in ON_PARENT and not options.attach:
        yield f"'parent' needs network: macvlan or ipvlan, or attach: interface, not {network}"


def _addresses(options: Any) -> Iterator[str]:
    if options.subnet and options.network not in (*ON_PARENT, "overlay"):
        yield f"'subnet' needs network: macvlan, ipvlan or overlay, not {options.network}"
    for key in ("gateway", "addresses"):
        if getattr(options, key) and not (options.subnet and options.network in ON_PARENT):
            yield f"'{key}' needs network: macvlan or ipvlan, and their subnet"
    if not options.subnet:
        return
    try:
        subnet = IPv4Network(options.subnet)
    except ValueError as error:
        yield f"subnet: {error}"
        return
    named = {"gateway": options.gateway, **options.addresses}
    for name, address in named.items():
        if address and not _is_in(address, subnet):
            yield f"{name}: {address} is not an address in the subnet {subnet}"
    addresses = [address for address in named.values() if address]
    if len(set(addresses)) < len(addresses):
        yield "gateway and addresses must all differ, because a duplicate would go unnoticed"


def _is_in(address: str, subnet: IPv4Network) -> bool:
    try:
        return IPv4Address(address) in subnet and IPv4Address(address) not in (subnet[0], subnet[-1])
    except ValueError:
        return False


def _out_of_reach(options: Any, needs: Needs) -> Iterator[str]:
    network, both = options.network, {"server", "client"} <= needs.inside
    if network == "none":
        yield NO_NETWORK
    if network == "overlay" and not both:
        yield "network: overlay connects only containers. Put both roles inside: [server, client]"
    if network in ON_PARENT and not needs.separate_hosts and not both:
        text = f"network: {network} cannot be reached from its own host. Put both roles inside"
        yield f"{text}, or the client on another host"
    if network in ("bridge", "host"):
        yield from apart_from_client(needs)
    if network == "bridge":
        yield from server_out_of_reach(needs)
    if (
        needs.separate_hosts
        and "server" in needs.inside
        and network == "bridge"
        and not (options.publish or options.attach)
    ):
        yield "a bridge cannot be reached from another host. Add publish: true, or attach: interface"
    if needs.separate_hosts and not _attachable(needs) and network in ON_PARENT:
        yield (
            f"network: {network} would join a network that does not contain the other host. Put both roles on "
            "testbed hosts"
        )
    if needs.separate_hosts and options.publish_on == "loopback":
        yield LOOPBACK_IS_HERE
    if needs.separate_hosts and network == "ipvlan" and options.ipvlan_mode == "l3":
        yield "ipvlan_mode: l3 needs routes between the two hosts, which Weighbridge does not add. Use l2"
    if needs.server_calls_client and options.publish:
        yield PUBLISHED_ONE_WAY
