"""Folders on this machine: their owners, and the mounts in them in this mount namespace."""

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weighbridge.linux.deletion import OwnFolder
from weighbridge.linux.process import output


def is_own_folder(path: Path) -> bool:
    """Return whether a path is a folder that this user owns, and not a link."""
    with contextlib.suppress(OSError):
        status = path.lstat()
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return False


def changeable_by_others(program: Path) -> Iterator[tuple[str, str]]:
    """Yield for each part of a program's path that another user could change the fault and a remedy.

    The parts of a link and of its target are both checked. Raises OSError.
    """
    starts = "root starts" if os.geteuid() == 0 else "you start"
    for path in dict.fromkeys(path for file in (program, program.resolve()) for path in (file, *file.parents)):
        status = path.stat()
        if status.st_uid not in _own_users():
            whose = "root" if os.geteuid() == 0 else "$USER"
            yield f"{path} belongs to another user, who could change what {starts}", f"chown {whose} {path}"
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not (path.is_dir() and status.st_mode & stat.S_ISVTX):
            yield f"{path} is writable by others, who could change what {starts}", f"chmod go-w {path}"


def _own_users() -> set[int]:
    """Return root, this user and, in a user namespace, the overflow user, which includes the machine's root."""
    users = {0, os.geteuid()}
    with contextlib.suppress(OSError, ValueError):
        if Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]:
            users.add(int(Path("/proc/sys/kernel/overflowuid").read_text()))
    return users


_UNMOUNT_S = 20.0


@dataclass(frozen=True, slots=True)
class Mounted:
    """A mounted file system: its mount point, its type (``ext4``), and whether nothing can be written to it here."""

    at: str
    filesystem: str
    read_only: bool = False


def mounted_at(mountinfo: str) -> list[Mounted]:
    """Return the mounts in a text of /proc/PID/mountinfo (proc_pid_mountinfo(5)), in its order."""
    mounts = []
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        if fields.count(" ") > 4:
            point = re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), fields.split(" ")[4])
            restrictions = fields.split(" ")[5].split(",")
            mounts.append(Mounted(point, rest.split(" ")[0], "ro" in restrictions))
    return mounts


def mount_table() -> list[Mounted]:
    """Return the mounts of this mount namespace, in the order in which they were made."""
    return mounted_at(Path("/proc/self/mountinfo").read_text(errors="replace"))


def filesystem_of(path: Path) -> str:
    """Return the type of the file system that a path is on (``nfs4``)."""
    with contextlib.suppress(OSError):
        parts = {str(each) for each in (path.resolve(), *path.resolve().parents)}
        mounts = [each for each in reversed(mount_table()) if each.at in parts]  # the last at a path hides others
        return max(mounts, key=lambda each: len(each.at)).filesystem if mounts else "unknown"
    return "unknown"


def mounted_below(folder: Path) -> list[Path]:
    """Return the mount points at a folder or below it, nested ones first."""
    points = {Path(each.at) for each in mount_table()}
    return sorted((point for point in points if point == folder or folder in point.parents), reverse=True)


def unmount_below(folder: OwnFolder) -> None:
    """Unmount everything at or below a folder; mounts in use end with their last user (umount(2), MNT_DETACH)."""
    for point in mounted_below(folder.path):
        output(("umount", "--lazy", "--", str(point)), deadline_s=_UNMOUNT_S)
