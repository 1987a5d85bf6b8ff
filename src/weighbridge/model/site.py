"""The contract between environments and the runner: sites, and what is needed to open one."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from weighbridge.model.clock import ClockOffset
from weighbridge.model.command import Command, Completed, HostProcess, SiteProcess, Stream, Transport
from weighbridge.model.isolation import Layers
from weighbridge.model.link import Link as Link  # noqa: PLC0414 - others have it from here
from weighbridge.model.userland import Userland

if TYPE_CHECKING:
    from weighbridge.model.host import SecludedHost
    from weighbridge.model.mount import SiteStorage
    from weighbridge.model.neighbourhood import Neighbourhood

T = TypeVar("T")

SITE_ENV: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
}  # fmt: skip
"""The environment variables of every program in every site: the user's own must not reach some of them only."""
DATA = "/srv"
"""Where a site has its folder on a disk, if it was asked for one."""


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
        """How much CPU time and memory, for the facts of a site."""
        asked = {"CPU": self.cpus, "MiB": None if self.memory is None else self.memory / 2**20}
        return ", ".join(f"{value:g} {unit}" for unit, value in asked.items() if value is not None) or "none"


@dataclass(slots=True)
class RunContext:
    """What every site of one run shares.

    ``id`` labels each resource that the run makes, ``state`` is a folder for sockets and notes that
    ``weighbridge clean`` reads, ``stack`` closes what is shared when the run ends.
    """

    id: str
    state: Path
    cache: Path
    stack: ExitStack
    say: Callable[[str], None] = field(default=lambda _: None)
    _shared: dict[str, Any] = field(default_factory=dict)

    def share(self, key: str, make: Callable[[], AbstractContextManager[T]]) -> T:
        """The thing named ``key``, made at first use and closed at the end of the run."""
        if key not in self._shared:
            self._shared[key] = self.stack.enter_context(make())
        value: T = self._shared[key]
        return value


HERE = "host"
"""This machine, which local and testbed hosts share."""


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
        """Stop every process in it; returns when they are stopped."""

    def thaw(self) -> None:
        """Let every process in it run again."""

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
    """The machine that it is on: `HERE`, or "host NAME"."""
    this_machine: bool
    """Whether it is this machine itself, with whatever else runs there."""
    python: str
    """The Python interpreter that its commands find."""
    network: tuple[str, str]
    """Its network namespace: a name for it, and the path of its interfaces' counters for `read`."""
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
    hypervisor: Group | None
    """The control group on this machine of the outermost of them: it is a guest here, and uses this machine."""

    @property
    def secluded(self) -> "SecludedHost | None":
        """The host itself, where it was made for the run and nothing else uses it."""

    def run(self, command: Command) -> Completed:
        """Run to the end; killed at its deadline."""

    def start(self, command: Command, *, hold: bool = False) -> HostProcess:
        """Start and return at once; with ``hold`` its standard input stays open until it is stopped or we die."""

    def talk(self, command: Command) -> tuple[HostProcess, Stream]:
        """Start a program that is talked to over its standard input and output."""

    def program(self, program: Path) -> str:
        """The place there of a file of ours, brought at first use: a program (static, for such machines), a CD."""

    def disk(self, image: Path) -> str:
        """The place there of a file system, brought at first use; nobody writes to it. Raises Unavailable."""

    def read(self, path: str) -> bytes:
        """A file of the host, as its processes see it (/proc too). Raises OSError."""

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

    def data_folder(self, run: RunContext, name: str) -> AbstractContextManager[Path]:
        """An empty folder on the host's disk, as the host names it; gone when the context ends."""

    def variant(self, purpose: str) -> "Host":
        """A host like this one that is only used for ``purpose`` (a changed network, an engine's settings).

        A testbed makes one more host; elsewhere it is the host itself, and Unavailable where it has another already.
        """

    def engine_url(self) -> str | None:
        """The address of the Docker engine that it has; None: whatever answers on this machine, or one of ours."""

    def in_swarm(self, node: str | None, *, made_bridge: bool) -> None:
        """Have its engine leave the swarm in which it is ``node`` when we end, however we end, if we cannot do so.

        "" while it becomes a member, None once it has left. ``made_bridge``: it had no docker_gwbridge before.
        """

    def link(self) -> Link | None:
        """Its cable, where that has a rate that is known and in force."""

    def set_link(self, *, limited: bool) -> None:
        """Put the rate limit that the study gives its cable in force, or lift it; nothing where it has none."""

    def facts(self) -> Mapping[str, str]:
        """What is particular about it: link rate, MTU, offloads, versions."""

    def clock(self) -> ClockOffset | None:
        """How far its clock is from this machine's; None where it is the same one."""


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """What the runner asks of an environment: a place for one role's processes."""

    run: RunContext
    host: Host
    name: str
    role: str
    userland: Userland
    limits: Limits
    ports: tuple[tuple[Transport, int], ...] = ()
    environment: str = ""
    """The name of the environment in the study; its server and its client are asked for with the same."""
    storage: "SiteStorage | None" = None
    """What it has at DATA; None: nothing."""
    apart: bool = False
    """Whether the other role is on another host, so that the site must be reachable from there."""
    beside: str = ""
    """An open site that was asked for in the same way: what can be shared, such as a network, it shares with that."""
    companions: "Neighbourhood | None" = None
    """What it must reach by name, where its environment has a `way_to_companions`."""


class Site(Protocol):
    """A live place in an environment. It is closed by the context manager that opened it."""

    name: str
    address: str
    """Where the other role reaches this site."""
    listen: str
    """The address to which a server in this site binds."""
    host: Host
    """The machine that it is on; not always the one that was asked for, as an environment may need one of its own."""
    links: tuple[Link, ...]
    """The cables of its own, beside its host's, whose rate is known."""
    open_files: int
    """How many a process of it may have."""
    layers: Layers
    """Those of its host that it is in first, and then the hypervisor that is the environment's own, if it has one."""
    counted: bool
    """Whether its host's kernel counts its CPU time and memory; not those of a domain beside that kernel."""

    def run(self, command: Command) -> Completed:
        """Run to the end; killed at its deadline."""

    def start(self, command: Command) -> SiteProcess:
        """Start and return at once."""

    def put(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file inside the site. Only /tmp, /run and what is at DATA can be written to."""

    def read(self, path: str) -> bytes:
        """A file inside the site. Raises OSError."""

    def listening(self, ports: tuple[tuple[Transport, int], ...], within_s: float = 0.0) -> bool:
        """True when every port has a listener, by the kernel's tables so that no server is disturbed.

        It may wait for that long until all have one, and less where a program of the site ends meanwhile.
        """

    def freeze(self) -> None:
        """Stop every process in the site from running."""

    def thaw(self) -> None:
        """Let them run again."""

    def meters(self) -> Mapping[str, float]:
        """Counters now: ``cpu_s``, ``throttled_s``, ``memory_bytes``, ``oom_kills``; what is unreadable is absent."""

    def memory(self) -> Mapping[str, int]:
        """Bytes now, of what sites like it get: ``total``, ``available``. Raises OSError."""

    def guest_meters(self) -> Mapping[str, float]:
        """Counters now as its own kernel sees them: ``guest_cpu_s``, ``guest_steal_s``; empty without such a kernel.

        An emulator tells the kernel of no steal: of a site whose own hypervisor is one the latter is absent.
        Its devices and its hypervisor are in ``meters`` alone. Raises OSError, and EnvironmentLost once it has gone.
        """

    def scope(self) -> Mapping[str, str]:
        """The files of its host that tell its use over time: label -> path (`weighbridge.meters.scopes`)."""

    def facts(self) -> Mapping[str, str]:
        """What is in force: versions, limits, network. ``not honoured: X``, ``not metered: X`` keys: what is not."""
