"""Folders on this machine: whose they are, and what is mounted in them, as this mount namespace has it."""

import contextlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from weighbridge.linux.process import output


def is_own_folder(path: Path) -> bool:
    """Whether a path is a folder of this user's, and no link to one."""
    with contextlib.suppress(OSError):
        about = path.lstat()
        return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()
    return False


_UNMOUNT_S = 20.0


@dataclass(frozen=True, slots=True)
class Mounted:
    """A mounted file system: where, and of which type (``ext4``)."""

    at: str
    filesystem: str


def mounted_at(mountinfo: str) -> list[Mounted]:
    """The mounts in a text of /proc/PID/mountinfo (proc_pid_mountinfo(5)), in its order."""
    mounts = []
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        if fields.count(" ") > 4:
            point = re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), fields.split(" ")[4])
            mounts.append(Mounted(point, rest.split(" ")[0]))
    return mounts


def mount_table() -> list[Mounted]:
    """The mounts of this mount namespace, in the order in which they were made."""
    return mounted_at(Path("/proc/self/mountinfo").read_text(errors="replace"))


def mounted_below(folder: Path) -> list[Path]:
    """The mount points at a folder or below it, those inside of another first."""
    points = {Path(each.at) for each in mount_table()}
    return sorted((point for point in points if point == folder or folder in point.parents), reverse=True)


def unmount_below(folder: Path) -> None:
    """Unmount all at or below a folder at once; what is in use goes with its last user (umount(2), MNT_DETACH)."""
    for point in mounted_below(folder):
        output(("umount", "--lazy", "--", str(point)), deadline_s=_UNMOUNT_S)
