"""Opens files that another user could have replaced: follows no link, and never waits for a pipe."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Fault(StrEnum):
    """Why a state folder, or a file in it, is not trusted."""

    OWNER = "owner"
    """It belongs to another user."""
    KIND = "kind"
    """It is neither a folder nor a regular file, for example a link or a pipe."""
    UNREADABLE = "unreadable"
    """Even root cannot read it, because it is on a user's own file system."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A state folder, or a file in it, that is not trusted."""

    path: Path
    fault: Fault


class NotTrusted(Exception):
    """A file, or a folder above it, is ``foreign``."""

    def __init__(self, path: Path, fault: Fault) -> None:
        super().__init__(f"{path}: {fault}")
        self.foreign = Foreign(path, fault)


@contextmanager
def opened(base: Path, parts: Sequence[str], owner: int) -> Iterator[int]:
    """Yield a descriptor to read a regular file below the folder ``base``, or the folder itself without ``parts``.

    The file and every folder above it belong to ``owner``. Raises NotTrusted if not, OSError if the file is missing
    or cannot be read.
    """
    path, descriptor = base, None
    with ExitStack() as stack:
        for number, part in enumerate((str(base), *parts)):
            path = path / part
            is_folder = number == 0 or number < len(parts)
            try:
                descriptor = os.open(part, _SAFELY | (os.O_DIRECTORY if is_folder else 0), dir_fd=descriptor)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
                    raise NotTrusted(path, Fault.KIND) from error
                if error.errno == errno.EACCES and os.geteuid() == 0:
                    raise NotTrusted(path, Fault.UNREADABLE) from error
                raise
            stack.callback(os.close, descriptor)
            status = os.fstat(descriptor)
            if status.st_uid != owner:
                raise NotTrusted(path, Fault.OWNER)
            if not is_folder and not stat.S_ISREG(status.st_mode):
                raise NotTrusted(path, Fault.KIND)
        assert descriptor is not None
        yield descriptor


def open_to_write(path: Path) -> int:
    """Return a descriptor of a file in our own folder; create a missing file. Raises OSError if it is a link."""
    return os.open(path, os.O_RDWR | os.O_CREAT | _SAFELY, 0o600)


def must_be_safe(folder: Path) -> None:
    """Raise NotTrusted if other users can replace the files in ``folder`` (such as XDG_RUNTIME_DIR)."""
    status = folder.stat()
    if status.st_uid not in (0, os.geteuid()):
        raise NotTrusted(folder, Fault.OWNER)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        raise NotTrusted(folder, Fault.OWNER)
