"""A machine on which sites are opened: what it does, what is known of it beforehand, and what belongs to it.

No library is used here, as the agent of an ssh host has this module too.
"""

from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from weighbridge.model.command import Command, Completed, HostProcess, Stream
from weighbridge.model.isolation import Layers
from weighbridge.model.names import RunId, SafeName
from weighbridge.model.sampling import Sampler
from weighbridge.model.userland import Userland, Userlands

T = TypeVar("T")
HERE = "host"
"""This machine, which local and testbed hosts share."""
INTERRUPT_TIME = "interrupt time"
"""The fact of a host whose value is an `InterruptTime`."""
NODE = "node"
"""The fact of a host that is the name by which people know its machine."""
MACHINE_ID = "machine id"
"""The fact that tells its machine from others, a hash of machine-id(5); absent where it has none."""
PLACED_BY = "placed by"
"""The fact that says which scheduler had the run measure there: ``Slurm job 17 on n1``."""
InterruptTime = Literal["accounted apart", "charged to the interrupted task", "unknown"]
"""What becomes of it. Control groups, and so the sites' own CPU time, hold it only where it is charged to a task.

No enum: what an ssh host runs must do with Python 3.9.
"""
SWARM_BRIDGE = "docker_gwbridge"
"""The network that an engine makes when it becomes a member of a swarm, and keeps when it leaves."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one site. ``cpus`` is CPU time per wall time, ``memory`` bytes, ``cpuset`` a CPU list."""

    cpus: float | None = None
    memory: int | None = None
    cpuset: str | None = None
    cpu_period_us: int = 100_000
    """Within each so many microseconds ``cpus`` is kept: it is a quota of CPU time per period."""

    @property
    def cpu_quota_us(self) -> int | None:
        """Microseconds of CPU time per period."""
        return None if self.cpus is None else max(1000, round(self.cpus * self.cpu_period_us))

    def __str__(self) -> str:
        """Return the limits of CPU time and memory as text, for the facts of a site."""
        limits = {"CPU": self.cpus, "MiB": None if self.memory is None else self.memory / 2**20}
        return ", ".join(f"{value:g} {unit}" for unit, value in limits.items() if value is not None) or "none"


@dataclass(slots=True)
class RunContext:
    """What every site of one run shares.

    ``id`` labels each resource that the run makes, ``state`` is a folder for sockets and notes that
    ``weighbridge clean`` reads, ``stack`` closes what is shared when the run ends.
    """

    id: RunId
    state: Path
    cache: Path
    stack: ExitStack
    say: Callable[[str], None] = field(default=lambda _: None)
    step: Callable[[str], None] = field(default=lambda _: None)
    """Says what is done now, as one of many like it."""
    userlands: Userlands | None = None
    """Those of its sites, where they are known before its hosts are open."""
    _shared: dict[str, Any] = field(default_factory=dict)

    def share(self, key: str, make: Callable[[], AbstractContextManager[T]]) -> T:
        """The thing named ``key``, made at first use and closed at the end of the run."""
        if key not in self._shared:
            self._shared[key] = self.stack.enter_context(make())
        value: T = self._shared[key]
        return value


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """By how many seconds another machine's clock is ahead of this one's, and within how many that is known."""

    ahead_s: float
    within_s: float

    def __str__(self) -> str:
        return f"{1000 * self.ahead_s:+.3f} ms ahead of this machine's (± {1000 * self.within_s:.3f} ms)"


@dataclass(frozen=True, slots=True)
class NetworkLink:
    """A cable whose rate is known. ``where``: "host NAME", or the role whose site it belongs to."""

    where: str
    rate: float
    """Bits per second of Ethernet in each direction."""
    carried: Callable[[], Mapping[str, float]]
    """Bits carried so far on the wire (with preamble, FCS, gap), by direction; what is unreadable is absent."""


@dataclass(frozen=True, slots=True)
class DiskSpeed:
    """A limit of a disk: requests and bytes per second, both ways together. It stands for a kind of disk.

    A request that has to wait for it is late; one that does not is as fast as the disk below.
    """

    name: str
    requests: int
    bytes: int

    def __str__(self) -> str:
        """What it is, for facts."""
        return f"{self.name}: at most {self.requests} requests and {self.bytes / 1e6:g} MB per second"


SPEEDS: Mapping[str, DiskSpeed] = {
    each.name: each for each in (DiskSpeed("hdd-like", 120, 120_000_000), DiskSpeed("ssd-like", 5000, 400_000_000))
}
"""By name: about what a disk of 7200 revolutions a minute does, and a SATA SSD of its time."""


class Group(Protocol):
    """One control group on a host, in every hierarchy; this machine's is `weighbridge.linux.cgroups.Cgroup`."""

    @property
    def procs(self) -> list[Path]:
        """The files into which a process writes 0 to join."""

    @property
    def everywhere(self) -> list[Path]:
        """As ``procs``, also of hierarchies in which it has no limits: for what makes groups of its own in all."""

    def limit(self, limits: Limits) -> dict[str, str]:
        """Set the limits; gives those that could not be honoured, each with why."""

    def freeze(self) -> None:
        """Stop every process in it but those that are exempt; returns when they are stopped."""

    def thaw(self) -> None:
        """Let every process in it run again."""

    def exempt_file_servers(self) -> None:
        """Exempt from freezing what serves file systems by FUSE in it: who waits for its answer cannot be frozen."""

    def meters(self) -> Mapping[str, float]:
        """``cpu_s``, ``throttled_s``, ``memory_bytes``, ``oom_kills``; what is unreadable is absent."""

    def scope(self) -> Mapping[str, str]:
        """Its files that tell its use over time, by label."""

    def kill(self) -> None:
        """End every process in it."""

    def remove(self) -> bool:
        """Remove it and all below it; True when nothing is left."""


class Host(Protocol):
    """A machine on which sites are opened and commands run. Raises EnvironmentLost once it has gone."""

    name: str
    machine: str
    """The machine that it is on: `HERE`, or "host NAME", of the first host of a run that is on it."""
    this_machine: bool
    """Whether it is this machine itself, with whatever else runs there."""
    python: str
    """The Python interpreter that its commands find."""
    network: tuple[str, str]
    """Its network namespace: a name that no other one has, and the path of its interfaces' counters for `read`."""
    root: bool
    """Whether commands run as root there."""
    address: str
    """Where the other hosts of the run reach it; 127.0.0.1 for this machine."""
    interface: str
    """The interface that has the address and that networks are attached to; empty where none is known."""
    cpuset: str | None
    """The CPUs that belong to it, where it does not have all of its machine's."""
    layers: Layers
    """The hypervisors that it is in itself, as far as they are ours, the outermost first; () where there are none."""

    @property
    def capabilities(self) -> "Capabilities":
        """What it has or can do that others have not."""

    def run(self, command: Command) -> Completed:
        """Run to the end; killed at its deadline."""

    def start(self, command: Command, *, hold: bool = False) -> HostProcess:
        """Start and return at once; with ``hold`` its standard input stays open until it is stopped or we die."""

    def talk(self, command: Command) -> tuple[HostProcess, Stream]:
        """Start a program that is talked to over its standard input and output."""

    def program(self, program: Path) -> str:
        """The place there of a file of ours, brought at first use: a program (static, for such machines), a CD."""

    def read(self, path: str) -> bytes:
        """A file of the host, as its processes see it (/proc too). Raises OSError."""

    def namespaces(self) -> Mapping[str, int]:
        """The numbers of the namespaces that its processes start in, by kind (``net``); unreadable ones are omitted.

        Two kernels may have the same number.
        """

    def meters_of(self, pid: int) -> Mapping[str, float]:
        """The counters of the control group that a process of the host is in, as ``Site.meters``."""

    def scope_of(self, pid: int) -> Mapping[str, str]:
        """The files of that control group and of its network, by label, as ``Site.scope``."""

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to the process group that ``pid`` (the host's number) leads; one that ended is no error."""

    def group(self, name: str) -> Group:
        """Make the control group ``weighbridge/RUN/NAME`` there. Unavailable where that is not allowed."""

    def cpus_online(self) -> list[int]:
        """The CPUs that its processes may use."""

    def free_ports(self, taken: Collection[int] = ()) -> int:
        """A port of the host that is free, and the next one too. Raises Unavailable."""

    def userland(self, userland: Userland) -> Path:
        """The root folder of the userland on the host, brought there at first use."""

    def data_folder(self, run: RunContext, name: SafeName) -> AbstractContextManager[Path]:
        """An empty folder on the host's disk, as the host names it; gone when the context ends."""

    def dedicated_host(self, purpose: str) -> "Host":
        """A host like this one that is only used for ``purpose`` (a changed network, an engine's settings).

        A testbed makes one more host; elsewhere it is the host itself, and Unavailable where it has another already.
        """

    def facts(self) -> Mapping[str, str]:
        """Return the facts that distinguish the host: link rate, MTU, offloads, versions."""


@dataclass(frozen=True)
class HostTraits:
    """What has to be known of a kind of host before one is open.

    ``here``: it is on this physical machine, whose CPUs and memory it uses. ``own_kernel``: its kernel and files are
    not this machine's, so that what it can hold is found only when it is open. ``this_machine``: it is that machine
    itself, of which there is one. ``networks``: hosts reach one another where they are on a common one; their
    options may name others (`weighbridge.model.host_kind.HostOptions.networks`).
    ``attachable``: its interface is known, and container networks that are attached to it are on its network.
    ``gives_addresses``: containers on such networks get addresses without being given them in the study.
    ``disposable``: it is made for the run, and an open one is a `DisposableHost`. ``interface``: the name of the one
    interface that it is made with; empty where that is not known. ``slows_disk``: its data disk can be limited.
    ``managed``: another program starts whatever runs on it; it has sites of those environments that know such hosts.
    ``without_native``: why such a host has no native sites; ``without_network``: why no site can have its network.
    """

    here: bool = False
    own_kernel: bool = False
    this_machine: bool = False
    networks: AbstractSet[str] = frozenset()
    attachable: bool = True
    gives_addresses: bool = False
    disposable: bool = False
    interface: str = ""
    slows_disk: bool = False
    managed: bool = False
    without_native: str = "it cannot be on hosts on which another program starts everything"
    without_network: str = ""


THIS_MACHINE = HostTraits(
    here=True, this_machine=True, networks=frozenset({"switch"}), attachable=False, gives_addresses=True
)
"""Of the host that a study has which names none."""


class HostEngine(Protocol):
    """The Docker engine that another machine has, and that stays there."""

    def engine_url(self) -> str:
        """Its address, for the SDK. Unavailable: none is there, or it may not be used."""

    def in_swarm(self, node: str | None, *, made_bridge: bool) -> None:
        """Have it leave the swarm in which it is ``node`` when we end, however we end, if we cannot do so.

        "" while it becomes a member, None once it has left. ``made_bridge``: it had no docker_gwbridge before.
        """


class Cable(Protocol):
    """The cable of a host that is on a network of several."""

    def link(self) -> NetworkLink | None:
        """Return the cable's link where its rate is known and in force."""


class LimitedCable(Protocol):
    """A cable for which the study gives a rate limit."""

    def set_link(self, *, limited: bool) -> None:
        """Put it in force, or lift it."""


class Power(Protocol):
    """The power of a host that is a machine of its own, with a data disk that is there after a power cut."""

    data: str
    """The folder of the host that the disk is mounted at: what is in no memory of it is below that."""

    def cut(self) -> None:
        """End the machine at once, as by pulling its power cord: nothing is written or flushed any more."""

    def restored(self) -> AbstractContextManager[Host]:
        """The machine, started again with the disk as the cut left it. Raises Unavailable."""


class Pods(Protocol):
    """A node of a Kubernetes cluster, on which pods can be started."""

    @property
    def node_name(self) -> str:
        """Its name in the cluster."""

    @property
    def namespace(self) -> str:
        """The namespace in which its pods are."""

    @property
    def owner(self) -> Any:
        """What owns all that the run makes there (`ObjectOwner` of the feature `kubernetes`)."""

    @property
    def cpu_manager(self) -> str:
        """The policy by which it gives pods CPUs of their own (``none``, ``static``); "" where it is not known."""

    @property
    def pulls(self) -> bool:
        """Whether the cluster gets images from a registry, by the names that `image` gives."""

    @property
    def user(self) -> int:
        """As whom the programs of its pods run: 0 is root."""

    def image(self, userland: Userland) -> str:
        """Return the name of the image of a userland, brought there at first use. Raises Unavailable."""

    def claim(
        self, name: str, size: int, storage_class: str
    ) -> AbstractContextManager[tuple[str, Mapping[str, str]]]:
        """Claim a volume of a StorageClass ("": the cluster's default) for the site ``name``; deleted at the end.

        It gives the claim's name and facts of it. Raises Unavailable.
        """

    def folder(self, name: str, path: str) -> AbstractContextManager[str]:
        """A new folder for the site ``name`` below a path of the node; gone when the context ends.

        It gives the folder's name there. Raises Unavailable.
        """

    def open_pod(self, request: Any) -> AbstractContextManager[Any]:
        """Start a pod (`weighbridge.features.kubernetes.objects.PodRequest`), which runs until the context ends.

        It gives a `weighbridge.features.kubernetes.cluster.RunningPod`. Raises Unavailable.
        """

    def made(self, manifest: Mapping[str, Any]) -> AbstractContextManager[Any]:
        """Make an object of the run, as JSON has it, which is deleted when the context ends. Raises Unavailable.

        It gives the object as the cluster has it.
        """

    def patched(self, kind: str, name: str, changes: Mapping[str, Any]) -> Any:
        """Change an object of the run (a JSON merge patch); return it as it is then. Raises Unavailable."""


class DataDisk(Protocol):
    """The disk of a host's data, which is its own."""

    def set_disk_speed(self, speed: DiskSpeed | None) -> None:
        """Hold back requests to it, or no longer. Raises EnvironmentLost."""


class DisposableHost(Host, Protocol):
    """A host that was made for the run, whose packet filter, folders and networks nothing else uses.

    An engine is started inside it, everything in it may be changed, and ends with it.
    """

    subnet: str
    """The network that its cable leads to; containers may be on it."""
    gateway: str
    """The default gateway of that network."""

    def engine_folder(self) -> AbstractContextManager[str]:
        """A folder for the data of an engine in it, as it names it; what was in it is gone when the context ends."""

    def reach(self, path: str) -> Path | None:
        """A socket of this machine that leads to its socket at ``path``; None while there is none."""

    def next_address(self) -> str:
        """Give an address on that network that no host and no other container has. Raises Unavailable."""

    @property
    def offloads(self) -> bool:
        """Whether packets larger than its cable's go to its interface, which splits them."""

    def keep_offloads(self, pid: int) -> None:
        """Where its cable has no offloads, switch them off on the interfaces of the container of ``pid`` too."""

    def switch_off(self) -> None:
        """End everything in it at once."""


@dataclass(frozen=True)
class Capabilities:
    """What a host has or can do that others have not: each is None where it has not."""

    disposable: DisposableHost | None = None
    """The host itself, where it was made for the run and nothing else uses it."""
    engine: HostEngine | None = None
    """Without it: whatever answers on this machine, or one of ours."""
    cable: Cable | None = None
    limited_cable: LimitedCable | None = None
    clock: Callable[[], ClockOffset] | None = None
    """How far its clock is from this machine's, where it is not the same one."""
    guest_disk: Callable[[Path], str] | None = None
    """The place there of a file system for guests, brought at first use; nobody writes to it. Raises Unavailable."""
    image_layer: Callable[[Userland], Path] | None = None
    """A folder of it with the userland that an image may have as a layer, as it is; else images hold a copy."""
    hypervisor: Group | None = None
    """The control group on this machine of the outermost of its ``layers``: it is a guest, and uses this machine."""
    data_disk: DataDisk | None = None
    """The disk of its data, where no others use that."""
    power: Power | None = None
    """Its power, where it shares no kernel and no disk with hosts that stay."""
    sampler: Sampler | None = None
    """Who reads its files at a steady rate, where it has no Python for that."""
    writes_out: Command | None = None
    """The command that writes what is dirty in its page caches, where it has no shell: these are never emptied."""
    pods: Pods | None = None
    """Pods, where it is a node of a cluster: it has nothing else."""
    native_site: Callable[[Any], AbstractContextManager[Any]] | None = None
    """Opens the site of a `SiteRequest` in the host's own namespaces. Without it: a chroot. Raises Unavailable."""
