"""Which runs are alive: this user's and those of others, of whom nothing is believed that only they could say."""

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.linux.file_locks import is_locked
from weighbridge.model.names import RunId
from weighbridge.runner import run_lock
from weighbridge.runner.file_ownership import Foreign, NotTrusted, opened

USERS = Path("/run/user")
"""Where systemd puts the run-time folder of each user."""


def holder(run_id: RunId) -> Path | None:
    """The state folder whose lock the living process of this run holds, None where it is dead.

    Root asks of every user's runs too, but a run of which root has a folder is root's: nobody else keeps it alive.
    Of a folder that may not be read the run is taken to be alive.
    """
    is_roots = os.geteuid() == 0 and (run_lock.base() / run_id).is_dir()
    for base, owner in ((run_lock.base(), os.geteuid()), *([] if is_roots else _others())):
        with contextlib.suppress(NotTrusted):
            if _is_locked(base, owner, run_id):
                return base / run_id
    return None


def alive(run_id: RunId) -> bool:
    """Whether a process of this run lives."""
    return holder(run_id) is not None


def others(own: str = "") -> dict[str, str]:
    """The run directory of each run but ``own`` that lives on this machine; "" where that is not known.

    Runs of one fleet measure on different machines: they are no others of each other. Of runs of other users root
    knows, and nobody else. A run whose folder may not be read is none here.
    """
    directories: dict[str, str] = {}
    fleet = os.environ.get(run_lock.FLEET_VARIABLE, "")
    for base, owner in ((run_lock.base(), os.geteuid()), *_others()):
        with contextlib.suppress(OSError, NotTrusted), opened(base, (), owner):
            names = (path.name for path in base.iterdir() if RunId.matches(path.name) and path.name != own)
            for run_id in map(RunId, sorted(names)):
                if _measures(base, owner, run_id) and not (fleet and run_lock.fleet_of(base, owner, run_id) == fleet):
                    directories[run_id] = run_lock.directory_of(base, owner, run_id)
    return directories


def hidden_runs() -> list[str]:
    """The runs of root that this user may not ask, but for those that are known to be dead.

    The process of a run locks its folder as long as it lives, which the kernel tells everybody. Only a folder that
    nobody but root can write to is asked.
    """
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
    """Whether a run's own process holds its lock: not `weighbridge clean`, which also does."""
    with contextlib.suppress(OSError, NotTrusted), opened(base, (run_id, "lock"), owner) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(lock, 64, 0) == b"run"
    return False


def require_alone(*, allow_concurrent: bool) -> None:
    """Raise Unavailable where another run measures on this machine, or may, unless that is insisted on."""
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
    """When the living process of a run began, as the end of a sentence; "" where that is not known."""
    folder = holder(run_id)
    with contextlib.suppress(OSError):
        if folder is not None:  # whoever takes the lock writes to it what for
            began = time.localtime((folder / "lock").lstat().st_mtime)
            is_today = began[:3] == time.localtime()[:3]
            return f" since {time.strftime('%H:%M' if is_today else '%Y-%m-%d %H:%M', began)}"
    return ""


def foreign(runs: Iterable[RunId]) -> list[Foreign]:
    """What is in the place of a state folder, or of the lock of one of these runs, and is not believed."""
    foreign_paths: dict[Foreign, None] = {}
    for base, owner in ((run_lock.base(), os.geteuid()), *_others()):
        try:
            with contextlib.suppress(OSError), opened(base, (), owner):
                pass
            for run_id in runs:
                try:
                    _is_locked(base, owner, run_id)
                except NotTrusted as error:
                    foreign_paths[error.foreign] = None
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


def _others() -> Iterator[tuple[Path, int]]:
    """The bases that other users' runs have, with the user to whom each must belong."""
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
