"""Whose a folder is that stands where others can write, too (/tmp, /var/tmp, /dev/shm)."""

import contextlib
import os
import stat
from pathlib import Path


def is_own_folder(path: Path) -> bool:
    """Whether it is a folder of this user's, and no link to one."""
    with contextlib.suppress(OSError):
        about = path.lstat()
        return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()
    return False
