"""Locks an open file or folder with flock(2), without waiting."""

import fcntl
from typing import IO


def take(file: int | IO[str]) -> bool:
    """Take the lock, which its last descriptor frees; return False if another descriptor has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
