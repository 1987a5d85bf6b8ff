"""The protocol of hosts: the machines on which sites are opened, their traits before that, and their parts.

This module uses no library, because the agent of an ssh host imports it, too.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from weighbridge.model.command import Command, Completed, HostProcess, Stream
from weighbridge.model.isolation import Layers
from weighbridge.model.names import RunId, SafeName
from weighbridge.model.once import Once
from weighbridge.model.sampling import Sampler
from weighbridge.model.setup import SetupStep
from weighbridge.model.userland import Userland, Userlands

T = TypeVar("T")
HERE = "host"
"""The name of this machine, which local and testbed hosts share."""
NODE = "node"
"""The fact with the name that people use for a host's machine."""
MACHINE_ID = "machine id"
"""The fact with a hash of machine-id(5), which identifies a host's machine; absent if it has none."""
PLACED_BY = "placed by"
"""The fact with the scheduler that placed the run: ``Slurm job 17 on n1``."""
SWARM_BRIDGE = "docker_gwbridge"
"""The network that an engine creates when it joins a swarm, and keeps when it leaves."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one site. ``cpus`` is CPU time per wall time, ``memory`` bytes, ``cpuset`` a CPU list."""

    cpus: float | None = None
    memory: int | None = None
    cpuset: str | None = None
    cpu_period_us: int = 100_000
    """The period of the CPU quota in microseconds: ``cpus`` is enforced within each period."""

    @property
    def cpu_quota_us(self) -> int | None:
        """The CPU quota in microseconds per period."""
        return None if self.cpus is None else max(1000, round(self.cpus * self.cpu_period_us))

    def __str__(self) -> str:
        """Return the limits of CPU time and memory as text, for the facts of a site."""
        limits = {"CPU": self.cpus, "MiB": None if self.memory is None else self.memory / 2**20}
        return ", ".join(f"{value:g} {unit}" for unit, value in limits.items() if value is not None) or "none"


@dataclass(slots=True)
class RunContext:
    """The context that all sites of one run share. Several threads can use it at the same time.

    ``id`` labels each resource of the run. ``state`` is a folder for sockets and notes that ``weighbridge clean``
    reads. ``stack`` closes shared resources when the run ends.
    """

    id: RunId
    state: Path
    cache: Path
    stack: ExitStack
    say: Callable[[str], None] = field(default=lambda _: None)
    waits: Callable[[Sequence[SetupStep]], None] = field(default=lambda _: None)
    """Shows all steps of the set-up that the run waits for."""
    userlands: Userlands | None = None
    """The userlands of its sites, if they are known before its hosts are open."""
    runtimes: Sequence[str] = ()
    """The OCI runtimes that the study names by path. An engine that the run starts registers them."""
    _shared: Once = field(default_factory=Once)
    _steps: dict[int, list[SetupStep]] = field(default_factory=dict)
    """The steps of each thread, the outermost first."""
    _showing: threading.Lock = field(default_factory=threading.Lock)

    def share(self, key: str, make: Callable[[], AbstractContextManager[T]]) -> T:
        """Return the object named ``key``, created at first use and closed at the end of the run.

        If several threads need it, one makes it, and the others wait (`Once`). ``make`` can use further shared
        objects, which are closed after this one.
        """
        return self._shared.get(key, lambda: self.stack.enter_context(make()))

    @contextmanager
    def during(self, step: SetupStep) -> Iterator[None]:
        """Show a step of the set-up while the body runs: the innermost step of each thread."""
        steps = self._steps.setdefault(threading.get_ident(), [])
        steps.append(step)
        self._show()
        try:
            yield
        finally:
            steps.pop()
            self._show()

    def _show(self) -> None:
        with self._showing:
            if current := [steps[-1] for steps in list(self._steps.values()) if steps]:
                self.waits(current)


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How many seconds another machine's clock is ahead of this one's, and the uncertainty of that in seconds."""

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
    """Returns the bits carried so far on the wire (with preamble, FCS, gap), by direction, if readable."""


@dataclass(frozen=True, slots=True)
class DiskSpeed:
    """A limit of a disk in requests and bytes per second, in both directions together, to imitate a kind of disk."""

    name: str
    requests: int
    bytes: int

    def __str__(self) -> str:
        """Return the speed as text, for facts."""
        return f"{self.name}: at most {self.requests} requests and {self.bytes / 1e6:g} MB per second"


SPEEDS: Mapping[str, DiskSpeed] = {
    each.name: each for each in (DiskSpeed("hdd-like", 120, 120_000_000), DiskSpeed("ssd-like", 5000, 400_000_000))
}
"""The speeds by name: roughly a disk with 7,200 revolutions per minute, and a SATA SSD of its time."""


class Group(Protocol):
    """One control group on a host, in every hierarchy; this machine's is `weighbridge.linux.cgroups.Cgroup`."""

    @property
    def procs(self) -> list[Path]:
        """The files into which a process writes 0 to join."""

    @property
    def everywhere(self) -> list[Path]:
        """Like ``procs``, with hierarchies that have no limits: for programs that create groups everywhere."""

    def limit(self, limits: Limits) -> dict[str, str]:
        """Set the limits; return those that could not be set, each with the reason."""

    def freeze(self) -> None:
        """Stop every process in it except exempt ones; return when they are stopped."""

    def thaw(self) -> None:
        """Let every process in it run again."""

    def exempt_file_servers(self) -> None:
        """Exempt FUSE servers in it from freezing: a process that waits for their answer cannot be frozen."""

    def meters(self) -> Mapping[str, float]:
        """Return ``cpu_s``, ``throttled_s``, ``memory_bytes``, ``oom_kills``, without unreadable ones."""

    def scope(self) -> Mapping[str, str]:
        """Return its files with its resource use over time, by label."""

    def kill(self) -> None:
        """End every process in it."""

    def remove(self) -> bool:
        """Remove it and all groups below it; return whether nothing is left."""


class Host(Protocol):
    """A machine on which sites are opened and commands run. Raises EnvironmentLost if it has disappeared."""

    name: str
    machine: str
    """The machine of the host: `HERE`, or "host NAME" with the first host of the run on that machine."""
    this_machine: bool
    """Whether it is this machine itself, with everything else that runs on it."""
    python: str
    network: tuple[str, str]
    """Its network namespace: a unique name, and the path of its interfaces' counters for `read`."""
    root: bool
    address: str
    """The address at which the other hosts of the run reach it; 127.0.0.1 for this machine."""
    interface: str
    """The interface with the address, to which networks are attached; "" if unknown."""
    cpuset: str | None
    """The CPUs that belong to it, if it does not have all CPUs of its machine."""
    layers: Layers
    """The hypervisors of Weighbridge around it, the outermost first; () if there are none."""

    @property
    def capabilities(self) -> "Capabilities":
        """The optional parts and abilities of the host."""

    def run(self, command: Command) -> Completed:
        """Run a command until it ends or reaches its deadline."""

    def start(self, command: Command, *, hold: bool = False) -> HostProcess:
        """Start a command and return at once. ``hold`` keeps its standard input open until it or we exit."""

    def talk(self, command: Command) -> tuple[HostProcess, Stream]:
        """Start a program that communicates over its standard input and output."""

    def program(self, program: Path) -> str:
        """Return the path there of a file of Weighbridge, copied at first use: a static program, or a CD image."""

    def read(self, path: str) -> bytes:
        """Return a file of the host, as its processes see it (/proc too). Raises OSError."""

    def namespaces(self) -> Mapping[str, int]:
        """Return the readable numbers of its processes' namespaces by kind (``net``), unique in its kernel."""

    def meters_of(self, pid: int) -> Mapping[str, float]:
        """Return the counters of the control group of a host process, as ``Site.meters`` does."""

    def scope_of(self, pid: int) -> Mapping[str, str]:
        """Return the files of that control group and of its network, by label, as ``Site.scope`` does."""

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to the process group that ``pid`` (the host's number) leads, unless it has ended."""

    def group(self, name: str) -> Group:
        """Create the control group ``weighbridge/RUN/NAME`` there. Raises Unavailable if that is not allowed."""

    def cpus_online(self) -> list[int]:
        """Return the CPUs that its processes can use."""

    def free_ports(self, taken: Collection[int] = ()) -> int:
        """Return a free port of the host whose next port is free, too. Raises Unavailable."""

    def userland(self, userland: Userland) -> Path:
        """Return the root folder of the userland on the host, copied at first use."""

    def data_folder(self, run: RunContext, name: SafeName) -> AbstractContextManager[Path]:
        """Return an empty folder on the host's disk, by its path there; it is removed when the context ends."""

    def dedicated_host(self, purpose: str) -> "Host":
        """Return a host like this one that is only used for ``purpose`` (a changed network, an engine's settings).

        A testbed creates another host. Other hosts return themselves, and raise Unavailable if they have another
        purpose already.
        """

    def facts(self) -> Mapping[str, str]:
        """Return the facts that distinguish the host: link rate, MTU, offloads, versions."""


@dataclass(frozen=True)
class HostTraits:
    """The properties of a kind of host that are known before one is open.

    ``here``: it is on this physical machine, and uses its CPUs and memory. ``own_kernel``: it has another kernel and
    other files than this machine, so its abilities are unknown until it is open. ``this_machine``: it is this machine
    itself. ``networks``: hosts on a common network reach each other; options can name other networks
    (`weighbridge.model.host_kind.HostOptions.networks`).

    ``attachable``: its interface is known, and container networks can be attached to it. ``gives_addresses``:
    containers on such networks need no addresses from the study. ``disposable``: it is created for the run, and is a
    `DisposableHost`. ``interface``: the name of its only interface; "" if unknown. ``slows_disk``: its data disk can
    be limited. ``managed``: another program starts everything on it, so it has only sites of environments that
    support such hosts. ``without_native``: the reason why it has no native sites. ``without_network``: the reason why
    no site can use its network.
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
"""The traits of the default host of a study."""


class HostEngine(Protocol):
    """The Docker engine of another machine, which Weighbridge does not stop."""

    def engine_url(self) -> str:
        """Return its address for the SDK. Raises Unavailable if there is none, or if it cannot be used."""

    def in_swarm(self, node: str | None, *, made_bridge: bool) -> None:
        """Make it leave the swarm in which it is ``node`` when we exit, in case we cannot do so ourselves.

        ``node`` is "" while it joins, and None once it has left. ``made_bridge``: it had no docker_gwbridge before.
        """


class Power(Protocol):
    """The power of a host that is a separate machine, with a data disk that survives a power cut."""

    data: str
    """The mount point of that disk on the host, with the data that no cache holds."""

    def cut(self) -> None:
        """End the machine at once, like pulling its power cord: nothing is written or flushed any more."""

    def restored(self) -> AbstractContextManager[Host]:
        """Start the machine again with the disk as the cut left it. Raises Unavailable."""


class DisposableHost(Host, Protocol):
    """A host that was created for the run, and that nothing else uses, so that everything in it can be changed."""

    subnet: str
    """The network of its cable; containers can be on it."""
    gateway: str

    def engine_folder(self) -> AbstractContextManager[str]:
        """Return a folder for an engine's data by its path there; the data are removed when the context ends."""

    def reach(self, path: str) -> Path | None:
        """Return a socket of this machine that leads to its socket at ``path``; None while there is none."""

    def next_address(self) -> str:
        """Return an unused address on that network. Raises Unavailable."""

    @property
    def offloads(self) -> bool:
        """Whether packets larger than its cable's MTU reach its interface, which splits them."""

    def keep_offloads(self, pid: int) -> None:
        """Switch offloads off on the interfaces of the container of ``pid``, if the cable has none."""

    def switch_off(self) -> None:
        """End everything in it at once."""


@dataclass(frozen=True)
class Capabilities:
    """The optional parts and abilities of a host; None for those that it does not have."""

    disposable: DisposableHost | None = None
    """The host itself, if it was created for the run and nothing else uses it."""
    engine: HostEngine | None = None
    """The engine of its machine. Without it, this machine's engine or a private one is used."""
    link: Callable[[], NetworkLink | None] | None = None
    """Returns the link of its cable to a network of several hosts, if its rate is known and in force."""
    limit_link: Callable[[bool], None] | None = None
    """Applies the rate limit that the study gives its cable, or lifts it."""
    clock: Callable[[], ClockOffset] | None = None
    """Returns the difference between its clock and this machine's, if they are different clocks."""
    guest_disk: Callable[[Path], str] | None = None
    """Returns the path there of a read-only file system for guests, copied at first use. Raises Unavailable."""
    image_layer: Callable[[Userland], Path] | None = None
    """Returns a folder with the userland that an image can have as a layer; else images hold a copy."""
    hypervisor: Group | None = None
    """The control group on this machine of its outermost hypervisor: it is a guest, and uses this machine."""
    limit_disk: Callable[[DiskSpeed | None], None] | None = None
    """Limits the disk with its data, if nothing else uses that disk, or lifts the limit. Raises EnvironmentLost."""
    power: Power | None = None
    """Its power, if it shares no kernel and no disk with other hosts."""
    sampler: Sampler | None = None
    """Reads its files at a steady rate, if it has no Python for that."""
    writes_out: Command | None = None
    """The command that writes dirty pages, if it has no shell. Its page caches are never emptied."""
    pods: Any | None = None
    """Its pods (`Pods` of the feature `kubernetes`), if it is a node of a cluster; it has nothing else then."""
    native_site: Callable[[Any], AbstractContextManager[Any]] | None = None
    """Opens the site of a `SiteRequest` in the host's own namespaces. Without it: a chroot. Raises Unavailable."""
