"""A live place in an environment: what it does, what it is asked for with, and what it keeps its data on."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from weighbridge.model.command import Command, Completed, PublishedPort, SiteProcess, Transport
from weighbridge.model.host import Host, Limits, Link, RunContext
from weighbridge.model.isolation import OUTSIDE, Layers
from weighbridge.model.names import SafeName
from weighbridge.model.sampling import Sampler
from weighbridge.model.userland import Userland

SITE_ENV: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
}  # fmt: skip
"""The environment variables of every program in every site: the user's own must not reach some of them only."""
SITES_OWN = ("proc", "sys", "dev", "tmp", "run")
"""Folders at the top of the root that each site has of its own."""
NO_START_FOLDERS = ("/proc", "/sys", "/dev", "/run")
"""Folders where a program of this machine cannot start: unlike /tmp, they cannot have a layer in memory."""
DATA = "/srv"
"""Where a site has its folder on a disk, if it was asked for one."""
Way = Literal["folder", "volume", "layer", "pod volume"]
"""How storage gets into a site: a folder of its host, a volume of the host's engine or of a pod, its own layer."""


@dataclass(frozen=True, slots=True)
class Mount:
    """``source`` is the folder as the host names it, or the volume's name; empty for the container's layer.

    ``servers``: the hosts other than the site's that hold its files, and cache them. ``facts``: what is in force of
    it there (export options, the file system of a disk), by name. ``filesystem``: the type that the site's mount
    table must show, where another one may be in its place; "": any. ``options``: those of
    the mount that it must show. ``cached_by``: who caches its files in memory for
    which no limit of the site's memory holds.
    """

    way: Way
    source: str = ""
    servers: tuple[Host, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    filesystem: str = ""
    cached_by: str = ""
    options: frozenset[str] = frozenset()
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """A pod's volume as its manifest says it, without its name; ``source`` is the folder in it ("": all of it)."""


class Volumes(Protocol):
    """An engine that makes volumes."""

    def volume(self, name: str, options: Mapping[str, str] | None = None) -> AbstractContextManager[str]:
        """Make a volume for the site ``name``; gives the volume's own name, and removes it at the end.

        Empty, and on the engine's disk, unless there are ``options`` of the engine's local driver (``type``, ``o``,
        ``device``). Raises Unavailable.
        """


@dataclass(frozen=True, slots=True)
class MountRequest:
    """What an environment tells of a site: its host, its name, and the engine that it is in (None: in none).

    ``server``, which the runner adds: the host on which the study places servers of storage; None: on the site's.
    """

    run: RunContext
    host: Host
    name: SafeName
    volumes: Volumes | None = None
    server: Host | None = None


@dataclass(frozen=True, slots=True)
class SiteStorage:
    """The storage that was chosen for a site, with its options; the environment opens it on the site's host."""

    kind: str
    open: Callable[[MountRequest], AbstractContextManager[Mount]]
    mounts: list[Mount] = field(default_factory=list, compare=False)
    """What was opened of it: the runner notes it here."""
    capacity: int | None = None
    """How many bytes it holds, where its options say so."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The companions of a run as the sites of the measured service reach them.

    ``network`` is the engine's name of their bridge, ``subnet`` its addresses (CIDR), ``link`` the bridge's own name
    on this machine, ``addresses`` by the companions' names.
    """

    network: str
    subnet: str
    link: str
    addresses: Mapping[str, str]
    images: Mapping[str, str]
    """The digests of their images by name, and of their files by ``NAME:PATH``."""
    require: Callable[[], None] = lambda: None
    """Raises EnvironmentLost where one does not run any more as it was started."""

    def hosts_file(self, own: str = "") -> bytes:
        """Return hosts(5) for a site whose own name is ``own``."""
        lines = ["127.0.0.1\tlocalhost", *([f"127.0.0.1\t{own}"] if own else [])]
        return "\n".join([*lines, *(f"{address}\t{name}" for name, address in self.addresses.items()), ""]).encode()


WAY_TO_COMPANIONS = "way to the companions"
"""The fact of a site that says how it reaches them."""


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """What the runner asks of an environment: a place for one role's processes."""

    run: RunContext
    host: Host
    name: SafeName
    role: str
    userland: Userland
    limits: Limits
    ports: tuple[PublishedPort, ...] = ()
    environment: str = ""
    """The name of the environment in the study; its server and its client are asked for with the same."""
    storage: SiteStorage | None = None
    """What it has at DATA; None: nothing."""
    apart: bool = False
    """Whether the other role is on another host, so that the site must be reachable from there."""
    beside: str = ""
    """An open site that was asked for in the same way: what can be shared, such as a network, it shares with that."""
    shm_size: int | None = None
    """Bytes that its /dev/shm holds; None: what its kind gives."""
    open_files: int | None = None
    """How many files each of its processes may have open; None: as many as everywhere."""
    sysctls: Mapping[str, str] = field(default_factory=dict)
    """Settings of the kernel that it has of its own, by name."""
    companions: Neighbourhood | None = None
    """What it must reach by name, where its environment has a `way_to_companions`."""

    @property
    def title(self) -> str:
        """`Site.title`: the environment, or the role of what is in none; a client in an environment has both."""
        if self.environment == OUTSIDE:
            return f"the {self.role} outside of the environments"
        return f"{self.environment or self.name}{' (client)' if self.role == 'client' else ''}"

    @property
    def reached(self) -> Mapping[int, int]:
        """`Site.reached` where these ports are published."""
        return {port.listens: port.reached for port in self.ports}


class Site(Protocol):
    """A live place in an environment. It is closed by the context manager that opened it."""

    name: str
    title: str
    """What people call it."""
    address: str
    """Where the other role reaches this site."""
    listen: str
    """The address to which a server in this site binds."""
    reached: Mapping[int, int]
    """The port at ``address`` that leads to each port of a server, where that is another number."""
    assigned_ports: Mapping[int, int]
    """Where a server listens in the place of each port that the run chose: numbers that its environment was given."""
    host: Host
    """The machine that it is on; not always the one that was asked for, as an environment may need one of its own."""
    links: tuple[Link, ...]
    """The cables of its own, beside its host's, whose rate is known."""
    open_files: int
    """How many a process of it may have."""
    layers: Layers
    """Those of its host that it is in first, and then the hypervisor that is the environment's own, if it has one."""
    way_s: float
    """What a request to its launcher and the answer take, where that was measured; else 0: a few milliseconds."""
    counted: bool
    """Whether its host's kernel counts its CPU time and memory; not those of a domain beside that kernel."""
    sampler: Sampler | None
    """Who reads the files of its ``scope``, where only it sees them; None: whoever reads its host's."""

    def run(self, command: Command) -> Completed:
        """Run to the end; killed at its deadline."""

    def start(self, command: Command) -> SiteProcess:
        """Start and return at once."""

    def put(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file inside the site. Only /tmp, /run and what is at DATA can be written to. Raises OSError."""

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
        """The files that tell its use over time: label -> path (`weighbridge.meters.scopes`).

        They are its host's; of a site that has a ``sampler`` its own.
        """

    def facts(self) -> Mapping[str, str]:
        """What is in force: versions, limits, network. ``not honoured: X``, ``not metered: X`` keys: what is not."""
