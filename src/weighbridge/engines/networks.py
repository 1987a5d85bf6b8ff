"""Docker's networks: the attachment of a container, its address, and the features of this kernel.

Features are tried once in a temporary namespace. A user who cannot create one cannot check, and the engine might
still have the feature.
"""

import functools
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from weighbridge.engines.client import engine_errors, quietly
from weighbridge.engines.container import Attached, started
from weighbridge.engines.docker import Engine
from weighbridge.errors import Unavailable
from weighbridge.linux import links, user_namespaces
from weighbridge.linux.process import link_prefix, run
from weighbridge.model.command import Command
from weighbridge.model.host import Host, RunContext

Driver = Literal["macvlan", "ipvlan"]
_LOCAL_SUBNET = "198.19.201.0/24"
"""For containers on a parent interface of one machine that speak to one another only (RFC 2544)."""
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class ContainerAttachment:
    """The network of a container, by name, and the address that it must have there (None: the engine chooses)."""

    network: str
    ip: str | None = None
    created_network: Any = None
    """The SDK's object of the network, if the run created it."""
    ports: dict[str, tuple[str, int]] = field(default_factory=dict)
    start: Callable[[Any], Attached] = started
    """Starts a container that is to be on it."""


@contextmanager
def bridge(engine: Engine, run: RunContext, name: str, mtu: int | None = None) -> Iterator[Any]:
    """Return a bridge network of its own; containers outside reach it by ports only.

    ``mtu`` is in bytes; None means the MTU of the host's interface if the run created the host.
    """
    options = {"com.docker.network.bridge.name": f"{link_prefix(run.id)}{next(_numbers) % 1000}"}
    if mtu is not None:
        options["com.docker.network.driver.mtu"] = str(mtu)
    elif engine.host.interface:
        options["com.docker.network.driver.mtu"] = mtu_of(engine.host, engine.host.interface)
    with _create_network(
        engine, run, name, f"creating the network of {name}", driver="bridge", options=options
    ) as network:
        yield network


def network_name(run: RunContext, name: str) -> str:
    """Return the engine's name of a network of the run, such as the bridge of the site of this name."""
    return f"weighbridge-{run.id}-{name}"


def gateway(network: Any) -> str:
    """Return the address of a bridge network's own bridge."""
    return str(network.attrs["IPAM"]["Config"][0]["Gateway"])


def mtu_of(host: Host, interface: str) -> str:
    """Return an interface's MTU in bytes. Raises Unavailable if the host has no such interface."""
    try:
        return host.read(f"/sys/class/net/{interface}/mtu").decode().strip()
    except OSError as error:
        raise Unavailable(f"host {host.name} has no network interface '{interface}': choose another") from error


@contextmanager
def attached_bridge(engine: Engine, run: RunContext, parent: str) -> Iterator[Any]:
    """Make a bridge network with the host's interface as a port: one subnet across all hosts on the same switch.

    The host's address moves from the interface to the bridge for good: it is a host that nothing else uses.
    """
    host = engine.host.capabilities.disposable
    if host is None:
        sentence = (
            f"attach: interface would take over the address of {parent} on {engine.host.name}. Use hosts of kind "
            "testbed"
        )
        raise Unavailable(sentence)
    name, mtu = f"{link_prefix(run.id)}b", mtu_of(host, parent)
    hardware = host.read(f"/sys/class/net/{parent}/address").decode().strip()
    for argv in links.over_interface(name, parent, f"{host.address}/24", host.gateway, hardware, mtu):
        links.must(host, "ip", *argv)
    options = {"com.docker.network.bridge.name": name, "com.docker.network.driver.mtu": mtu}
    # its gateway is the address that the bridge has already, else Docker would change it
    with _in_subnet(engine, run, "bridge", host.subnet, host.address, options) as network:
        yield network


@contextmanager
def on_parent(
    engine: Engine, run: RunContext, driver: Driver, parent: str, subnet: str | None, gateway_: str | None, mode: str
) -> Iterator[Any]:
    """Return a macvlan or ipvlan network on a host's interface. Raises Unavailable if it cannot be created."""
    mtu_of(engine.host, parent)
    if subnet is None:
        own = engine.host.capabilities.disposable
        subnet, gateway_ = (own.subnet, own.gateway) if own is not None else (_LOCAL_SUBNET, None)
    option = {"macvlan": "macvlan_mode", "ipvlan": "ipvlan_mode"}[driver]
    with _in_subnet(engine, run, driver, subnet, gateway_, {"parent": parent, option: mode}) as network:
        yield network


@contextmanager
def _in_subnet(
    engine: Engine, run: RunContext, driver: str, subnet: str, gateway_: str | None, options: dict[str, str]
) -> Iterator[Any]:
    from docker.types import IPAMConfig, IPAMPool

    ipam = IPAMConfig(pool_configs=[IPAMPool(subnet=subnet, gateway=gateway_)])
    what = f"creating the {driver} network {subnet} on host {engine.host.name}"
    name = f"{driver}-{next(_numbers)}"
    with _create_network(engine, run, name, what, driver=driver, options=options, ipam=ipam) as network:
        yield network


@contextmanager
def _create_network(engine: Engine, run: RunContext, name: str, what: str, **options: Any) -> Iterator[Any]:
    with engine_errors(what):
        network = engine.client.networks.create(network_name(run, name), labels=engine.labels, **options)
        network.reload()
    try:
        yield network
    finally:
        if not engine.disposable:
            quietly(network.remove)


_ON_PARENT = "ip link add wb0 type veth peer name wb1 && ip link add link wb0 name wb2 type"
_TRIES = {
    "macvlan": (f"{_ON_PARENT} macvlan mode bridge", "macvlan"),
    "ipvlan": (f"{_ON_PARENT} ipvlan mode l2", "ipvlan"),
    "overlay": ("ip link add wb0 type vxlan id 42 dstport 4789", "VXLAN"),
    "encrypted": (
        "ip xfrm state add src 127.0.0.1 dst 127.0.0.2 proto esp spi 0x1 mode transport"
        " aead 'rfc4106(gcm(aes))' 0x000102030405060708090a0b0c0d0e0f10111213 64",
        "IPsec ESP with AES-GCM",
    ),
}


def not_looked() -> tuple[str, str] | None:
    """Return why this user cannot try the kernel's features, and what would permit it; None if nothing hinders."""
    return None if os.geteuid() == 0 else user_namespaces.refusal()


@functools.cache
def lacking(feature: str) -> str:
    """Return why the kernel cannot do ``macvlan``, ``ipvlan``, ``overlay`` or ``encrypted``; empty if it can.

    It is also empty if this user cannot check (`not_looked`).
    """
    script, what = _TRIES[feature]
    as_root = () if os.geteuid() == 0 else ("--map-root-user",)
    completed = run(Command(("unshare", *as_root, "--net", "sh", "-c", script), 10))
    if completed.returncode == 0 or not_looked() is not None:
        return ""
    return f"this kernel has no {what} ({completed.last_words})"
