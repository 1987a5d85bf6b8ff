"""A lock: only one run at a time has private engines on this machine, because each changes the packet filter.

Engines cannot share the filter, whatever their folders, bridges and subnets. dockerd empties chains with fixed names
(DOCKER, DOCKER-ISOLATION-STAGE-1, ...) that can contain rules of another one. And an engine that was killed is undone
by restoring the filter from before its start.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weighbridge.engines import client, firewall
from weighbridge.engines.firewall import Adds
from weighbridge.errors import Unavailable
from weighbridge.linux import cancellation, file_lock

WAIT_S = 120.0
"""How long a run waits for another one's engine."""
_PAUSE_S = 0.2


@dataclass(slots=True)
class _Lock:
    folder: int
    users: int = 0


_locks: dict[Path, _Lock] = {}
"""What this process holds, by the folder that is locked."""
_changing = threading.Lock()
"""Protects ``_locks``: several threads open engines. No thread waits for another run while it has this lock."""


@contextmanager
def exclusive_machine_lock(base: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Let no engine of another run change the machine in this context; engines of this process share it."""
    _wait_for(base, say)
    try:
        yield
    finally:
        _leave(base)


def _wait_for(base: Path, say: Callable[[str], None]) -> None:
    if _joined(base):
        return
    minutes = f"{WAIT_S / 60:.0f} min"
    say(f"waiting up to {minutes} (beyond --within) for another run")  # fits into 80 columns
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        cancellation.sleep(_PAUSE_S)
        if _joined(base):
            return
    raise Unavailable(
        f"the container engine of another run is still active after {minutes}, and two such engines would undo each "
        "other's packet filter rules. Wait until that run ends, measure without an engine (weigh --in netns), or "
        "(for docker) start this machine's Docker engine, which runs share"
    )


def _joined(base: Path) -> bool:
    """Share the lock of this process, which takes it at first use; return False if another run has it."""
    with _changing:
        if base not in _locks:
            folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
            if not file_lock.take(folder):
                os.close(folder)
                return False
            _locks[base] = _Lock(folder)
        _locks[base].users += 1
    return True


def _leave(base: Path) -> None:
    with _changing:
        _locks[base].users -= 1
        if not _locks[base].users:
            os.close(_locks.pop(base).folder)


def restore(base: Path, adds: Adds, further: Callable[[], None] = lambda: None) -> None:
    """Bring the packet filter back, and what else is to be, unless a living run's engine needs them: it will do so.

    Nor are rules of Docker's touched while the user's engine answers, which can have been started in the meantime.

    Where another engine of this process still runs, only what this kind of engine adds is taken out.
    """
    with contextlib.suppress(FileNotFoundError):
        if base in _locks:
            firewall.restore(base, adds)
            further()
            return
        folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if file_lock.take(folder):
                firewall.restore(base, beside_engine=_beside_engine(base))
                further()
        finally:
            os.close(folder)


def left(base: Path) -> list[str]:
    """Return what engines left in the packet filter, unless a living run's engine needs it: see `firewall.left`."""
    with contextlib.suppress(FileNotFoundError):
        folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
        try:
            free = file_lock.take(folder)
        finally:
            os.close(folder)
        return firewall.left(base, beside_engine=_beside_engine(base)) if free else []
    return []


def _beside_engine(base: Path) -> bool:
    """Return whether the user's engine answers. It is asked only after a note, because ssh needs a second."""
    return (base / firewall.NOTE).exists() and client.answers()
