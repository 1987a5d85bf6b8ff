"""Slow parts of pages in the user's cache, which are only read if no other user could have written them."""

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.user_cache import cache_folder

_SAFELY = os.O_NOFOLLOW | os.O_CLOEXEC


def read_cached(name: str) -> bytes:
    """Return the cached content of a name (``charts/vega.js``); empty if there is none that can be trusted."""
    if (file := _file(name)) is None:
        return b""
    with contextlib.suppress(OSError), _folder(file.parent) as folder:
        descriptor = os.open(file.name, os.O_RDONLY | os.O_NONBLOCK | _SAFELY, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as opened:
            return opened.read() if _is_mine(descriptor, stat.S_ISREG) else b""
    return b""


def write_cached(name: str, content: bytes) -> None:
    """Cache a file completely or not at all; a cache that cannot be written, or not by us alone, is skipped."""
    if (file := _file(name)) is None:
        return
    anew = f"{file.name}.{secrets.token_hex(4)}"
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _folder(file.parent) as folder:
            try:
                descriptor = os.open(anew, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY, 0o600, dir_fd=folder)
                with os.fdopen(descriptor, "wb") as opened:
                    opened.write(content)
                os.rename(anew, file.name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(anew, dir_fd=folder)


@contextlib.contextmanager
def _folder(path: Path) -> Iterator[int]:
    """Yield a descriptor of the folder. Raises OSError if it is a link, or if another user can write to it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _SAFELY)
    try:
        if not _is_mine(descriptor, stat.S_ISDIR):
            raise PermissionError(f"others can write to {path}")
        yield descriptor
    finally:
        os.close(descriptor)


def _is_mine(descriptor: int, is_kind: Callable[[int], bool]) -> bool:
    """Return whether an open file is of the kind and belongs to this user, and no other user can write to it."""
    about = os.fstat(descriptor)
    return (
        is_kind(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _file(name: str) -> Path | None:
    """Return the path of a cached file; None for a user who has no cache."""
    with contextlib.suppress(Unavailable):
        return cache_folder() / name
    return None
