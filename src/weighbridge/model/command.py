"""What is asked of a machine (Command) and what came of it (Completed)."""

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

Transport = Literal["tcp", "udp"]
SITE_ENV: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
}  # fmt: skip
"""The environment variables of every program in every site: the user's own must not reach some of them only."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class PublishedPort:
    """A port of a server for an environment that publishes ports: ``reached`` of the host leads to ``listens``."""

    transport: Transport
    reached: int
    listens: int


def port_in_use(transport: Transport, port: int) -> str:
    """Say that somebody else's program has a port that one of ours is to listen on."""
    return f"{transport} port {port} is in use by another program"


@dataclass(frozen=True, slots=True)
class Command:
    """One process to run: an argument list, never a shell string.

    ``deadline_s`` is the longest that it may run before it is killed (seconds). ``listens`` names the ports
    on which a server must be listening before a client may be started. ``stop_signal`` ends a server.
    """

    argv: tuple[str, ...]
    deadline_s: float = 60.0
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    listens: tuple[tuple[Transport, int], ...] = ()
    says: str = ""
    """A regular expression (re.search) of which a server prints a line once it is ready; "": it says nothing."""
    stop_signal: int = signal.SIGTERM
    cwd: str = "/"
    """The working directory, in a site alone; ``uid``, ``gid`` likewise: None is the launcher's own."""
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()
    """Those beside ``gid``, where that is not None."""

    def wrapped(self, *prefix: str) -> "Command":
        """The same command behind another program (nsenter, nice, ...)."""
        return replace(self, argv=(*prefix, *self.argv))


@dataclass(frozen=True, slots=True)
class ProcessDefaults:
    """What the programs of a userland are started with, as an image's configuration has it: variables, cwd, user.

    ``groups``: its supplementary groups.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()

    def user(self, launcher: str) -> str:
        """Return as whom they run, in a site whose launcher runs as ``launcher`` says."""
        return launcher if self.uid is None else f"{self.uid}:{self.gid}"

    def of(self, command: Command) -> Command:
        """Return the command as it is started in such a userland: its own variables go over these."""
        env = {**self.env, **command.env}
        return replace(command, env=env, cwd=self.cwd, uid=self.uid, gid=self.gid, groups=self.groups)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and those of its children whose end it awaited have used (getrusage(2))."""

    cpu_user_s: float
    cpu_system_s: float
    peak_memory: int
    """Bytes, of the largest of them."""
    switches: int
    """Context switches because it waited; ``preemptions``: because another process was to run."""
    preemptions: int
    minor_faults: int
    major_faults: int


@dataclass(frozen=True, slots=True)
class Completed:
    """A process that ended. ``returncode`` is negative for a signal, as in subprocess.

    ``timed_out`` says that it was killed at its deadline; ``duration_s`` is its wall time in seconds, as known in its
    site. ``error`` is the number (errno(3)) of why it could not be started. ``outside_s`` is its wall time as seen
    from outside of the site, ``too_much`` says that it printed more than is kept, for which it was killed,
    ``left_running`` that processes which it had started went on when it had ended by itself, and were killed then;
    ``disconnected_s`` for how long meanwhile there was no connection to its site, for which its end is heard late.
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: bytes
    stderr: bytes
    duration_s: float
    timed_out: bool = False
    error: int = 0
    usage: Usage | None = None
    outside_s: float | None = None
    too_much: bool = False
    left_running: bool = False
    disconnected_s: float = 0.0

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are not UTF-8 are shown as replacement characters."""
        return self.stdout.decode(errors="replace")

    @property
    def error_text(self) -> str:
        """Return standard error as text, with replacement characters for bytes that are not UTF-8."""
        return self.stderr.decode(errors="replace")

    @property
    def last_words(self) -> str:
        """The last non-empty line of standard error, else of standard output: what a person would read first.

        Without what colours it on a terminal. Of a program that was ended at its deadline, that first.
        """
        late = f"it did not finish within {self.duration_s:.0f} s" if self.timed_out else ""
        for stream in (self.stderr, self.stdout):
            for line in reversed(stream.decode(errors="replace").splitlines()):
                if words := _COLOURS.sub("", line).strip()[:300]:
                    return f"{late}: {words}" if late else words
        return late or "it printed nothing"


class Running(Protocol):
    """A process that was started and is to be waited for or stopped. Stopping twice is harmless."""

    def poll(self) -> int | None:
        """Return the process's return code, or None while it runs."""

    def wait(self, timeout_s: float) -> bool:
        """Wait at most ``timeout_s`` seconds; True once it has ended."""

    def stop(self, *, timed_out: bool = False) -> Completed:
        """End it (its stop signal, then KILL after a grace period) and give what it left."""


class SiteProcess(Running, Protocol):
    """A process in a site."""

    def printed(self) -> tuple[bytes, bytes]:
        """What it has written so far to standard output and standard error: of each the first 256 KiB at least."""


class HostProcess(Running, Protocol):
    """A process of a host itself."""

    pid: int
    """As this machine or, by ssh, the other one numbers it; a testbed host has numbers of its own."""

    def output_so_far(self, start: int = 0) -> bytes:
        """Return what the process has written to standard output, from the byte ``start`` on."""

    def send(self, data: bytes) -> None:
        """Write to its standard input, which ``hold`` keeps open. Raises OSError once it has ended."""


class Stream(Protocol):
    """Both ways between us and a program."""

    def send(self, data: bytes) -> None:
        """Send all of it. Raises OSError once the other end is closed."""

    def receive(self, timeout_s: float | None = None) -> bytes:
        """The next piece; empty at the end of the stream. Raises TimeoutError where none comes in time."""

    def end(self) -> None:
        """Send no more."""
