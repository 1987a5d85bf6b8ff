"""A node of a cluster as a host, seen by the launcher of a pod of ours that has the node's network."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from weighbridge.errors import Unavailable
from weighbridge.facts.host import hardware_facts, machine_facts
from weighbridge.hosts.kubernetes import services
from weighbridge.hosts.kubernetes.cluster import Cluster, RunningPod
from weighbridge.hosts.kubernetes.networking import PROXY_MODE, cni, proxy_mode
from weighbridge.hosts.kubernetes.objects import LAUNCHER, LIMITS, REQUESTS, NodeInfo, Owner, PodRequest, user_of
from weighbridge.hosts.kubernetes.supply import ImageSupply, NodeImages
from weighbridge.hosts.kubernetes.volumes import NodeFolder, claimed, folder_name, node_folder
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
    """What a study says of a node."""

    node: str | None
    selector: str | None
    privileged: bool
    pod_security: str | None

    @property
    def images(self) -> NodeImages | None:
        """How it gets images; None: they are there."""


@contextmanager
def node_host(
    name: str, cluster: Cluster, options: NodeOptions, named: Collection[str], more_services: int = 0
) -> Iterator["Node"]:
    """Start the pod by which a node is seen. ``named``: nodes that the study names. Raises Unavailable.

    ``more_services``: so many the run adds to the cluster, which the node has taken then.
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
    """Not told by a launcher."""

    def __init__(self, launched: Launched) -> None:
        self.poll, self.wait, self.stop = launched.poll, launched.wait, launched.stop
        self._printed = launched.printed

    def output_so_far(self, start: int = 0) -> bytes:
        """Return what it has written to standard output, from the byte ``start`` on."""
        return self._printed()[0][start:]

    def send(self, data: bytes) -> None:
        """A launcher's programs have no pipe."""
        raise BrokenPipeError("it was started without a pipe for its input")


class Node:
    """A node. Implements ``Host``: what it has no program or right for is Unavailable."""

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
        """``asked``: the pod ``seen`` as it was asked for. ``pod_security``: the level that pods keep to."""
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
        """It has pods, and its launcher reads its files."""
        return Capabilities(pods=self, sampler=self._launcher, writes_out=Command((LAUNCHER, "sync"), _SYNC_S))

    @property
    def node_name(self) -> str:
        """Its name in the cluster."""
        return self.info.name

    @property
    def namespace(self) -> str:
        """The namespace in which its pods are."""
        return self.cluster.namespace

    @property
    def owner(self) -> Owner:
        """What owns all that the run makes there."""
        return self.cluster.owner

    @cached_property
    def kubelet(self) -> Mapping[str, Any]:
        """Return the configuration of its kubelet, by Kubernetes' names; nothing where the user may not read it."""
        with contextlib.suppress(Unavailable):
            configuration = self.cluster.kubectl.raw(f"/api/v1/nodes/{self.info.name}/proxy/configz")
            return configuration.get("kubeletconfig") or {}
        return {}

    @property
    def cpu_manager(self) -> str:
        """The policy by which kubelet gives pods CPUs of their own; "" where it is not known."""
        return str(self.kubelet.get("cpuManagerPolicy", ""))

    def image(self, userland: Userland) -> str:
        """Return the name of a userland's image, which the node has then. Raises Unavailable."""
        return self._supply.userland(self.info, userland)

    @property
    def pulls(self) -> bool:
        """Whether the cluster gets images from a registry."""
        return self._supply.pulls

    def claim(
        self, name: str, size: int, storage_class: str
    ) -> AbstractContextManager[tuple[str, Mapping[str, str]]]:
        """Claim a volume for a site. Raises Unavailable."""
        cluster = self.cluster
        return claimed(cluster.run, cluster.kubectl, cluster.owner, name, size, storage_class)

    def folder(self, name: str, path: str) -> AbstractContextManager[str]:
        """A folder below a path of the node. Raises Unavailable."""
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
        """Change an object of the run; return it as it is then. Raises Unavailable."""
        return self.cluster.kubectl.patch(kind, name, changes)

    def run(self, command: Command) -> Completed:
        """Run to the end; killed at its deadline. Programs but our own are the node's, where that is allowed."""
        return self._launcher.run(self._on_node(command))

    def take_services(self, number: int, site: str) -> None:
        """Wait until it leads to so many Services, which are added first unless another host has. Raises Unavailable.

        They lead to the pod by which the first host is seen, that of the ``site``.
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
        """Raises Unavailable."""
        raise Unavailable(f"host {self.name} is a node of a cluster, and Weighbridge uses only pods there")

    def program(self, program: Path) -> str:
        """Raises Unavailable."""
        raise Unavailable(f"host {self.name} is a node of a cluster, and Weighbridge does not copy files there")

    def namespaces(self) -> Mapping[str, int]:
        """Return the node's own where its pod is privileged, else those of that pod.

        It has the node's network and host name, and others of its own. Two pods never share these: one that another
        pod has too is the node's, and where theirs differ the other pod does not have the node's.
        """
        of = 1 if self._asked.privileged else "self"
        return namespaces_in(lambda kind: self.read(f"/proc/{of}/ns/{kind}").decode())

    def meters_of(self, pid: int) -> Mapping[str, float]:
        """Return none: its processes are not seen."""
        return {}

    def scope_of(self, pid: int) -> Mapping[str, str]:
        """Return none: its processes are not seen."""
        return {}

    def signal(self, pid: int, number: int) -> None:
        """Raises Unavailable."""
        raise Unavailable(f"host {self.name} is a node of a cluster, and Weighbridge cannot see its processes")

    def group(self, name: str) -> Group:
        """Raises Unavailable."""
        raise Unavailable("Kubernetes sets the limits of pods")

    def cpus_online(self) -> list[int]:
        """Return the CPUs on which its pods may run."""
        allowed = status_field(self.read("/proc/self/status").decode(), "Cpus_allowed_list") or "0"
        return sorted(cpus_in(allowed))

    def free_ports(self, taken: Collection[int] = ()) -> int:
        """A port of the node that is free, and the next one too. Raises Unavailable."""
        bound = network_ports(lambda path: self.read(path).decode())
        return network.free_port(taken, lambda port: port not in bound)

    def userland(self, userland: Userland) -> Path:
        """Raises Unavailable."""
        raise Unavailable(f"host {self.name} is a node of a cluster, and Weighbridge uses only pods there")

    def data_folder(self, run: RunContext, name: SafeName) -> AbstractContextManager[Path]:
        """Raises Unavailable."""
        raise Unavailable(f"host {self.name} is a node of a cluster, and Weighbridge uses only pods there")

    def dedicated_host(self, purpose: str) -> Host:
        """Raises Unavailable."""
        raise Unavailable(f"host {self.name} is a node of a cluster, and a run does not change it")

    def facts(self) -> Mapping[str, str]:
        """Return what the cluster says of the node, and what its kernel says of its CPU."""
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
        """Of the interface that the node's address is on, where its network is seen."""
        if not self._asked.host_network:
            return {}
        table = self._text("/proc/net/route")
        name = network.route_in(table, f"{self.address}/32") or network.default_route_in(table)
        return {"network interface": name, "MTU": self._text(f"/sys/class/net/{name}/mtu")} if name else {}


def network_ports(read: Callable[[str], str]) -> set[int]:
    """Return the ports that have a listener, or a bound UDP socket, in the network of who reads."""
    transports: tuple[Transport, ...] = ("tcp", "udp")
    ports: set[int] = set()
    for transport in transports:
        for table in network.tables_of(transport):
            with contextlib.suppress(OSError):  # without IPv6 there is no table of it
                ports |= network.bound_in(transport, read(f"/proc/self/net/{table}"))
    return ports
