"""Keeps a folder for each run that is alive, with a lock that its process holds until it ends."""

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from weighbridge.errors import RunDirectoryError, Unavailable
from weighbridge.linux import file_lock
from weighbridge.linux.deletion import OwnFolder, remove_tree
from weighbridge.model.names import RunId
from weighbridge.runner.file_ownership import NotTrusted, must_be_safe, open_to_write, opened

Purpose = Literal["run", "clean"]
ROOTS = Path("/run/weighbridge")
TEMPORARY = Path("/tmp")  # noqa: S108 - what is made there is checked
_REMEDY = "Set XDG_RUNTIME_DIR to a folder of your own that only you can write to"
_TRIES, _PAUSE_S = 20, 0.02
FLEET_VARIABLE = "WEIGHBRIDGE_FLEET"
"""The variable with the folder of a run's fleet: runs of one fleet measure on different machines."""


def base() -> Path:
    """Return the folder for sockets and notes of runs: /run/weighbridge for root, else in the run-time folder."""
    if os.geteuid() == 0:
        return ROOTS
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    return runtime / "weighbridge" if runtime.is_absolute() else TEMPORARY / f"weighbridge-{os.geteuid()}"


def _make_base() -> Path:
    """Return the base folder, created if missing. Raises Unavailable if another user could replace files in it."""
    path = base()
    try:
        path.mkdir(parents=True, exist_ok=True, mode=_base_mode())
        must_be_safe(path.parent)
        with opened(path, (), os.geteuid()) as folder:
            if stat.S_IMODE(os.fstat(folder).st_mode) != _base_mode():
                os.fchmod(folder, _base_mode())
    except (NotTrusted, FileExistsError) as error:
        wrong = error.foreign.path if isinstance(error, NotTrusted) else path
        raise Unavailable(
            f"the state of runs cannot be kept in {path}, because {wrong} is not a folder, or another user owns it "
            f"or can write to it. {_REMEDY}"
        ) from error
    except OSError as error:
        raise Unavailable(f"the state of runs cannot be kept in {path} ({error.strerror}). {_REMEDY}") from error
    return path


def _base_mode() -> int:
    """Return the mode of the base folder: every user can look into root's, to see whether a run of root is alive."""
    return 0o755 if os.geteuid() == 0 else 0o700


def known_runs() -> list[RunId]:
    """Return the runs that have a folder here, alive or not."""
    with contextlib.suppress(OSError, NotTrusted), opened(base(), (), os.geteuid()):
        names = sorted(path.name for path in base().iterdir() if path.is_dir())
        return [RunId(name) for name in names if RunId.matches(name)]
    return []


def caches_of(run_id: RunId) -> tuple[Path, ...]:
    """Return the cache folders that this run has used, the first one first; none if unknown."""
    caches = _notes(base(), os.geteuid(), run_id).get("caches")
    return tuple(Path(each) for each in caches if isinstance(each, str)) if isinstance(caches, list) else ()


def directory_of(base: Path, owner: int, run_id: RunId) -> str:
    """Return the run directory of a run with state in a user's ``base``; "" if it has none, or cannot be read."""
    return str(_notes(base, owner, run_id).get("directory", ""))


def fleet_of(base: Path, owner: int, run_id: RunId) -> str:
    """Return the folder of a run's fleet; "" if the run belongs to none, or it cannot be read."""
    return str(_notes(base, owner, run_id).get("fleet", ""))


def _notes(base: Path, owner: int, run_id: RunId) -> Mapping[str, object]:
    try:
        with opened(base, (run_id, "owner.json"), owner) as file:
            notes = json.loads(os.pread(file, 2**16, 0))
    except (OSError, ValueError, NotTrusted):
        return {}
    return notes if isinstance(notes, dict) else {}


@contextmanager
def claim(run_id: RunId, cache: Path, directory: Path | None = None) -> Iterator[Path]:
    """Yield the run's folder, locked while the context lasts.

    ``directory`` is the run directory. It is noted for other processes that look for living runs. Raises
    RunDirectoryError if the run is in use, or if the id belongs to a run in another directory.
    """
    with lock_run(run_id, "run") as folder:
        if folder is None:
            raise RunDirectoryError(_in_use(run_id))
        if directory is not None:
            _require_same_directory(run_id, directory)
        caches = dict.fromkeys((*caches_of(run_id), cache))  # leftovers can be in earlier caches
        about = {"caches": [*map(str, caches)], "pid": os.getpid()}
        about |= {} if directory is None else {"directory": str(directory.absolute())}
        about |= {"fleet": fleet} if (fleet := os.environ.get(FLEET_VARIABLE)) else {}
        _write(_opened_to_write(folder / "owner.json"), json.dumps(about))
        yield folder


def _require_same_directory(run_id: RunId, directory: Path) -> None:
    """Raise RunDirectoryError if another existing directory has this id, whose leftovers are not this run's."""
    noted = Path(directory_of(base(), os.geteuid(), run_id) or directory)
    with contextlib.suppress(FileNotFoundError):
        if not noted.samefile(directory):
            raise RunDirectoryError(
                f"{directory} is a copy of the interrupted run in {noted}. Continue {noted}, or clean up with "
                f"'weighbridge clean --run {run_id}' and try again."
            )


def _in_use(run_id: RunId) -> str:
    with contextlib.suppress(OSError, NotTrusted), opened(base(), (run_id, "lock"), os.geteuid()) as lock:
        if os.pread(lock, 64, 0) == b"clean":
            return f"'weighbridge clean' is cleaning up after run {run_id}: try again once it has finished"
    return f"another process is continuing run {run_id}: wait until it ends"


@contextmanager
def lock_run(run_id: RunId, purpose: Purpose) -> Iterator[Path | None]:
    """Yield the run's folder, locked so that no other process continues or cleans the run; None if one does.

    A run locks the folder itself, too: users who cannot read its files can see the lock. Raises Unavailable if the
    folder cannot be trusted.
    """
    with ExitStack() as stack:
        folder, lock = _lock(run_id)
        if lock is not None:
            stack.callback(os.close, lock)
            _write(os.dup(lock), purpose)
            if purpose == "run":
                itself = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                stack.callback(os.close, itself)
                _take(itself)
        yield None if lock is None else folder


def _lock(run_id: RunId) -> tuple[Path, int | None]:
    """Return the run's folder, and the descriptor of its lock if it could be taken."""
    for _ in range(_TRIES):
        folder = _make_base() / run_id
        with contextlib.suppress(FileNotFoundError):  # another process can clean it meanwhile, with the lock
            folder.mkdir(exist_ok=True, mode=0o700)
            lock = _opened_to_write(folder / "lock")
            if not _take(lock):
                os.close(lock)
                break
            if _is_there(lock, folder / "lock"):
                return folder, lock
            os.close(lock)
    return folder, None


def _opened_to_write(path: Path) -> int:
    try:
        return open_to_write(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unavailable(f"{path} cannot be written ({error.strerror}): remove it") from error


def _is_there(descriptor: int, path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    return False


def _take(lock: int) -> bool:
    """Lock it; retry, because a process that checks whether the run is alive holds the lock for a moment."""
    for _ in range(_TRIES):
        if file_lock.take(lock):
            return True
        time.sleep(_PAUSE_S)
    return False


def _write(descriptor: int, text: str) -> None:
    with os.fdopen(descriptor, "w") as file:
        file.truncate(0)
        file.write(text)


def forget(run_id: RunId) -> None:
    """Remove the run's folder, and the base folder if it was the last."""
    with contextlib.suppress(OSError):
        remove_tree(OwnFolder.of(base(), run_id))
    with contextlib.suppress(OSError):
        base().rmdir()
