"""Who may not open a file can still see that it is locked: /proc/locks lists every flock(2) for everybody."""

import os
from pathlib import Path

_LOCKS = Path("/proc/locks")


def is_locked(status: os.stat_result, locks: Path = _LOCKS) -> bool | None:
    """Return whether somebody holds an exclusive flock(2) on a file or folder; None: the kernel does not tell."""
    wanted = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = locks.read_text().splitlines()
    except OSError:
        return None
    # 1: FLOCK  ADVISORY  WRITE 708 00:13:16809 0 EOF; "->" stands behind the number of one that waits
    return any(words[1:2] == ["FLOCK"] and words[3:6:2] == ["WRITE", wanted] for words in map(str.split, lines))
