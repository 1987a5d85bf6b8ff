"""Opens what another user may have put into its place: no link is followed, and nothing is waited for."""

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
    """Why a state folder, or a file in one, is not believed."""

    OWNER = "owner"
    """It belongs to another user than its place says."""
    KIND = "kind"
    """It is a link, a pipe or whatever else, and no folder or regular file."""
    UNREADABLE = "unreadable"
    """Even root may not read it: it is on a file system of a user's own."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """Something in the place of a state folder, or of a file in one, that is not believed."""

    path: Path
    fault: Fault


class NotTrusted(Exception):
    """A file or folder on the way is ``foreign``."""

    def __init__(self, path: Path, fault: Fault) -> None:
        super().__init__(f"{path}: {fault}")
        self.foreign = Foreign(path, fault)


@contextmanager
def opened(base: Path, parts: Sequence[str], owner: int) -> Iterator[int]:
    """A descriptor, to read, of a regular file below the folder ``base``; each folder on the way is the owner's too.

    Without ``parts`` that of the folder itself. Raises NotTrusted, and OSError where it is missing or not allowed.
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
    """A descriptor of a file in a folder of our own, made where it is missing. Raises OSError where it is a link."""
    return os.open(path, os.O_RDWR | os.O_CREAT | _SAFELY, 0o600)


def must_be_safe(folder: Path) -> None:
    """Raise NotTrusted where others may replace what is in ``folder`` (such as XDG_RUNTIME_DIR)."""
    status = folder.stat()
    if status.st_uid not in (0, os.geteuid()):
        raise NotTrusted(folder, Fault.OWNER)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        raise NotTrusted(folder, Fault.OWNER)
