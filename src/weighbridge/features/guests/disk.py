"""The disk of guests: a file system made from a root filesystem, built once and opened read-only by every guest."""

import os
from collections.abc import Callable
from pathlib import Path

from weighbridge import build_once
from weighbridge.errors import Unavailable
from weighbridge.model.host import Host
from weighbridge.model.userland import Userland
from weighbridge.userland.commands import must

NAME = "disk.ext4"
PROGRAMS = ("mkfs.ext4",)
_KIND = "disks"
_BUILDER = "1"
_SPARE, _LEAST = 1.15, 64 * 2**20
"""The overhead of the file system: a factor on the files' sizes, and bytes."""
_FEATURES = "^has_journal,^metadata_csum,^resize_inode"
"""Features of the file system; it is never written, so it needs no journal."""


def ensure(userland: Userland, cache: Path, say: Callable[[str], None]) -> Path:
    """Return the file with the disk of a root filesystem, made if needed. Unavailable, UserlandError, DiskFull."""
    userland.archive()  # fails for the machine's own root filesystem
    file = cache / _KIND / f"{userland.digest[:16]}-{_BUILDER}" / NAME

    def make(work: Path) -> None:
        if os.geteuid() != 0:
            raise Unavailable("only root can create a disk that keeps the file owners of the root filesystem")
        make_disk(work / NAME, size_of(userland.root), userland.root)

    return build_once.ensure_file(file, "the guests' disk", say, make)


def place_on(host: Host, image: Path) -> str:
    """Return the path of a disk's file on a host, copied there at first use. Raises Unavailable."""
    place = host.capabilities.guest_disk
    if place is None:
        raise Unavailable(f"a guest's disk cannot be copied to host {host.name}: use local or guest hosts")
    return place(image)


def make_disk(file: Path, size: int, content: Path) -> None:
    """Make a file system with a folder's content in a sparse file of ``size`` bytes. UserlandError, DiskFull."""
    with file.open("wb") as image:
        image.truncate(size)
    must("mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", "-d", str(content), "-O", _FEATURES, str(file))


def copy_into(slot: Path, image: Path) -> None:
    """Copy a file system into an existing empty disk of a guest, whose size stays. Raises UserlandError, DiskFull."""
    must("dd", f"if={image}", f"of={slot}", "bs=1M", "conv=notrunc,sparse")


def size_of(folder: Path) -> int:
    """Return the bytes, a multiple of a MiB, that a file system needs for a folder's content."""
    used = 0
    for place, _, files in os.walk(folder):
        used += 4096 + sum(-(-(Path(place) / name).lstat().st_size // 4096) * 4096 for name in files)
    return -(-int(used * _SPARE + _LEAST) // 2**20) * 2**20
