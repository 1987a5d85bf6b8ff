"""A swarm of the run's engines, formed for its overlay networks and dissolved after it."""

import contextlib
import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from ipaddress import IPv4Address, IPv4Network, ip_network
from typing import Any

from weighbridge.engines.client import engine_errors, quietly, users_engine
from weighbridge.engines.container import Attached, started
from weighbridge.engines.docker import Engine
from weighbridge.engines.labelled import LABEL, Ask
from weighbridge.engines.networks import mtu_of
from weighbridge.errors import Unavailable
from weighbridge.linux import cancellation
from weighbridge.model.cleanup import Cleanup, Leftover, OrphanedRun, RunFolders
from weighbridge.model.host import SWARM_BRIDGE, RunContext

_VXLAN = 50
"""Bytes of its headers."""
_ETHERNET = 1500
_MADE_BRIDGE = f"{LABEL}.made-bridge"
"""The label of a swarm for which the engine made that bridge: it goes with the swarm."""
_HELD_S, _LOOK_S = 600.0, 0.5
_IN_VAIN = frozenset({"rejected", "failed"})
"""The states of an ended task that the engine starts again, which can help on a busy machine."""
_TASKS = 3
"""So many that ended in vain say that none will ever run."""
_HOLD = ("/bin/sleep", "infinity")
_numbers = itertools.count()


class Swarm:
    """A swarm, managed by its first engine. One that this run did not form is never joined, changed or left."""

    def __init__(self, run: RunContext, stack: ExitStack) -> None:
        self._run = run
        self._stack = stack
        self._members: dict[str, Engine] = {}
        self._networks: dict[str, Any] = {}

    @classmethod
    @contextmanager
    def formed(cls, run: RunContext) -> Iterator["Swarm"]:
        """Return a swarm without members yet; at the end its networks are removed and every member leaves."""
        with ExitStack() as stack:
            yield cls(run, stack)

    @property
    def _manager(self) -> Engine:
        return next(iter(self._members.values()))

    def join(self, engine: Engine) -> None:
        """Make an engine a member. Raises Unavailable if it is already in a swarm."""
        if engine.host.name in self._members:
            return
        with engine_errors(f"checking the swarm of the engine on host {engine.host.name}"):
            state = engine.client.info().get("Swarm", {}).get("LocalNodeState", "inactive")
            had_bridge = bool(engine.client.networks.list(names=[f"^{SWARM_BRIDGE}$"]))
        if state != "inactive":
            raise Unavailable(
                f"the Docker engine of host {engine.host.name} is already in a swarm ({state}), which Weighbridge "
                "never changes. Leave it (docker swarm leave), or measure overlay on testbed hosts"
            )
        address = engine.host.address
        self._run.say(f"creating a swarm on host {engine.host.name}")
        member = _Member(engine, made_bridge=not had_bridge)
        if not engine.disposable:
            self._stack.callback(member.leave)
        with engine_errors(f"adding host {engine.host.name} ({address}) to the swarm"), member.becoming():
            if not self._members:
                labels = {LABEL: self._run.id, **({} if had_bridge else {_MADE_BRIDGE: "yes"})}
                engine.client.swarm.init(advertise_addr=address, listen_addr=f"{address}:2377", labels=labels)
            else:
                manager = self._manager
                manager.client.swarm.reload()
                token = manager.client.swarm.attrs["JoinTokens"]["Worker"]
                engine.client.swarm.join(
                    remote_addrs=[f"{manager.host.address}:2377"],
                    join_token=token,
                    advertise_addr=address,
                    listen_addr=f"{address}:2377",
                )
        self._members[engine.host.name] = engine

    def network(self, environment: str, *, encrypted: bool, subnet: str | None, mtu: int | None = None) -> str:
        """Return the name of an environment's overlay network, created at first use, for containers of any member."""
        if environment not in self._networks:
            from docker.types import IPAMConfig, IPAMPool

            if subnet:
                self._must_be_free(subnet, environment)
            pool = IPAMConfig(driver="default", pool_configs=[IPAMPool(subnet=subnet)]) if subnet else None
            with engine_errors(f"creating the overlay network of {environment}"):
                network = self._manager.client.networks.create(
                    f"weighbridge-{self._run.id}-overlay-{next(_numbers)}",
                    driver="overlay",
                    attachable=True,
                    labels=self._manager.labels,
                    options=self._options(encrypted=encrypted, mtu=mtu),
                    ipam=pool,
                )
            if not self._manager.disposable:
                self._stack.callback(quietly, network.remove)
            self._networks[environment] = network
        return str(self._networks[environment].name)

    def start(self, engine: Engine, network: str, container: Any) -> Attached:
        """Start a container of a member on an overlay network. Raises Unavailable if its address is taken.

        A host's engine makes the network for its first container, and a container must be attached within 20 s. An
        emulated CPU needs longer, and no setting changes this limit. The container of a service has no such limit, so
        one holds the network meanwhile. Trying again would be wrong: the swarm could then assign an address twice.
        """
        slow = any(layer.emulated for layer in engine.host.layers) and not _addresses(engine, network)
        with self._hold_network(engine, network, container) if slow else nullcontext():
            attached = started(container)
        container.reload()
        address = container.attrs["NetworkSettings"]["Networks"][network]["IPAddress"]
        for other in self._members.values():
            if other is not engine and address in _addresses(other, network):
                attached.end()
                raise Unavailable(
                    f"the swarm gave containers on {engine.host.name} and {other.host.name} the same address"
                )
        return attached

    @contextmanager
    def _hold_network(self, engine: Engine, network: str, container: Any) -> Iterator[None]:
        """Keep a service's container on the network on a member's host, so that the network exists there."""
        from docker.types import EndpointSpec, ServiceMode

        self._run.say(f"creating the overlay network on host {engine.host.name}")
        service = self._manager.client.services.create(
            engine.client.images.get(container.attrs["Image"]).tags[0],
            command=list(_HOLD),
            name=f"weighbridge-{self._run.id}-hold-{next(_numbers)}",
            labels=self._manager.labels,
            networks=[network],
            mode=ServiceMode("global"),
            constraints=[f"node.id=={_node(engine.client)}"],
            endpoint_spec=EndpointSpec(mode="dnsrr"),
            stop_grace_period=0,
        )
        try:
            deadline = time.monotonic() + _HELD_S
            while not _runs(tasks := service.tasks()):
                ended = [task["Status"] for task in tasks if task["Status"]["State"] in _IN_VAIN]
                why = next((f": {status['Err']}" for status in ended if status.get("Err")), "")
                if len(ended) >= _TASKS or time.monotonic() > deadline:
                    within = "" if len(ended) >= _TASKS else f" in {_HELD_S:.0f} s"
                    raise Unavailable(
                        f"host {engine.host.name}: its engine did not create the overlay network{within}{why}"
                    )
                cancellation.sleep(_LOOK_S)
            yield
        finally:
            quietly(service.remove)

    def _must_be_free(self, subnet: str, environment: str) -> None:
        """Raise Unavailable if a subnet overlaps with another network, which Docker would notice too late."""
        own_subnet = IPv4Network(subnet)
        for engine in self._members.values():
            what, host = f"the subnet {subnet} of environment {environment}", engine.host
            if IPv4Address(host.address) in own_subnet:
                raise Unavailable(f"{what} overlaps with the network of host {host.name} ({host.address})")
            for network in engine.client.networks.list():
                for config in (network.attrs.get("IPAM") or {}).get("Config") or ():
                    other = ip_network(config.get("Subnet") or "::/128", strict=False)
                    if isinstance(other, IPv4Network) and own_subnet.overlaps(other):
                        on = f"the network {network.name} ({config['Subnet']}) on host {host.name}"
                        raise Unavailable(f"{what} overlaps with {on}")

    def _options(self, *, encrypted: bool, mtu: int | None) -> dict[str, str]:
        """Return the driver's options: the MTU of the hosts, from which it takes VXLAN's 50 bytes itself."""
        options = {"encrypted": ""} if encrypted else {}
        if mtu is not None:
            return {**options, "com.docker.network.driver.mtu": str(mtu + _VXLAN)}
        interfaces = [(each.host, each.host.interface) for each in self._members.values() if each.host.interface]
        mtus = [int(mtu_of(host, interface)) for host, interface in interfaces]
        if mtus and min(mtus) != _ETHERNET:
            options["com.docker.network.driver.mtu"] = str(min(mtus))
        return options


class _Member:
    """An engine that becomes a member. Its host undoes that if the run is killed."""

    def __init__(self, engine: Engine, *, made_bridge: bool) -> None:
        self._engine = engine
        self._made_bridge = made_bridge
        self._node: str | None = None

    @contextmanager
    def becoming(self) -> Iterator[None]:
        """Tell the host before the engine becomes a member, and with what number it did."""
        from docker.errors import APIError

        self._is("")
        try:
            yield
        except APIError as error:
            if "already part of a swarm" in str(error):  # another process formed one in the meantime
                self._is(None)
            raise
        self._is(_node(self._engine.client))

    def _is(self, node: str | None) -> None:
        """Record the engine's number in the swarm at the host: None before it joins, "" while it becomes a member."""
        self._node = node
        if (engine := self._engine.host.capabilities.engine) is not None:
            engine.in_swarm(node, made_bridge=self._made_bridge)

    def leave(self) -> None:
        """Leave the swarm, and remove the bridge that the engine made for it."""
        with contextlib.suppress(Exception):  # the engine can be gone, and the swarm with it
            if self._node is None or (self._node and _node(self._engine.client) != self._node):
                return
            self._engine.client.swarm.leave(force=True)
            if self._made_bridge:
                _remove_bridge(self._engine.client)
            self._is(None)


def _addresses(engine: Engine, network: str) -> set[str]:
    """Return the addresses of a host's containers on a network; empty before the first one of them."""
    from docker.errors import NotFound

    with contextlib.suppress(NotFound):
        containers = engine.client.networks.get(network).attrs.get("Containers") or {}
        return {each["IPv4Address"].partition("/")[0] for each in containers.values()}
    return set()


def _runs(tasks: Iterable[Mapping[str, Any]]) -> bool:
    return any(task["Status"]["State"] == "running" for task in tasks)


def _node(client: Any) -> str:
    return str(client.info().get("Swarm", {}).get("NodeID") or "")


def _remove_bridge(client: Any) -> None:
    with contextlib.suppress(Exception):
        for network in client.networks.list(names=[f"^{SWARM_BRIDGE}$"]):
            network.remove()


class FormedSwarm(Cleanup):
    """The swarm that a killed run formed with the user's engine, known by its label; any other is left alone."""

    label = "the swarm of the Docker engine"

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Return the swarm, with its run."""
        with users_engine() as ask:
            if ask and (run := _labels(ask).get(LABEL)):
                yield Leftover(str(run), "swarm", "created by that run")

    def end(self, run: OrphanedRun) -> None:
        """Leave the swarm, and remove the bridge that the engine made for it."""
        with users_engine() as ask:
            if ask and (labels := _labels(ask)).get(LABEL) == run.id:
                ask("POST", "/swarm/leave?force=1")
                if _MADE_BRIDGE in labels:
                    ask("DELETE", f"/networks/{SWARM_BRIDGE}")


def _labels(ask: Ask) -> Mapping[str, str]:
    """Return the labels of the swarm that the engine manages; empty if it manages none, or does not say."""
    with contextlib.suppress(OSError):
        if (ask("GET", "/info").get("Swarm") or {}).get("ControlAvailable"):
            return ask("GET", "/swarm")["Spec"].get("Labels") or {}
    return {}
