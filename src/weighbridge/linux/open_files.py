"""Checks that this user's processes can have as many open files as a study gives them."""

from pathlib import Path

from weighbridge.linux.confinement import status_field
from weighbridge.linux.process import most_open_files
from weighbridge.model.plugin import Readiness

_CAP_SYS_RESOURCE = 24


def too_many_open_files(wanted: int | None) -> Readiness | None:
    """Return why processes of this user cannot have ``wanted`` open files; None if they can."""
    if wanted is None:
        return None
    there_can_be = int(Path("/proc/sys/fs/nr_open").read_text())
    if wanted > there_can_be:
        reason = f"open_files: the kernel limits a process to {there_can_be:,} open files"
        return Readiness(False, reason, f"use at most that number, or raise the limit (sysctl fs.nr_open={wanted})")
    capabilities = int(status_field(Path("/proc/self/status").read_text(), "CapEff") or "0", 16)
    if wanted <= (most := most_open_files()) or capabilities >> _CAP_SYS_RESOURCE & 1:
        return None
    return Readiness(
        False, f"open_files: this user can open at most {most:,} files", "use at most that number, or run as root"
    )
