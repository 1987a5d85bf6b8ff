"""File systems that are mounted on this machine, in this mount namespace."""

import re
from pathlib import Path

from weighbridge.linux.process import output

_UNMOUNT_S = 20.0


def mounted_at(mountinfo: str) -> list[str]:
    """The mount points in a text of /proc/PID/mountinfo (proc_pid_mountinfo(5)), in its order."""
    points = (line.split(" ")[4] for line in mountinfo.splitlines() if line.count(" ") > 4)
    return [re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), point) for point in points]


def mounted_below(folder: Path) -> list[Path]:
    """What is mounted at a folder or below it, what is inside of another first."""
    found = {Path(point) for point in mounted_at(Path("/proc/self/mountinfo").read_text(errors="replace"))}
    return sorted((point for point in found if point == folder or folder in point.parents), reverse=True)


def unmount_below(folder: Path) -> None:
    """Unmount all of it at once; what is still in use goes when its last user does (umount(2), MNT_DETACH)."""
    for point in mounted_below(folder):
        output(("umount", "--lazy", "--", str(point)), deadline_s=_UNMOUNT_S)
