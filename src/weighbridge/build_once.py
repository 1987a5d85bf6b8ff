"""Parts of the cache that are built once under a key: completely or not at all, by one builder at a time."""

import errno
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from weighbridge.errors import DiskFull, Unavailable, UserlandError
from weighbridge.linux import cancellation, file_lock
from weighbridge.linux.deletion import OwnFolder, remove_tree

KINDS = ("userlands", "jars", "programs", "kernels", "ramdisks", "disks", "media", "systems", "uml")
"""The folders of the cache with such parts, each under its key."""
_BUILDING = ".building-"
_PAUSE_S = 0.2
_ELSEWHERE = "fix that, or set WEIGHBRIDGE_CACHE to another folder"
Built = TypeVar("Built")


def _make(folder: Path, key: str, label: str, say: Callable[[str], None], build: Callable[[Path], None]) -> None:
    """Make ``folder/key`` by ``build``, which fills the given new folder, unless it exists.

    If ``build`` raises, or is killed, only a folder for `half_built` remains. Raises OSError.
    """
    with _locked(folder, key, label, say):
        if (folder / key).exists():
            return
        work = folder / f"{_BUILDING}{key}"
        discard(work)
        try:
            work.mkdir()
            work.chmod(0o755)
            build(work)
            work.rename(folder / key)
        finally:
            discard(work)


def ensure(
    folder: Path,
    key: str,
    what: str,
    cached: Callable[[], Built | None],
    lacking: Callable[[], tuple[str, str] | None],
    say: Callable[[str], None],
    build: Callable[[Path], None],
) -> Built:
    """Return the result of ``cached``, built by ``build`` if needed; messages call it ``what``.

    Raises Unavailable if a requirement is ``lacking`` (with a remedy), DiskFull, UserlandError for other failures,
    and the errors of ``build``.
    """
    if (ready := cached()) is not None:
        return ready
    if (missing := lacking()) is not None:
        raise Unavailable(": ".join(missing))

    def announce_and_build(work: Path) -> None:
        say(f"building {what} (needed only once)")
        build(work)

    try:
        _make(folder, key, what, say, announce_and_build)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "make room, or set WEIGHBRIDGE_CACHE to a larger disk" if full else _ELSEWHERE
        raise (DiskFull if full else UserlandError)(f"cannot build {what} in {folder}: {error}: {remedy}") from error
    if (built := cached()) is None:
        raise UserlandError(f"{what} vanished from {folder} during the build: run again")
    return built


def ensure_file(
    file: Path,
    what: str,
    say: Callable[[str], None],
    build: Callable[[Path], None],
    lacking: Callable[[], tuple[str, str] | None] = lambda: None,
) -> Path:
    """Return one file, built as by `ensure`, in the folder named by its key."""
    key = file.parent

    def cached() -> Path | None:
        return file if file.is_file() else None

    return ensure(key.parent, key.name, what, cached, lacking, say, build)


def key_of_folder(folder: Path) -> str:
    """Return a digest of the names and contents of the files below a folder: sixteen hexadecimal digits."""
    content = hashlib.sha256()
    for path, data in files_below(folder).items():
        for part in (path.encode(), data):
            content.update(len(part).to_bytes(8, "big") + part)
    return content.hexdigest()[:16]


def files_below(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder by its path in it, in the order of their paths."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@contextmanager
def _locked(folder: Path, key: str, label: str, say: Callable[[str], None]) -> Iterator[None]:
    folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    folder.mkdir(mode=0o755, exist_ok=True)  # other users cannot change it, whatever the umask
    with (folder / f"{key}.lock").open("w") as lock:
        if not file_lock.take(lock):
            say(f"waiting until {label} is built")
            while not file_lock.take(lock):
                cancellation.sleep(_PAUSE_S)
        yield


def half_built(cache: Path) -> list[Path]:
    """Return the folders below the cache whose builder was killed, since their lock is free."""
    folders = []
    for work in (path for kind in KINDS for path in (cache / kind).glob(f"{_BUILDING}*")):
        lock = work.with_name(work.name.removeprefix(_BUILDING) + ".lock")
        with lock.open("a") as handle:
            if file_lock.take(handle):
                folders.append(work)
    return folders


def discard(folder: Path) -> None:
    """Remove a folder if it exists. Raises OSError."""
    remove_tree(OwnFolder.at(folder))
