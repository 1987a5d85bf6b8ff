"""One run at a time has engines of its own on this machine: each changes the packet filter, and undoes that."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weighbridge.engines import client, firewall
from weighbridge.engines.firewall import Adds


@dataclass(slots=True)
class _Lock:
    folder: int
    users: int = 0


_locks: dict[Path, _Lock] = {}
"""What this process holds, by the folder that is locked."""


@contextmanager
def exclusive_machine_lock(base: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Inside, no engine of another run changes the machine; engines of this process share it.

    ``base`` is the folder of all runs' states, which is locked.
    """
    lock = _locks.get(base) or _Lock(os.open(base, os.O_RDONLY | os.O_DIRECTORY))
    try:
        if base not in _locks:
            _wait_for(lock.folder, say)
            _locks[base] = lock
        lock.users += 1
        try:
            yield
        finally:
            lock.users -= 1
    finally:
        if not lock.users:
            _locks.pop(base, None)
            os.close(lock.folder)


def _wait_for(folder: int, say: Callable[[str], None]) -> None:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("waiting for another run to end: two private engines would disturb each other")
        fcntl.flock(folder, fcntl.LOCK_EX)


def restore(base: Path, adds: Adds, further: Callable[[], None] = lambda: None) -> None:
    """Bring the packet filter back, and what else is to be, unless a living run's engine needs them: it will do so.

    Nor are rules of Docker's touched while an engine of the user's answers, which may have been started meanwhile.

    Where another engine of this process still runs, only what this kind of engine adds is taken out.
    """
    with contextlib.suppress(FileNotFoundError, BlockingIOError):
        if base in _locks:
            firewall.restore(base, adds)
            further()
            return
        folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            firewall.restore(base, beside_engine=_beside_engine(base))
            further()
        finally:
            os.close(folder)


def left(base: Path) -> list[str]:
    """What engines left in the packet filter, unless a living run's engine needs it: see `firewall.left`.

    The lock is let go at once: a run that ends meanwhile takes it to restore the packet filter, and does not wait.
    """
    with contextlib.suppress(FileNotFoundError, BlockingIOError):
        folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(folder)
        return firewall.left(base, beside_engine=_beside_engine(base))
    return []


def _beside_engine(base: Path) -> bool:
    """Whether an engine of the user's answers, asked only where something was noted: by ssh that takes a second."""
    return (base / firewall.NOTE).exists() and client.answers()
