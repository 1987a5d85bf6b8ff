"""A node of a cluster as a host, through the launcher of a pod in the node's network."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from weighbridge.errors import Unavailable
from weighbridge.facts.host import hardware_facts, machine_facts
from weighbridge.features.kubernetes import services
from weighbridge.features.kubernetes.cluster import Cluster, RunningPod
from weighbridge.features.kubernetes.networking import PROXY_MODE, cni, proxy_mode
from weighbridge.features.kubernetes.objects import (
    LAUNCHER,
    LIMITS,
    REQUESTS,
    NodeInfo,
    ObjectOwner,
    PodRequest,
    user_of,
)
from weighbridge.features.kubernetes.site import native_site
from weighbridge.features.kubernetes.supply import ImageSupply, NodeImages
from weighbridge.features.kubernetes.volumes import NodeFolder, claimed, folder_name, node_folder
from weighbridge.launcher.launch import Launched
from weighbridge.linux import network
from weighbridge.linux.confinement import status_field
from weighbridge.linux.namespaces import namespaces_in
from weighbridge.model.command import Command, Completed, HostProcess, Stream, Transport
from weighbridge.model.host import NODE, Capabilities, Group, Host, RunContext
from weighbridge.model.isolation import Layers
from weighbridge.model.names import SafeName
from weighbridge.model.quantity import cpus_in
from weighbridge.model.userland import Userland

_SYNC_S = 120.0


class NodeOptions(Protocol):
    """The options of a node in a study."""

    node: str | None
    selector: str | None
    privileged: bool
    pod_security: str | None

    @property
    def images(self) -> NodeImages | None:
        """Return how it gets images; None if they already exist."""


@contextmanager
def node_host(
    name: str, cluster: Cluster, options: NodeOptions, named: Collection[str], more_services: int = 0
) -> Iterator["Node"]:
    """Start the pod that represents a node; ``named`` are nodes that the study names. Raises Unavailable.

    ``more_services`` is the number of Services that the run adds to the cluster before, which the node then routes
    to.
    """
    info = cluster.node(name, options.node, options.selector, named)
    supply = cluster.supply(options.images)
    request = PodRequest(
        cluster.run.id, f"host-{name}", info.name, supply.launcher(info), cluster.owner,
        host_network=options.pod_security is None, privileged=options.privileged, user=user_of(options.pod_security),
        limits=LIMITS, requests=REQUESTS, pull=supply.pulls,
    )  # fmt: skip
    with cluster.started(request) as seen:
        node = Node(name, cluster, info, seen, supply, request, options.pod_security)
        if more_services:
            node.take_services(more_services, request.site)
        yield node


class NodeProcess:
    """A program that the node's launcher started. Implements ``HostProcess``."""

    pid = 0
    """Unknown, because a launcher does not report it."""

    def __init__(self, launched: Launched) -> None:
        self.poll, self.wait, self.stop = launched.poll, launched.wait, launched.stop
        self._printed = launched.printed

    def output_so_far(self, start: int = 0) -> bytes:
        """Return its standard output from the byte ``start`` on."""
        return self._printed()[0][start:]

    def send(self, data: bytes) -> None:
        """Raise BrokenPipeError: a launcher's programs have no pipe."""
        raise BrokenPipeError("it was started without a pipe for its input")


class Node:
    """A node. Implements ``Host``: operations without a program or right for them raise Unavailable."""

    this_machine = False
    python = "python3"
    interface = ""
    cpuset: str | None = None
    layers: Layers = ()
    root = True

    def __init__(
        self, name: str, cluster: Cluster, info: NodeInfo, seen: RunningPod, supply: ImageSupply, asked: PodRequest,
        pod_security: str | None = None,
    ) -> None:  # fmt: skip
        """``asked`` is the request for the pod ``seen``; ``pod_security`` is the level of its pods."""
        self.name, self.cluster, self.info = name, cluster, info
        self.machine = f"host {name}"
        self.network = (self.machine, "/proc/self/net/dev")
        self.address = info.address or seen.address
        self._launcher = seen.launcher
        self._supply = supply
        self.read = self._launcher.read
        self.user = asked.user
        self._asked, self._pod_security = asked, pod_security
        self._more_services = 0

    @property
    def capabilities(self) -> Capabilities:
        """Return pods, and a sampler that reads its files."""
        sync = Command((LAUNCHER, "sync"), _SYNC_S)
        return Capabilities(pods=self, native_site=native_site, sampler=self._launcher, writes_out=sync)

    @property
    def node_name(self) -> str:
        """Return its name in the cluster."""
        return self.info.name

    @property
    def namespace(self) -> str:
        """Return the namespace of its pods."""
        return self.cluster.namespace

    @property
    def owner(self) -> ObjectOwner:
        """Return the owner of the run's objects there."""
        return self.cluster.owner

    @cached_property
    def kubelet(self) -> Mapping[str, Any]:
        """Return the configuration of its kubelet, with Kubernetes' names; empty if the user cannot read it."""
        with contextlib.suppress(Unavailable):
            configuration = self.cluster.kubectl.raw(f"/api/v1/nodes/{self.info.name}/proxy/configz")
            return configuration.get("kubeletconfig") or {}
        return {}

    @property
    def cpu_manager(self) -> str:
        """Return the policy by which kubelet gives pods exclusive CPUs; "" if unknown."""
        return str(self.kubelet.get("cpuManagerPolicy", ""))

    def image(self, userland: Userland) -> str:
        """Return the name of a root filesystem's image, which the node then has. Raises Unavailable."""
        return self._supply.userland(self.info, userland)

    @property
    def pulls(self) -> bool:
        """Return whether the cluster gets images from a registry."""
        return self._supply.pulls

    def claim(
        self, name: str, size: int, storage_class: str
    ) -> AbstractContextManager[tuple[str, Mapping[str, str]]]:
        """Claim a volume for a site. Raises Unavailable."""
        cluster = self.cluster
        return claimed(cluster.run, cluster.kubectl, cluster.owner, name, size, storage_class)

    def folder(self, name: str, path: str) -> AbstractContextManager[str]:
        """Make a folder below a path of the node. Raises Unavailable."""
        cluster, image = self.cluster, self._supply.launcher(self.info)
        folder = NodeFolder(self.info.name, path, folder_name(cluster.run.id, name), image, self.pulls)
        return node_folder(cluster.run, cluster.kubectl, cluster.owner, folder)

    def open_pod(self, request: PodRequest) -> AbstractContextManager[RunningPod]:
        """Start a pod on the node. Raises Unavailable."""
        return self.cluster.started(request)

    def made(self, manifest: Mapping[str, Any]) -> AbstractContextManager[Any]:
        """Make an object of the run, which is deleted when the context ends. Raises Unavailable."""
        return self.cluster.made(manifest)

    def patched(self, kind: str, name: str, changes: Mapping[str, Any]) -> Any:
        """Change an object of the run; return its new state. Raises Unavailable."""
        return self.cluster.kubectl.patch(kind, name, changes)

    def run(self, command: Command) -> Completed:
        """Run to the end; killed at its deadline. Programs other than our own are the node's, if allowed."""
        return self._launcher.run(self._on_node(command))

    def take_services(self, number: int, site: str) -> None:
        """Wait until it routes to ``number`` Services, adding them if no other host has. Raises Unavailable.

        They lead to the pod of the ``site``, which represents the first host.
        """
        cluster = self.cluster

        def add() -> AbstractContextManager[services.Added]:
            port = self.free_ports()
            return services.added(cluster.run, cluster.kubectl, cluster.owner, number, self._launcher, site, port)

        cluster.run.share(f"services {cluster.kubectl}", add).await_taken(self._launcher, self.info.name)
        self._more_services = number

    def start(self, command: Command, *, hold: bool = False) -> HostProcess:
        """Start and return at once; its standard input is the command's."""
        return NodeProcess(self._launcher.start(self._on_node(command)))

    def _on_node(self, command: Command) -> Command:
        if not self._asked.privileged or command.argv[0] == LAUNCHER:
            return command
        return replace(command, argv=(LAUNCHER, "on-machine", *command.argv))

    def talk(self, command: Command) -> tuple[HostProcess, Stream]:
        """Raise Unavailable."""
        raise Unavailable(f"host {self.name} is a node of a cluster, and Weighbridge uses only pods there")

    def program(self, program: Path) -> str:
        """Raise Unavailable."""
        raise Unavailable(f"host {self.name} is a node of a cluster, and Weighbridge does not copy files there")

    def namespaces(self) -> Mapping[str, int]:
        """Return the node's own namespaces if its pod is privileged, else those of that pod.

        The pod has the node's network and host name, and separate other namespaces. Two pods never share these: an id
        that another pod has too is the node's, and if they differ, the other pod does not have the node's.
        """
        process = 1 if self._asked.privileged else "self"
        return namespaces_in(lambda kind: self.read(f"/proc/{process}/ns/{kind}").decode())

    def meters_of(self, pid: int) -> Mapping[str, float]:
        """Return no counters: its processes are not visible."""
        return {}

    def scope_of(self, pid: int) -> Mapping[str, str]:
        """Return no files: its processes are not visible."""
        return {}

    def signal(self, pid: int, number: int) -> None:
        """Raise Unavailable."""
        raise Unavailable(f"host {self.name} is a node of a cluster, and Weighbridge cannot see its processes")

    def group(self, name: str) -> Group:
        """Raise Unavailable."""
        raise Unavailable("Kubernetes sets the limits of pods")

    def cpus_online(self) -> list[int]:
        """Return the CPUs that its pods can use."""
        allowed = status_field(self.read("/proc/self/status").decode(), "Cpus_allowed_list") or "0"
        return sorted(cpus_in(allowed))

    def free_ports(self, taken: Collection[int] = ()) -> int:
        """Return a free port of the node whose successor is free too. Raises Unavailable."""
        bound = network_ports(lambda path: self.read(path).decode())
        return network.free_port(taken, lambda port: port not in bound)

    def userland(self, userland: Userland) -> Path:
        """Raise Unavailable."""
        raise Unavailable(f"host {self.name} is a node of a cluster, and Weighbridge uses only pods there")

    def data_folder(self, run: RunContext, name: SafeName) -> AbstractContextManager[Path]:
        """Raise Unavailable."""
        raise Unavailable(f"host {self.name} is a node of a cluster, and Weighbridge uses only pods there")

    def dedicated_host(self, purpose: str) -> Host:
        """Raise Unavailable."""
        raise Unavailable(f"host {self.name} is a node of a cluster, and a run does not change it")

    def facts(self) -> Mapping[str, str]:
        """Return facts about the node from the cluster, and about its CPU from its kernel."""
        level = "privileged" if self._asked.privileged else self._pod_security
        pods = {"pods": f"of level {level}"} if level else {}
        return {**self._own_facts(), **self.info.facts, NODE: self.info.name, "address": self.address, **pods}

    def _own_facts(self) -> dict[str, str]:
        interfaces = network.interfaces_in(self._text("/proc/net/dev"))
        answer = self.run(Command((LAUNCHER, "probe-http", *PROXY_MODE), 10)).stdout
        facts = {
            **machine_facts(self._text),
            **hardware_facts(self._text),
            "kernel": self._text("/proc/sys/kernel/osrelease"),
            "Kubernetes": self.cluster.version,
            "CNI": cni(self.cluster.images_on(self.info), self.info.annotations, interfaces),
            "kube-proxy mode": proxy_mode(answer, interfaces),
            "CPU manager": self.cpu_manager,
            "Services added": str(self._more_services or ""),
            **self._interface_facts(),
        }
        return {key: value for key, value in facts.items() if value}

    def _text(self, path: str) -> str:
        with contextlib.suppress(OSError):
            return self.read(path).decode(errors="replace").strip().replace("\t", " ")
        return ""

    def _interface_facts(self) -> dict[str, str]:
        if not self._asked.host_network:
            return {}
        table = self._text("/proc/net/route")
        name = network.route_in(table, f"{self.address}/32") or network.default_route_in(table)
        return {"network interface": name, "MTU": self._text(f"/sys/class/net/{name}/mtu")} if name else {}


def network_ports(read: Callable[[str], str]) -> set[int]:
    """Return the ports with a listener, or a bound UDP socket, in the reader's network."""
    transports: tuple[Transport, ...] = ("tcp", "udp")
    ports: set[int] = set()
    for transport in transports:
        for table in network.tables_of(transport):
            with contextlib.suppress(OSError):  # without IPv6, its table is missing
                ports |= network.bound_in(transport, read(f"/proc/self/net/{table}"))
    return ports
