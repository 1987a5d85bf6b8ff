"""Removes folders that Weighbridge made, and refuses everything else. No other module removes a tree, except
temporary directories of the standard library.

A path is looked up one part at a time through directory file descriptors. No link, mount point or `..` can lead
out of the folder in which the search began, even if another process changes the tree meanwhile.

No library is used here, because the agent on a remote host has this module too.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from weighbridge.model.names import SafeName

_DEPTH = 64
"""The largest number of nested folders that are open at a time."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class OwnFolder:
    """A folder that Weighbridge made: ``names`` lead to it from ``base``, a folder that the program itself chose."""

    base: Path
    names: "tuple[SafeName, ...]"

    def __post_init__(self) -> None:
        """Raise ValueError if the base is relative, a name is missing, or a name leads elsewhere."""
        if not self.base.is_absolute() or not self.names:
            raise ValueError(f"{self.base} {self.names} is not a folder that Weighbridge created")
        for name in self.names:
            SafeName(name)

    @classmethod
    def of(cls, base: Path, *names: str) -> "OwnFolder":
        """Return the folder to which the names lead. Raises ValueError for a name that is not a `SafeName`."""
        return cls(base, tuple(map(SafeName, names)))

    @classmethod
    def at(cls, path: Path) -> "OwnFolder":
        """Return the folder with this path, looked up in its parent. Raises ValueError as `of` does."""
        return cls.of(path.parent, path.name)

    @property
    def path(self) -> Path:
        """Return the folder's path."""
        return self.base.joinpath(*self.names)


class DeletionRefused(OSError):
    """A folder is not one that Weighbridge made: nothing in it was removed."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(errno.EPERM, reason, str(path))


def remove_tree(folder: OwnFolder) -> None:
    """Remove a folder and everything in it; do nothing if it does not exist.

    Raises `DeletionRefused` if a part of its path is a link, a file or a mount point, or if other users could have
    made it. Raises OSError if an entry cannot be removed, after everything else has been removed.
    """
    with contextlib.suppress(FileNotFoundError), opened_beneath(folder.base, folder.names[:-1]) as parent:
        name = folder.names[-1]
        _require_own(folder, parent, name)
        tree = os.open(name, _FOLDER, dir_fd=parent)
        try:
            emptying = _Emptying(tree)
            emptying.run()
        finally:
            os.close(tree)
        if (failure := emptying.failure) is not None:
            raise OSError(failure.errno, failure.strerror, f"{folder.path}/{failure.filename or ''}".rstrip("/"))
        try:
            os.rmdir(name, dir_fd=parent)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(folder.path)) from error


def remove_trees(*folders: OwnFolder) -> None:
    """Remove each folder, whatever becomes of the others. Raises the first error of `remove_tree`."""
    failures = []
    for folder in folders:
        try:
            remove_tree(folder)
        except OSError as error:
            failures.append(error)
    if failures:
        raise failures[0]


@contextmanager
def opened_beneath(base: Path, names: "tuple[SafeName, ...]") -> Iterator[int]:
    """Yield a descriptor of the folder to which the names lead from the base, through no link and no mount point.

    Raises `DeletionRefused`, and OSError if a part is missing or cannot be opened.
    """
    with ExitStack() as stack:
        descriptor = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, descriptor)
        path = base
        for name in names:
            path, parent = path / name, descriptor
            descriptor = _child(parent, name, path)
            stack.callback(os.close, descriptor)
        yield descriptor


def _child(parent: int, name: str, path: Path) -> int:
    """Open a folder in a folder. Raises Refused if it is a link, a file or a mount point."""
    try:
        descriptor = os.open(name, _FOLDER, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise DeletionRefused(path, "it is not a folder, so it is not removed") from error
        raise
    if _mount_of(descriptor) != _mount_of(parent):
        os.close(descriptor)
        raise DeletionRefused(path, "another file system is mounted there, so it is not removed")
    return descriptor


def _require_own(folder: OwnFolder, parent: int, name: str) -> None:
    """Raise Refused for a folder of another user in a folder to which all users can write, such as /tmp."""
    os.close(_child(parent, name, folder.path))
    above, itself = os.fstat(parent), os.stat(name, dir_fd=parent, follow_symlinks=False)
    if above.st_mode & stat.S_IWOTH and os.geteuid() not in (above.st_uid, itself.st_uid):
        raise DeletionRefused(folder.path, "another user could have created it, so it is not removed")


def _mount_of(descriptor: int) -> str:
    """Return the number of the mount of an open folder (proc_pid_fdinfo(5)); bind mounts also have a number."""
    info = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
    mount = re.search(r"^mnt_id:\s*(\d+)", info, re.MULTILINE)
    return mount[1] if mount else str(os.fstat(descriptor).st_dev)


class _Emptying:
    """Removes everything in one open folder.

    Folders deeper than `_DEPTH` are moved up into that folder and removed from there, so that no tree is too deep.
    The kernel refuses to move or remove a mount point, and no descriptor of a folder behind one is used.
    """

    def __init__(self, tree: int) -> None:
        self._tree = tree
        self._mark = f".removing-{os.getpid()}-{os.urandom(4).hex()}"
        self._moved = 0
        self.failure: OSError | None = None
        """The error of the first entry that could not be removed."""

    def run(self) -> None:
        """Remove what can be removed."""
        names = os.listdir(self._tree)  # noqa: PTH208 - a descriptor
        while names:
            moved = self._moved
            self._remove(self._tree, names, "", 0)
            names = [f"{self._mark}-{number}" for number in range(moved, self._moved)]

    def _remove(self, folder: int, names: "list[str]", path: str, depth: int) -> None:
        for name in names:
            try:
                if not _is_folder(folder, name):
                    os.unlink(name, dir_fd=folder)
                elif depth < _DEPTH:
                    self._remove_folder(folder, name, f"{path}{name}/", depth + 1)
                else:
                    os.rename(name, f"{self._mark}-{self._moved}", src_dir_fd=folder, dst_dir_fd=self._tree)
                    self._moved += 1
            except FileNotFoundError:
                continue
            except OSError as error:
                self.failure = self.failure or OSError(error.errno, error.strerror, f"{path}{name}")

    def _remove_folder(self, parent: int, name: str, path: str, depth: int) -> None:
        folder = _child(parent, name, Path(path))
        try:
            self._remove(folder, os.listdir(folder), path, depth)  # noqa: PTH208 - a descriptor
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=parent)


def _is_folder(parent: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
