"""Files in folders that can belong to another user, for everything that reads or writes run and fleet directories.

A link in such a folder could lead root to any file of the machine. Every file is therefore opened relative to a
descriptor of its folder, by a name without a slash and with O_NOFOLLOW. Because names have one component, O_NOFOLLOW
refuses the same links as RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS of openat2(2), and all kernels have it.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from weighbridge.errors import RunDirectoryError

_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LARGEST = 2**32
"""The largest number of bytes that are read from a file: a sparse file of any size is free to create."""
_WRITES = os.O_WRONLY | os.O_RDWR
LINK = "is a symbolic link, which Weighbridge does not follow. Replace the link with the {} that it points to."


class SafeFolder:
    """An open folder. Its methods raise OSError, and RunDirectoryError for links and other special files."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    @classmethod
    def open(cls, path: Path, *, writable: bool = False) -> "SafeFolder":
        """Open a folder that the user named. To write to it, a link is followed only if root or this user made it."""
        follows = not writable or (path.is_symlink() and path.lstat().st_uid in (0, os.geteuid()))
        return cls(path, _open_folder(path, None if follows else path))

    def subfolder(self, name: str) -> "SafeFolder":
        """Open a folder in this one."""
        return SafeFolder(self.path / name, _open_folder(name, self.path / name, self.descriptor))

    def close(self) -> None:
        """Close the folder."""
        os.close(self.descriptor)

    def __enter__(self) -> "SafeFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def names(self) -> list[str]:
        """Return the names of everything in the folder."""
        return os.listdir(self.descriptor)  # noqa: PTH208 - a descriptor has no path

    def open_file(self, name: str, flags: int = os.O_RDONLY, *, of_anyone: bool = False) -> int:
        """Open a regular file, and return its descriptor. Without O_CREAT, FileNotFoundError if it is missing.

        To write, a file must belong to this user or to the owner of the folder, unless it can be ``of_anyone``.
        """
        if not name or "/" in name or "\0" in name:
            raise RunDirectoryError(f"{self.path} has no file {name!r}")
        try:
            descriptor = os.open(name, flags | _SAFELY, 0o644, dir_fd=self.descriptor)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise RunDirectoryError(f"{self.path / name} {LINK.format('file')}") from error
            raise
        try:
            self._require_own(name, os.fstat(descriptor), writes=bool(flags & _WRITES), of_anyone=of_anyone)
        except RunDirectoryError:
            os.close(descriptor)
            raise
        return descriptor

    def require_own(self, name: str) -> os.stat_result | None:
        """Return the status of a file that another library will write to; None if it is missing."""
        try:
            status = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None
        self._require_own(name, status, writes=True)
        return status

    def _require_own(self, name: str, status: os.stat_result, *, writes: bool, of_anyone: bool = False) -> None:
        """Refuse links, including hard links: another user can give root's file a second name in that user's folder.

        Copies of backup programs share their files by hard links. Reading these is safe if the owner is the folder's.
        """
        path, owner = self.path / name, os.fstat(self.descriptor).st_uid
        if stat.S_ISLNK(status.st_mode):
            raise RunDirectoryError(f"{path} {LINK.format('file')}")
        if not stat.S_ISREG(status.st_mode):
            raise RunDirectoryError(f"{path} is not a regular file: remove it")
        if status.st_nlink > 1 and (writes or status.st_uid != owner):
            raise RunDirectoryError(f"{path} has a second name (a hard link): use a copy of {self.path}")
        if writes and not of_anyone and status.st_uid not in (owner, os.geteuid()):
            raise RunDirectoryError(f"{path} belongs to neither you nor the owner of {self.path}: change its owner")

    def read(self, name: str, size: int = -1) -> bytearray:
        """Return the first ``size`` bytes of a file, or all of them; nothing if the file is missing."""
        try:
            descriptor = self.open_file(name)
        except FileNotFoundError:
            return bytearray()
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            length = os.fstat(descriptor).st_size if size < 0 else size
            if length > LARGEST:
                raise RunDirectoryError(f"{self.path / name} is larger than 4 GiB, so it cannot be a file of a run")
            data = bytearray(length)
            view, read = memoryview(data), 0
            while (more := file.readinto(view[read:])) and read < len(data):
                read += more
            view.release()
            del data[read:]
            return data

    def write_new(self, name: str, data: bytes) -> None:
        """Write a file, replacing any file of that name: a link is removed, not followed."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY
        try:
            descriptor = os.open(name, flags, 0o644, dir_fd=self.descriptor)
        except FileExistsError:
            os.unlink(name, dir_fd=self.descriptor)
            descriptor = os.open(name, flags, 0o644, dir_fd=self.descriptor)
        _write_and_close(descriptor, data)

    def overwrite(self, name: str, text: str) -> None:
        """Write over the beginning of a file, which is created if it is missing."""
        _write_and_close(self.open_file(name, os.O_WRONLY | os.O_CREAT), text.encode())

    def replace(self, name: str, content: str | bytes, *, durable: bool = False) -> None:
        """Replace a file: readers see the old content or the new one. If ``durable``, it survives a power cut."""
        temporary = f".{name}.{os.getpid()}"
        self.write_new(temporary, content.encode() if isinstance(content, str) else content)
        if durable:
            descriptor = os.open(temporary, os.O_RDONLY | _SAFELY, dir_fd=self.descriptor)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        os.replace(temporary, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        """Remove a file or a link, if there is one."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)


def _write_and_close(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)


def _open_folder(name: str | Path, refused: Path | None, within: int | None = None) -> int:
    """Open a folder; if a path is given, RunDirectoryError with this path if it is a link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if refused is None else os.O_NOFOLLOW)
    try:
        return os.open(name, flags, dir_fd=within)
    except OSError as error:
        if refused is not None and refused.is_symlink():
            raise RunDirectoryError(f"{refused} {LINK.format('folder')}") from error
        raise


def open_named_file(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a regular file that the user or a CI service named, and return its descriptor.

    No link is followed and no pipe or device is opened. But the file can belong to anyone, also
    to write: the runner of GitHub makes the file of a job's summary as its own user. It cannot have a second name,
    through which a build could lead us to another file. Raises RunDirectoryError for these, otherwise OSError.
    """
    with SafeFolder.open(path.parent) as folder:
        return folder.open_file(path.name, flags, of_anyone=True)


@contextlib.contextmanager
def file_in_run(run: Path, folder: str, name: str) -> Iterator[int | None]:
    """Yield a descriptor to read ``folder/name`` in a run, or None if that is not a regular file of the run's own."""
    descriptor = None
    with (
        contextlib.suppress(OSError, RunDirectoryError),
        SafeFolder.open(run) as top,
        top.subfolder(folder) as within,
    ):
        descriptor = within.open_file(name)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)
