"""A request to a machine (`Command`) and its result (`Completed`)."""

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

Transport = Literal["tcp", "udp"]
SITE_ENV: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
}  # fmt: skip
"""The environment variables of every program in every site: the user's own would reach only some of them."""
_MESSAGE_LINES = 3
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class PublishedPort:
    """A published port of a server: the port ``reached`` of the host leads to ``listens``."""

    transport: Transport
    reached: int
    listens: int


def port_in_use(transport: Transport, port: int) -> str:
    """Return a message that another program has the port that a server needs."""
    return f"{transport} port {port} is in use by another program"


@dataclass(frozen=True, slots=True)
class Command:
    """One process to run: an argument list, never a shell string.

    ``deadline_s`` is its longest run time (seconds) before it is killed. ``listens`` names the ports on which a
    server must be listening before its client starts. ``stop_signal`` ends a server.
    """

    argv: tuple[str, ...]
    deadline_s: float = 60.0
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    listens: tuple[tuple[Transport, int], ...] = ()
    says: str = ""
    """A regular expression (re.search) for a line that a server prints when it is ready; "" if it prints none."""
    stop_signal: int = signal.SIGTERM
    cwd: str = "/"
    """The working directory. It and ``uid``, ``gid`` apply only in a site; None means the launcher's own."""
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()
    """The supplementary groups, if ``gid`` is not None."""

    def wrapped(self, *prefix: str) -> "Command":
        """Return the same command behind another program (nsenter, nice, ...)."""
        return replace(self, argv=(*prefix, *self.argv))


@dataclass(frozen=True, slots=True)
class ProcessDefaults:
    """The defaults for programs of a userland, as in an image's configuration: variables, folder, user, groups."""

    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()

    def user(self, launcher: str) -> str:
        """Return the user of the programs, in a site whose launcher runs as ``launcher``."""
        return launcher if self.uid is None else f"{self.uid}:{self.gid}"

    def of(self, command: Command) -> Command:
        """Return the command with these defaults; its own variables override them."""
        env = {**self.env, **command.env}
        return replace(command, env=env, cwd=self.cwd, uid=self.uid, gid=self.gid, groups=self.groups)


@dataclass(frozen=True, slots=True)
class Usage:
    """The resource use of a process and of the children that it waited for (getrusage(2))."""

    cpu_user_s: float
    cpu_system_s: float
    peak_memory: int
    """In bytes, for the largest of the processes."""
    switches: int
    """Context switches because it waited; ``preemptions``: because another process had to run."""
    preemptions: int
    minor_faults: int
    major_faults: int


@dataclass(frozen=True, slots=True)
class Completed:
    """A process that ended. ``returncode`` is negative for a signal, as in subprocess.

    ``timed_out`` means that it was killed at its deadline. ``duration_s`` is its wall time in seconds by the site's
    clock, ``outside_s`` its wall time by this machine's clock. ``error`` is the errno(3) if it could not be started.
    ``too_much`` means that it was killed because its output exceeded the limit. ``left_running`` means that it ended
    by itself, and that its remaining children were killed. ``disconnected_s`` is how long the site was disconnected
    meanwhile, which delays the report of its end.
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
        """Return standard output as text, with replacement characters for bytes that are not UTF-8."""
        return self.stdout.decode(errors="replace")

    @property
    def error_text(self) -> str:
        """Return standard error as text, with replacement characters for bytes that are not UTF-8."""
        return self.stderr.decode(errors="replace")

    @property
    def last_words(self) -> str:
        """The last line of standard error, else of standard output, after a note if the deadline was reached."""
        late = f"it did not finish within {self.duration_s:.0f} s" if self.timed_out else ""
        for stream in (self.stderr, self.stdout):
            for line in reversed(stream.decode(errors="replace").splitlines()):
                if words := _COLOURS.sub("", line).strip()[:300]:
                    return f"{late}: {words}" if late else words
        return late or "it printed nothing"

    def message_of(self, program: str) -> str:
        """Return the message of a failed program in one line of at most 300 characters.

        It has all lines of standard error, else of standard output, if there are at most three. Otherwise it has the
        first line and the last two. The name of the program at the start of a line is left out.
        """
        for stream in (self.stderr, self.stdout):
            texts = (_COLOURS.sub("", line).strip() for line in stream.decode(errors="replace").splitlines())
            if lines := [*dict.fromkeys(text.removeprefix(f"{program}: ") for text in texts if text)]:
                shown = lines if len(lines) <= _MESSAGE_LINES else [lines[0], "...", *lines[-2:]]
                return " | ".join(shown)[:300]
        return self.last_words


class Running(Protocol):
    """A process that was started. Stopping it twice is harmless."""

    def poll(self) -> int | None:
        """Return the process's return code, or None while it runs."""

    def wait(self, timeout_s: float) -> bool:
        """Wait at most ``timeout_s`` seconds; return True once it has ended."""

    def stop(self, *, timed_out: bool = False) -> Completed:
        """End it (its stop signal, then KILL after a grace period) and return its result."""


class SiteProcess(Running, Protocol):
    """A process in a site."""

    def printed(self) -> tuple[bytes, bytes]:
        """Return its standard output and standard error so far: at least the first 256 KiB of each."""


class HostProcess(Running, Protocol):
    """A process of a host itself."""

    pid: int
    """Its process id on this machine or on the ssh host; a testbed host has process ids of its own."""

    def output_so_far(self, start: int = 0) -> bytes:
        """Return what the process has written to standard output, from the byte ``start`` on."""

    def send(self, data: bytes) -> None:
        """Write to its standard input, which ``hold`` keeps open. Raises OSError once it has ended."""


class Stream(Protocol):
    """A connection to a program in both directions."""

    def send(self, data: bytes) -> None:
        """Send all of it. Raises OSError once the other end is closed."""

    def receive(self, timeout_s: float | None = None) -> bytes:
        """Return the next piece; empty at the end of the stream. Raises TimeoutError if none arrives in time."""

    def end(self) -> None:
        """Send no more."""
