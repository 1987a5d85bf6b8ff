"""Whether this user has subordinate user and group ids: with them files of other users can be made (subuid(5))."""

import contextlib
import os
import pwd
from pathlib import Path

FILES = (Path("/etc/subuid"), Path("/etc/subgid"))


def user() -> tuple[str, str]:
    """The name, or what serves as one, and the number of this user."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name, str(number)
    except KeyError:
        return str(number), str(number)


def has_ranges() -> bool:
    """Whether both files (lines ``user:first:count``) give this user a range."""
    return all(_has_range(file) for file in FILES)


def _has_range(file: Path) -> bool:
    with contextlib.suppress(OSError):
        return any(line.split(":")[0] in user() for line in file.read_text().splitlines())
    return False
