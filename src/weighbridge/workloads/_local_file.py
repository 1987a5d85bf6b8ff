"""Reads a file of this machine that a study names and that is written into sites. It is not a plug-in."""

import os
import stat
from pathlib import Path

LARGEST = 64 * 2**20
"""The largest size in bytes. The file is in the memory of a site, and is written there before each trial."""


def check_local(path: str, what: str) -> None:
    """Raise the ValueError of `read_local`, without opening the file.

    A study is checked before the user agrees to it, and opening a file can have effects.
    """
    _read(path, what, opened=False)


def read_local(path: str, what: str) -> bytes:
    """Return the content of a file. The ValueError says in one sentence why the file cannot be used.

    The user who runs this, perhaps root, can read more files than the author of the study and the users who can see
    the file. So it must be readable by everyone.
    """
    return _read(path, what, opened=True)


def _read(path: str, what: str, *, opened: bool) -> bytes:
    try:
        why = _problem_of(Path(path).stat())  # before it is opened: a device acts on that, a pipe waits
        if why is None and not opened:
            return b""
        if why is None:
            with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
                why = _problem_of(os.fstat(file.fileno()))  # what was opened may be another file by now
                if why is None:
                    return file.read()
    except FileNotFoundError:
        why = "does not exist"
    except (OSError, ValueError) as error:
        why = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    raise ValueError(f"the {what} '{path:.200}' {why}")


def is_program(path: str) -> bool:
    """Return whether its owner can execute it. A missing file is not a program."""
    try:
        return bool(Path(path).stat().st_mode & stat.S_IXUSR)
    except OSError:
        return False


def _problem_of(file: os.stat_result) -> str | None:
    if not stat.S_ISREG(file.st_mode):
        return "is not a file"
    if not file.st_mode & stat.S_IROTH:
        return "is not world-readable, but would be served to everyone: chmod o+r it, or use another file"
    if not 0 < file.st_size <= LARGEST:
        return f"has {file.st_size} bytes: use a file of 1 byte to {LARGEST // 2**20} MiB"
    return None
