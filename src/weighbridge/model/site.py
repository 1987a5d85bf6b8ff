"""The contract between environments and the runner: sites, and what is needed to open one."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from weighbridge.model.command import Command, Completed, Running, Transport

T = TypeVar("T")


SITE_ENV: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}
"""The environment variables of every program in every site: the user's own must not reach some of them only."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one site. ``cpus`` is CPU time per wall time, ``memory`` bytes, ``cpuset`` a CPU list.

    ``cpus`` is kept within every ``cpu_period_us`` microseconds: a quota of CPU time per period.
    """

    cpus: float | None = None
    memory: int | None = None
    cpuset: str | None = None
    cpu_period_us: int = 100_000

    @property
    def cpu_quota_us(self) -> int | None:
        """Microseconds of CPU time per period."""
        return None if self.cpus is None else max(1000, round(self.cpus * self.cpu_period_us))


@dataclass(frozen=True, slots=True)
class Userland:
    """A built root file system: ``root`` is its folder, ``tar`` the same as an archive.

    ``digest`` is the SHA-256 of its contents; ``versions`` maps each Debian package to its version.
    """

    digest: str
    root: Path
    tar: Path
    versions: Mapping[str, str]


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


class HostProcess(Running, Protocol):
    """A process of a host itself."""

    pid: int

    def output_so_far(self) -> bytes:
        """What it has written to standard output."""


class Host(Protocol):
    """A machine on which sites are opened and commands run."""

    name: str
    root: bool
    """Whether commands run as root there."""

    def run(self, command: Command) -> Completed:
        """Run to the end; killed at its deadline."""

    def start(self, command: Command, *, hold: bool = False) -> HostProcess:
        """Start and return at once; with ``hold`` its standard input stays open until it is stopped or we die."""

    def listening(self, ports: tuple[tuple[Transport, int], ...], pid: int | str = "self") -> bool:
        """True when every port has a listener in the network namespace of the process ``pid``."""


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


class Site(Protocol):
    """A live place in an environment. It is closed by the context manager that opened it."""

    name: str
    address: str
    """Where a client on the same host reaches a server in this site."""
    listen: str
    """The address to which a server in this site binds."""

    def run(self, command: Command) -> Completed:
        """Run to the end; killed at its deadline."""

    def start(self, command: Command) -> Running:
        """Start and return at once."""

    def put(self, path: str, data: bytes) -> None:
        """Write a file inside the site. Only /tmp and /run can be written to."""

    def listening(self, ports: tuple[tuple[Transport, int], ...]) -> bool:
        """True when every port has a listener, read from the kernel's tables so that no server is disturbed."""

    def freeze(self) -> None:
        """Stop every process in the site from running."""

    def thaw(self) -> None:
        """Let them run again."""

    def meters(self) -> Mapping[str, float]:
        """Counters at this moment: ``cpu_s``, ``throttled_s``, ``memory_bytes``; what cannot be read is absent."""

    def facts(self) -> Mapping[str, str]:
        """What is in force: versions, limits, network. ``not honoured: X`` keys name what could not be done."""
