"""The disk of guests: a file system made of a userland, which every guest opens read-only. Built once."""

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
"""What the file system itself needs beyond the files' sizes."""
_FEATURES = "^has_journal,^metadata_csum,^resize_inode"
"""It is never written to: nothing is gained by a journal."""


def ensure(userland: Userland, cache: Path, say: Callable[[str], None]) -> Path:
    """Return the file with the userland's disk, made if need be. Raises Unavailable, UserlandError, DiskFull."""
    userland.archive()  # a machine's own root file system is no disk
    file = cache / _KIND / f"{userland.digest[:16]}-{_BUILDER}" / NAME

    def make(work: Path) -> None:
        if os.geteuid() != 0:
            raise Unavailable("only root can create a disk that keeps the file owners of the root filesystem")
        make_disk(work / NAME, size_of(userland.root), userland.root)

    return build_once.ensure_file(file, "the guests' disk", say, make)


def place_on(host: Host, image: Path) -> str:
    """Return the path of a disk's file on a host, brought there at first use. Unavailable where that cannot be."""
    place = host.capabilities.guest_disk
    if place is None:
        raise Unavailable(f"a guest's disk cannot be copied to host {host.name}: use local or guest hosts")
    return place(image)


def make_disk(file: Path, size: int, content: Path) -> None:
    """A file system in a sparse file of that size (bytes), with what a folder holds. UserlandError, DiskFull."""
    with file.open("wb") as image:
        image.truncate(size)
    must("mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", "-d", str(content), "-O", _FEATURES, str(file))


def copy_into(slot: Path, image: Path) -> None:
    """Copy a file system into an empty disk that a guest has already, whose size stays. UserlandError, DiskFull."""
    must("dd", f"if={image}", f"of={slot}", "bs=1M", "conv=notrunc,sparse")


def size_of(folder: Path) -> int:
    """Bytes, a multiple of a MiB, that a file system needs for what a folder holds."""
    used = 0
    for place, _, files in os.walk(folder):
        used += 4096 + sum(-(-(Path(place) / name).lstat().st_size // 4096) * 4096 for name in files)
    return -(-int(used * _SPARE + _LEAST) // 2**20) * 2**20
