"""The protocol of sites, the live places in an environment, with the request for one and its storage."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from weighbridge.model.command import Command, Completed, PublishedPort, SiteProcess, Transport
from weighbridge.model.host import Group, Host, Limits, NetworkLink, RunContext
from weighbridge.model.isolation import OUTSIDE, Layers
from weighbridge.model.names import SafeName
from weighbridge.model.sampling import Sampler
from weighbridge.model.userland import Userland

SITES_OWN = ("proc", "sys", "dev", "tmp", "run")
"""The folders at the top of the root that each site has for itself."""
NO_START_FOLDERS = ("/proc", "/sys", "/dev", "/run")
"""Folders where a program of this machine cannot start: unlike /tmp, they cannot have a layer in memory."""
DATA = "/srv"
"""The mount point in a site of its folder on a disk, if one was requested."""
StorageMode = Literal["folder", "volume", "layer", "pod volume"]
"""How storage gets into a site: a folder of its host, a volume of the host's engine or of a pod, its own layer."""


@dataclass(frozen=True, slots=True)
class Mount:
    """Open storage, ready to be mounted into a site."""

    way: StorageMode
    """How it is mounted."""
    source: str = ""
    """The folder on the host, or the name of the volume. Empty for the container's own layer."""
    servers: tuple[Host, ...] = ()
    """Hosts other than the site's that store and cache its files."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """The settings that are in force, by name, such as export options or the file system of a disk."""
    filesystem: str = ""
    """The file system type that the site's mount table must show. Empty means any."""
    cached_by: str = ""
    """The program that caches its files outside of the site's memory limit."""
    options: frozenset[str] = frozenset()
    """The mount options that the site's mount table must show."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """The manifest of a pod's volume, without its name. ``source`` is then a folder in it."""


class Volumes(Protocol):
    """An engine that creates volumes."""

    def volume(self, name: str, options: Mapping[str, str] | None = None) -> AbstractContextManager[str]:
        """Create a volume for the site ``name``; yield the volume's own name, and remove it at the end.

        It is empty, and on the engine's disk, unless there are ``options`` of the engine's local driver (``type``,
        ``o``, ``device``). Raises Unavailable.
        """


@dataclass(frozen=True, slots=True)
class MountRequest:
    """An environment's request for storage of one site."""

    run: RunContext
    """The run."""
    host: Host
    """The site's host."""
    name: SafeName
    """The site's name."""
    volumes: Volumes | None = None
    """The engine that makes volumes for the site, or None."""
    server: Host | None = None
    """The host on which the study places storage servers. None means the site's host."""


@dataclass(frozen=True, slots=True)
class SiteStorage:
    """The storage that was chosen for a site, with its options; the environment opens it on the site's host."""

    kind: str
    open: Callable[[MountRequest], AbstractContextManager[Mount]]
    mounts: list[Mount] = field(default_factory=list, compare=False)
    """The opened mounts, which the runner notes here."""
    capacity: int | None = None
    """Its size in bytes, if its options give one."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The supporting services of a run as the sites of the measured service reach them.

    ``network`` is the engine's name of their bridge, ``subnet`` its addresses (CIDR), ``link`` the bridge's name on
    this machine, and ``addresses`` has the addresses by the names of the services.
    """

    network: str
    subnet: str
    link: str
    addresses: Mapping[str, str]
    images: Mapping[str, str]
    """The digests of their images by name, and of their files by ``NAME:PATH``."""
    require: Callable[[], None] = lambda: None
    """Raises EnvironmentLost if a service no longer runs as it was started."""

    def hosts_file(self, own: str = "") -> bytes:
        """Return hosts(5) for a site whose own name is ``own``."""
        lines = ["127.0.0.1\tlocalhost", *([f"127.0.0.1\t{own}"] if own else [])]
        return "\n".join([*lines, *(f"{address}\t{name}" for name, address in self.addresses.items()), ""]).encode()


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """The runner's request to an environment: a place for the processes of one role."""

    run: RunContext
    """The run. Everything that the environment makes must carry ``run.id``."""
    host: Host
    """The host to open the site on. Run commands, read files and make control groups through it."""
    name: SafeName
    """The unique name of the site."""
    role: str
    """The role whose processes run there."""
    userland: Userland
    """The root filesystem. All programs come from it, so that they are the same in every environment."""
    limits: Limits
    """The limits. Honour each one, or add a fact ``not honoured: ...``."""
    ports: tuple[PublishedPort, ...] = ()
    """The ports to publish."""
    networked: bool = False
    """Whether a workload of the study has a client and a server."""
    environment: str = ""
    """The name of the environment in the study, the same for server and client."""
    storage: SiteStorage | None = None
    """The storage at ``/srv``. Open it with a `MountRequest` on the site's host. None means no storage."""
    separate_hosts: bool = False
    """Whether the other role is on another host, which must be able to reach the site."""
    joined_site: str = ""
    """The name of an open site with the same request, whose network the new site joins. Workloads such as ``boot``
    and ``density`` open more sites during a trial."""
    image_files: int = 0
    """The bytes of additional files in the image of the site. Only environments that build images get other values
    than 0."""
    shm_size: int | None = None
    """The size of ``/dev/shm`` in bytes. None means the environment's default."""
    open_files: int | None = None
    """The number of files that a process can have open. None means the run's default."""
    sysctls: Mapping[str, str] = field(default_factory=dict)
    """The kernel settings of the site, by name."""
    supporting_services: Neighbourhood | None = None
    """The supporting services that the site must reach by name, if its environment has a
    `route_to_supporting_services`."""

    @property
    def title(self) -> str:
        """Return the title of the site for users: the environment's name, with "(client)" for a client in it."""
        if self.environment == OUTSIDE:
            return f"the {self.role} outside of the environments"
        return f"{self.environment or self.name}{' (client)' if self.role == 'client' else ''}"

    @property
    def reached(self) -> Mapping[int, int]:
        """Return the value of `Site.reached` if these ports are published."""
        return {port.listens: port.reached for port in self.ports}


@dataclass(frozen=True, slots=True)
class SiteEntry:
    """How the host of a site starts a program in it.

    Without ``words`` the site has no entry of its own: its launcher starts the programs, as natively.
    """

    words: tuple[str, ...] = ()
    """The words before the program's own, such as ``docker exec NAME``."""
    group: Group | None = None
    """The control group for the words, or None. A program that joins namespaces stays in its group."""
    here: bool = False
    """Whether the words start on this machine, and not on the site's host, as kubectl does."""


class Site(Protocol):
    """A live place in an environment. The context manager that opened it closes it."""

    name: str
    """The name from the request."""
    title: str
    """The name for users."""
    address: str
    """The address at which the other role reaches the site."""
    listen: str
    """The address to which a server in the site binds."""
    reached: Mapping[int, int]
    """The port at ``address`` that leads to each server port, if the number differs (a published port)."""
    assigned_ports: Mapping[int, int]
    """The port on which a server listens instead of each port of the run, if the environment was given other
    numbers."""
    host: Host
    """The machine of the site. It can differ from the requested one, if the environment needs a dedicated host."""
    links: tuple[NetworkLink, ...]
    """The site's own cables whose rate is known. Weighbridge reads each one before and after the measured process."""
    open_files: int
    """The number of files that a process can have open."""
    layers: Layers
    """The hypervisors around its programs, outermost first: those of the host, then the environment's own. A
    container adds none."""
    round_trip_s: float
    """The measured seconds of a request to its launcher and back. 0 means a few milliseconds."""
    counted: bool
    """Whether its host's kernel counts its CPU time and memory. False for a Xen domain."""
    sampler: Sampler | None
    """Reads the files of ``scope`` if only the site sees them. None means that the host's sampler reads them."""
    opening_phases: Mapping[str, float]
    """The seconds of each phase of its opening, if its environment measures them: `weighbridge.model.openings`."""

    def run(self, command: Command) -> Completed:
        """Run a command until it ends. The command is killed at its deadline."""

    def start(self, command: Command) -> SiteProcess:
        """Start a command and return at once."""

    def entering(self) -> SiteEntry | None:
        """Return how its host starts a program in it, or None if Weighbridge does not know how."""

    def put(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file in the site, below ``/tmp``, ``/run`` or ``/srv``. Raises OSError."""

    def read(self, path: str) -> bytes:
        """Return the contents of a file in the site. Raises OSError."""

    def listening(self, ports: tuple[tuple[Transport, int], ...], within_s: float = 0.0) -> bool:
        """Return whether every port has a listener, from the kernel's tables, so that no server is disturbed.

        Wait up to ``within_s`` seconds for that, and stop waiting if a program of the site ends.
        """

    def freeze(self) -> None:
        """Stop all processes of the site."""

    def thaw(self) -> None:
        """Let all processes of the site run again."""

    def meters(self) -> Mapping[str, float]:
        """Return the current counters: ``cpu_s``, ``throttled_s``, ``memory_bytes``, ``oom_kills``.

        Leave out a counter that cannot be read.
        """

    def memory(self) -> Mapping[str, int]:
        """Return the bytes of memory for sites like this one, ``total`` and ``available``. Raises OSError."""

    def guest_meters(self) -> Mapping[str, float]:
        """Return the current counters of the site's own kernel: ``guest_cpu_s``, ``guest_steal_s``.

        Return an empty mapping if the site has no kernel of its own. An emulated guest has no ``guest_steal_s``.
        Devices and the hypervisor count in ``meters`` alone. Raises OSError, and EnvironmentLost if the site has
        disappeared.
        """

    def scope(self) -> Mapping[str, str]:
        """Return the files with its resource use over time, by label (`weighbridge.meters.scopes`), or an empty
        mapping.

        The paths are on the site's host, or in the site if it has a ``sampler``.
        """

    def facts(self) -> Mapping[str, str]:
        """Return the settings in force: versions, limits, network.

        Add a key ``not honoured: X`` for each limit that is not in force, and ``not metered: X`` for each missing
        meter.
        """
