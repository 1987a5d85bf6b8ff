"""What is running now: a folder for each run, with a lock that its process holds as long as it lives."""

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from weighbridge.errors import RunDirectoryError

_TRIES, _PAUSE_S = 20, 0.02


def base() -> Path:
    """Where runs keep their sockets and notes: /run/weighbridge for root, else the user's run-time folder."""
    if os.geteuid() == 0:
        return Path("/run/weighbridge")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "weighbridge" if runtime else Path(f"/tmp/weighbridge-{os.geteuid()}")  # noqa: S108


def known_runs() -> list[str]:
    """The runs that have a folder here, alive or not."""
    with contextlib.suppress(OSError):
        return sorted(path.name for path in base().iterdir() if path.is_dir())
    return []


def alive(run_id: str) -> bool:
    """True while the process of this run lives. Root asks of every user's runs; what may not be read is spared."""
    return any(_locked(folder / run_id / "lock") for folder in (base(), *_of_others()))


def _of_others() -> list[Path]:
    if os.geteuid() != 0:
        return [Path("/run/weighbridge")]
    return [*Path("/run/user").glob("*/weighbridge"), *Path("/tmp").glob("weighbridge-*")]  # noqa: S108


def _locked(path: Path) -> bool:
    try:
        with path.open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return True
    except OSError:
        return False
    return False


def cache_of(run_id: str, default: Path) -> Path:
    """The cache folder that this run used."""
    try:
        return Path(json.loads((base() / run_id / "owner.json").read_text())["cache"])
    except (OSError, ValueError, KeyError):
        return default


@contextmanager
def claim(run_id: str, cache: Path) -> Iterator[Path]:
    """The run's folder, locked for as long as the context lasts. RunDirectoryError where the run is alive."""
    with held(run_id) as folder:
        if folder is None:
            raise RunDirectoryError(f"the run {run_id} is being continued by another process: wait for it")
        (folder / "owner.json").write_text(json.dumps({"cache": str(cache), "pid": os.getpid()}))
        yield folder


@contextmanager
def held(run_id: str) -> Iterator[Path | None]:
    """The run's folder, locked so that nobody else continues or cleans it; None where the run is alive."""
    folder = base() / run_id
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "lock").open("a") as lock:
        yield folder if _take(lock) else None


def _take(lock: IO[str]) -> bool:
    """Lock it; somebody who only looks whether the run is alive holds it for a moment."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return True
    return False


def forget(run_id: str) -> None:
    """Remove the run's folder, and the base where it was the last."""
    shutil.rmtree(base() / run_id, ignore_errors=True)
    with contextlib.suppress(OSError):
        base().rmdir()
