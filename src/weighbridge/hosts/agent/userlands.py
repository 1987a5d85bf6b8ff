"""Files on the other machine: root filesystems, stored under their digest, and temporary folders for data."""

import contextlib
import errno
import hashlib
import os
import zlib
from pathlib import Path

from weighbridge.errors import DiskFull, Unavailable, UserlandError
from weighbridge.linux.deletion import OwnFolder, remove_tree
from weighbridge.linux.process import run
from weighbridge.model.command import Command
from weighbridge.model.names import SafeName
from weighbridge.user_cache import user_cache_folder

_UNPACK_S = 1800.0
_KEPT = 32
_AS_ROOT = ("--numeric-owner", "--same-permissions", "--xattrs", "--xattrs-include=security.capability")


def folder() -> Path:
    """Return the folder of root filesystems: root's in /var/cache, a user's in the user's cache folder.

    Raises Unavailable for a user without a cache folder.
    """
    if os.geteuid() == 0:
        return Path("/var/cache/weighbridge/userlands")
    return user_cache_folder() / "userlands"


def root_of(digest: SafeName) -> Path:
    """Return the folder of the root filesystem with this digest, which only exists when it is complete."""
    return folder() / digest[:_KEPT] / "root"


def keep_program(name: SafeName, digest: SafeName, content: bytes, whose: SafeName) -> Path:
    """Store a received program completely or not at all, and return its path; ``whose`` as for `remove_parts`.

    Raises OSError, UserlandError.
    """
    if hashlib.sha256(content).hexdigest() != digest:
        raise UserlandError(f"the program {name} arrived damaged")
    place = folder().parent / "programs" / digest[:_KEPT] / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.is_file() or place.read_bytes() != content:
        part = folder() / f".receiving-{whose}-{digest[:_KEPT]}"
        part.mkdir(parents=True)
        (part / name).write_bytes(content)
        (part / name).chmod(0o755)
        (part / name).rename(place)
        part.rmdir()
    return place


def remove_parts(whose: SafeName) -> None:
    """Remove half-received files of a run; ``whose`` is its id and the host, joined by a dash."""
    with contextlib.suppress(Unavailable):  # without a folder, there are no received files
        for part in folder().glob(f".receiving-{whose}-*"):
            remove_tree(OwnFolder.at(part))


class Receiver:
    """Receives one root filesystem as a compressed archive, piece by piece."""

    def __init__(self, digest: SafeName, whose: SafeName, number: int) -> None:
        """Begin to receive. Raises DiskFull, OSError."""
        self._digest = digest
        self._part = folder() / f".receiving-{whose}-{number}"
        self._inflate = zlib.decompressobj()
        self._sum = hashlib.sha256()
        with self._no_space_told():
            self._part.mkdir(parents=True)
            self._part.chmod(0o700)  # its files can be setuid root; no other user's run uses this folder
            self._tar = (self._part / "root.tar").open("wb")

    def piece(self, data: bytes) -> None:
        """Add the next piece."""
        with self._no_space_told():
            plain = self._inflate.decompress(data)
            self._sum.update(plain)
            self._tar.write(plain)

    def finish(self) -> Path:
        """Check and unpack the root filesystem; return its folder. Raises UserlandError if it is damaged."""
        try:
            with self._no_space_told():
                rest = self._inflate.flush()
                self._sum.update(rest)
                self._tar.write(rest)
                self._tar.close()
            if self._sum.hexdigest() != self._digest:
                raise UserlandError("the root filesystem arrived damaged: its digest differs")
            self._unpack()
            target = root_of(self._digest)
            target.parent.parent.mkdir(parents=True, exist_ok=True)
            (self._part / "root.tar").unlink()
            try:
                with self._no_space_told():
                    self._part.rename(target.parent)
            except OSError as error:
                if not target.is_dir():  # otherwise another run was faster, with the same content
                    raise UserlandError(
                        f"the root filesystem cannot be stored in {target.parent} there ({error.strerror}): remove "
                        "this folder"
                    ) from error
            return target
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove an unfinished root filesystem."""
        with contextlib.suppress(OSError):  # a full disk also prevents the final write
            self._tar.close()
        with contextlib.suppress(OSError):
            remove_tree(OwnFolder.at(self._part))

    def _unpack(self) -> None:
        root = self._part / "root"
        root.mkdir()
        asroot = os.geteuid() == 0
        keep = _AS_ROOT if asroot else ("--no-same-owner", "--exclude=./dev/*")
        tar = ("tar", "--extract", "--file", str(self._part / "root.tar"), "--directory", str(root), *keep)
        completed = run(Command(tar, _UNPACK_S, {"LC_ALL": "C"}))
        if "No space left" in completed.stderr.decode(errors="replace"):
            raise _full()
        if completed.returncode != 0:
            raise UserlandError(f"the root filesystem cannot be unpacked there: {completed.last_words}")

    @contextlib.contextmanager
    def _no_space_told(self):  # type: ignore[no-untyped-def]  # noqa: ANN202
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                self.discard()
                raise _full() from error
            raise


def _full() -> DiskFull:
    return DiskFull(f"no space left in {folder()} for the root filesystem, which needs about 1 GB there: make room")


def data_folder_of(whose: SafeName) -> Path:
    """Return a run's data folder; ``whose`` is the run's id and the host, joined by a dash."""
    return folder().parent / "data" / whose


def make_data_folder(whose: SafeName, name: SafeName) -> Path:
    """Make an empty data folder. Raises OSError."""
    folder = data_folder_of(whose) / name
    folder.mkdir(parents=True)
    return folder


def remove_data_folder(whose: SafeName, name: SafeName) -> None:
    """Remove a data folder if it exists. Raises OSError if part of it remains."""
    remove_tree(OwnFolder.of(folder().parent, "data", whose, name))
