"""Finds out which runs are alive, of this user and of others, without trusting claims that others could forge."""

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.linux.file_locks import is_locked
from weighbridge.model.names import RunId
from weighbridge.runner import run_lock
from weighbridge.runner.file_ownership import Foreign, NotTrusted, opened

USERS = Path("/run/user")
"""The parent of the run-time folder of each user, as systemd creates it."""


def holder(run_id: RunId) -> Path | None:
    """Return the state folder whose lock the living process of this run holds; None if the run is dead.

    Root checks the folders of every user, but if root has a folder for the run, the run belongs to root. If the
    folder cannot be read, the run counts as alive.
    """
    is_roots = os.geteuid() == 0 and (run_lock.base() / run_id).is_dir()
    for base, owner in islice(_bases(), 1 if is_roots else None):
        with contextlib.suppress(NotTrusted):
            if _is_locked(base, owner, run_id):
                return base / run_id
    return None


def alive(run_id: RunId) -> bool:
    """Return whether a process of this run lives."""
    return holder(run_id) is not None


def others(own: str = "") -> dict[str, str]:
    """Return the run directory of each run but ``own`` that lives on this machine; "" if the directory is unknown.

    Runs of the same fleet are left out, because they measure on different machines. Only root sees the runs of other
    users. Runs with unreadable folders are left out.
    """
    directories: dict[str, str] = {}
    fleet = os.environ.get(run_lock.FLEET_VARIABLE, "")
    for base, owner in _bases():
        with contextlib.suppress(OSError, NotTrusted), opened(base, (), owner):
            names = (path.name for path in base.iterdir() if RunId.matches(path.name) and path.name != own)
            for run_id in map(RunId, sorted(names)):
                if _measures(base, owner, run_id) and not (fleet and run_lock.fleet_of(base, owner, run_id) == fleet):
                    directories[run_id] = run_lock.directory_of(base, owner, run_id)
    return directories


def hidden_runs() -> list[str]:
    """Return root's runs that this user cannot examine, unless the locks on their folders show that they are dead."""
    if os.geteuid() == 0:
        return []
    with contextlib.suppress(OSError, NotTrusted), opened(run_lock.ROOTS, (), 0) as folder:
        if not os.fstat(folder).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            names = sorted(path.name for path in run_lock.ROOTS.iterdir())
            return [each for each in names if RunId.matches(each) and _is_hidden(RunId(each))]
    return []


def _is_hidden(run_id: RunId) -> bool:
    with contextlib.suppress(OSError, NotTrusted):
        try:
            with opened(run_lock.ROOTS, (run_id, "lock"), 0):
                return False
        except PermissionError:
            return is_locked((run_lock.ROOTS / run_id).lstat()) is not False
    return False


def _measures(base: Path, owner: int, run_id: RunId) -> bool:
    """Return whether a run's own process holds its lock: `weighbridge clean` can hold it, too."""
    with contextlib.suppress(OSError, NotTrusted), opened(base, (run_id, "lock"), owner) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(lock, 64, 0) == b"run"
    return False


def require_alone(*, allow_concurrent: bool) -> None:
    """Raise Unavailable if another run is measuring on this machine, or could be, unless that is allowed."""
    if allow_concurrent:
        return
    if not (found := others()):
        if hidden := hidden_runs():
            raise Unavailable(
                f"run {hidden[0]}, which belongs to root, is probably measuring on this machine, and two runs "
                "disturb each other. Wait until it ends, or use --allow-concurrent (both reports then say so)"
            )
        return
    run_id, directory = next(iter(found.items()))
    where = f" in {directory}" if directory else ""
    raise Unavailable(
        f"run {run_id}{where} has been measuring on this machine{_since(RunId(run_id))}, and two runs disturb each "
        "other. Wait until it ends, or use --allow-concurrent (both reports then say so)"
    )


def _since(run_id: RunId) -> str:
    """Return when the living process of a run began: the end of a sentence; "" if unknown."""
    folder = holder(run_id)
    with contextlib.suppress(OSError):
        if folder is not None:  # a process that gets the lock writes its purpose to the file
            began = time.localtime((folder / "lock").lstat().st_mtime)
            is_today = began[:3] == time.localtime()[:3]
            return f" since {time.strftime('%H:%M' if is_today else '%Y-%m-%d %H:%M', began)}"
    return ""


def foreign(runs: Collection[RunId]) -> list[Foreign]:
    """Return untrusted files in the place of a state folder, or of the lock of one of these runs."""
    foreign_paths: dict[Foreign, None] = {}
    for base, owner in _bases():
        for parts in ((), *((run_id, "lock") for run_id in runs)):
            try:
                with contextlib.suppress(OSError), opened(base, parts, owner):
                    pass
            except NotTrusted as error:
                foreign_paths[error.foreign] = None
    return list(foreign_paths)


def _is_locked(base: Path, owner: int, run_id: RunId) -> bool:
    try:
        with opened(base, (run_id, "lock"), owner) as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return True
    except OSError:
        return False
    return False


def _bases() -> Iterator[tuple[Path, int]]:
    """Yield the base folders of this user's and other users' runs, each with the user who must own it."""
    yield run_lock.base(), os.geteuid()
    if os.geteuid() != 0:
        yield run_lock.ROOTS, 0
        return
    for path in sorted(USERS.glob("*/weighbridge")):
        if path.parent.name.isdecimal():
            yield path, int(path.parent.name)
    for path in sorted(run_lock.TEMPORARY.glob("weighbridge-*")):
        user = path.name.removeprefix("weighbridge-")
        if user.isdecimal():
            yield path, int(user)
