"""Folders on this machine: whose they are, and what is mounted in them, as this mount namespace has it."""

import contextlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from weighbridge.linux.process import output


def is_own_folder(path: Path) -> bool:
    """Whether it is a folder of this user's, and no link to one."""
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
    """What a text of /proc/PID/mountinfo has (proc_pid_mountinfo(5)), in its order."""
    found = []
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        if fields.count(" ") > 4:
            point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields.split(" ")[4])
            found.append(Mounted(point, rest.split(" ")[0]))
    return found


def mount_table() -> list[Mounted]:
    """What is mounted in this mount namespace, in the order in which it was."""
    return mounted_at(Path("/proc/self/mountinfo").read_text(errors="replace"))


def mounted_below(folder: Path) -> list[Path]:
    """What is mounted at a folder or below it, what is inside of another first."""
    found = {Path(each.at) for each in mount_table()}
    return sorted((point for point in found if point == folder or folder in point.parents), reverse=True)


def unmount_below(folder: Path) -> None:
    """Unmount all of it at once; what is still in use goes when its last user does (umount(2), MNT_DETACH)."""
    for point in mounted_below(folder):
        output(("umount", "--lazy", "--", str(point)), deadline_s=_UNMOUNT_S)
