"""Checks locks of files that this user cannot open: /proc/locks lists every flock(2) to every user."""

import os
from pathlib import Path

_LOCKS = Path("/proc/locks")
_OWN_NUMBERS = Path("/proc/self/ns/pid")
_OF_THE_MACHINE = 0xEFFFFFFC
"""The inode of the first PID namespace (PROC_PID_INIT_INO); in others, /proc/locks hides locks."""


def is_locked(status: os.stat_result, locks: Path = _LOCKS) -> bool | None:
    """Return whether a process holds an exclusive flock(2) on a file or folder; None if the kernel hides it.

    The kernel shows processes that have a number in this process's namespace.
    """
    wanted = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = locks.read_text().splitlines()
    except OSError:
        return None
    # 1: FLOCK  ADVISORY  WRITE 708 00:13:16809 0 EOF; "->" follows the number for a waiting process
    if any(words[1:2] == ["FLOCK"] and words[3:6:2] == ["WRITE", wanted] for words in map(str.split, lines)):
        return True
    return False if _sees_everybody() else None


def _sees_everybody() -> bool:
    try:
        return _OWN_NUMBERS.stat().st_ino == _OF_THE_MACHINE
    except OSError:
        return False
