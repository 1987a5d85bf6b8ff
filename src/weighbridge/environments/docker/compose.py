"""A Docker environment as Docker Compose makes it, with both roles on one machine."""

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from weighbridge.engines import runtimes
from weighbridge.engines.confined import compose_keys
from weighbridge.environments.docker.contradictions import ON_PARENT
from weighbridge.model.by_hand import (
    ETHERNET_PAYLOAD,
    LOOPBACK,
    ByHand,
    ByHandRequest,
    Setting,
)
from weighbridge.model.command import SITE_ENV

PARENT = Setting("PARENT", "eth0", "the interface that macvlan and ipvlan networks use")
_VXLAN = 50
"""The bytes that an overlay adds to each packet."""
_ANY = "0.0.0.0"  # noqa: S104 - in a container
_Network = dict[str, Any]


def by_hand(options: Any, request: ByHandRequest) -> ByHand:
    """The services of the roles inside, and the networks that they are in."""
    if cannot := _why_not(options, request):
        return ByHand(cannot)
    differs = tuple(_differences(options))
    if options.network in ("none", "host"):
        services = {
            role: {
                "network_mode": options.network,
                **_keys(options),
                **_ulimits(options),
                **_variables(options),
            }
            for role in request.inside
        }
        return ByHand(services=services, first=_first(options), differs=differs)
    if options.publish:
        return _published(options, request, differs)
    subnet = IPv4Network(options.subnet or f"198.19.{request.number % 256}.0/24")
    server = options.addresses.get("server", str(subnet[2]))
    client = options.addresses.get("client", str(subnet[3]))
    gateway = options.gateway or str(subnet[1])
    network = _network(options, subnet, gateway if options.network != "macvlan" or options.gateway else "")
    own = {"server": server, "client": client}
    both = "server" in request.inside
    return ByHand(
        listen=server if both else _ANY,
        address=server if both else gateway,
        client=client if "client" in request.inside else gateway,
        udp_payload=ETHERNET_PAYLOAD - (_VXLAN if options.network == "overlay" else 0),
        services={role: _service(options, "sites", own[role]) for role in request.inside},
        networks={"sites": network},
        first=_first(options),
        differs=differs,
    )


def _published(options: Any, request: ByHandRequest, differs: tuple[str, ...]) -> ByHand:
    """Each role in a network of its own; clients use the server's published ports."""
    server, client = (IPv4Network(f"198.19.{(request.number + 128 * n) % 256}.0/24") for n in (0, 1))
    on = LOOPBACK if options.publish_on == "loopback" else str(server[1])
    ports = [f"{on}:{port.reached}:{port.listens}/{port.transport}" for port in request.ports]
    services = {"server": {**_service(options, "server", str(server[2])), "ports": ports}}
    networks = {"server": _network(options, server, str(server[1]))}
    if "client" in request.inside:
        services["client"] = _service(options, "client", str(client[2]))
        networks["client"] = _network(options, client, str(client[1]))
    of_client = str(client[2]) if "client" in request.inside else str(server[1])
    return ByHand(
        "", _ANY, on, of_client, ETHERNET_PAYLOAD, services, networks, _first(options), differs, published=True
    )


def _why_not(options: Any, request: ByHandRequest) -> str:
    return next(_obstacles(options, request), "")


def _obstacles(options: Any, request: ByHandRequest) -> Iterator[str]:
    apart = request.network and not {"server", "client"} <= request.inside
    if request.network and options.network == "none":
        yield "network: none does not connect the two roles"
    if apart and options.network in (*ON_PARENT, "overlay"):
        yield f"network: {options.network} cannot be reached from the same machine, where the kit runs the other role"
    if options.publish and "server" not in request.inside:
        yield "only ports of a server are published, but the server of this study is outside"
    if options.publish and options.publish_on == "loopback" and "client" in request.inside:
        yield "a port published on loopback cannot be reached from another container"
    if options.publish_by == "proxy":
        yield "docker-proxy carries all connections only in an engine without iptables, such as Weighbridge starts"
    if options.seccomp == "no-io-uring":
        yield "Docker Compose reads a system call filter only from a file, and the kit has none"
    if options.publish and not options.userland_proxy:
        yield "Docker Compose cannot change userland_proxy, which is a setting of the engine"


def _differences(options: Any) -> Iterator[str]:
    if options.attach:
        yield "the bridge is an ordinary one, without the host's interface"
    if options.dockerd is not None:
        yield f"the running engine is used; Weighbridge started {options.dockerd}"
    if options.network == "overlay":
        yield "both ends of the overlay are on one machine, so packets do not leave it"


def _first(options: Any) -> tuple[str, ...]:
    steps = []
    if options.runtime != runtimes.DEFAULT:
        path = options.runtime if runtimes.is_path(options.runtime) else "PATH"
        steps.append(f"the engine must know the runtime: `dockerd --add-runtime {_runtime_name(options)}={path}`")
    if options.network == "overlay":
        steps.append("overlay networks need a swarm: `docker swarm init --advertise-addr 127.0.0.1`")
    if options.network in ON_PARENT and not options.parent:
        steps.append(f"set `{PARENT.name}` in `.env` to an interface of the machine")
    return tuple(steps)


def _runtime_name(options: Any) -> str:
    return Path(options.runtime).name


def _keys(options: Any) -> dict[str, Any]:
    """Return the keys of a service that do not depend on its network."""
    own = {} if options.runtime == runtimes.DEFAULT else {"runtime": _runtime_name(options)}
    return {**own, **compose_keys(options)}


def _network(options: Any, subnet: IPv4Network, gateway: str) -> _Network:
    driver: dict[str, Any] = {"driver": options.network}
    if options.network in ON_PARENT:
        mode = ("macvlan_mode", "bridge") if options.network == "macvlan" else ("ipvlan_mode", options.ipvlan_mode)
        driver["driver_opts"] = {"parent": options.parent or PARENT, mode[0]: mode[1]}
    if options.network == "overlay":
        driver["attachable"] = True
        driver |= {"driver_opts": {"encrypted": ""}} if options.encrypted else {}
    pool = {"subnet": str(subnet), **({"gateway": gateway} if gateway else {})}
    return {**driver, "ipam": {"config": [pool]}}


def _service(options: Any, network: str, address: str) -> dict[str, Any]:
    return {"networks": {network: {"ipv4_address": address}}, **_keys(options)}


def _ulimits(options: Any) -> Mapping[str, Any]:
    return {} if options.open_files is None else {"ulimits": {"nofile": options.open_files}}


def _variables(options: Any) -> Mapping[str, Any]:
    return {"environment": {**SITE_ENV, **options.variables}} if options.variables else {}
