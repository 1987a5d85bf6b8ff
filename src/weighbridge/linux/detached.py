"""Processes that outlive this process and its terminal, and their identification by other processes."""

import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weighbridge.linux.process import start_detached

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")
_GONE = ("Z", "X")
"""States of a process that has ended (proc(5))."""


@dataclass(frozen=True, slots=True)
class DetachedProcess:
    """The identity of a process, also if its number is reused.

    ``kernel`` identifies the kernel since its boot and the PID namespace. ``machine`` is its host name and machine
    id; "" if an older version wrote it.
    """

    pid: int
    started: int
    kernel: str
    machine: str = ""

    def __str__(self) -> str:
        """Return the text that `parsed` reads."""
        return f"{self.pid} {self.started} {self.kernel} {self.machine}".rstrip()

    @property
    def is_here(self) -> bool:
        """Return whether it was started where this process is; elsewhere, nothing else is known about it."""
        return self.kernel == _kernel()

    @property
    def is_alive(self) -> bool:
        """Return whether it runs; False for a process of another machine or of an earlier boot."""
        return self.is_here and _started(self.pid) == self.started

    @property
    def is_of_earlier_boot(self) -> bool:
        """Return whether it was started on this machine before the last boot, so that it has ended."""
        return self.machine == _machine() != "" and self.kernel.split()[:1] != _kernel().split()[:1]

    @property
    def command(self) -> tuple[str, ...]:
        """Return the words of its command; () if it does not run here, or this user cannot read them."""
        try:
            words = Path(f"/proc/{self.pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return ()
        return tuple(os.fsdecode(word) for word in words[:-1]) if self.is_alive else ()

    def end(self) -> None:
        """Send SIGTERM if it runs here. Raises PermissionError if it belongs to another user."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)


def detach(argv: Sequence[str], log: Path) -> DetachedProcess:
    """Start a process that outlives this one and appends its output to ``log``. Raises Unavailable."""
    pid = start_detached(argv, log)
    return DetachedProcess(pid, _started(pid) or 0, _kernel(), _machine())


def parsed(text: str) -> DetachedProcess | None:
    """Return the process that was written as ``text``, or None."""
    words = text.split(" ", 4)
    if len(words) < 3 or not (words[0].isdecimal() and words[1].isdecimal()):
        return None
    return DetachedProcess(int(words[0]), int(words[1]), " ".join(words[2:4]), "".join(words[4:]))


def _kernel() -> str:
    with contextlib.suppress(OSError):
        return f"{_BOOT_ID.read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"
    return "unknown kernel"


def _machine() -> str:
    """Return this machine's host name and machine id in one word; "" if either is unknown."""
    try:
        machine_id = _MACHINE_ID.read_text().strip()
    except OSError:
        return ""
    name = os.uname().nodename
    return f"{name}:{machine_id}" if name and machine_id else ""


def _started(pid: int) -> int | None:
    """Return when a process started, in the kernel's ticks since its boot; None if it has ended."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in _GONE else int(fields[18])
