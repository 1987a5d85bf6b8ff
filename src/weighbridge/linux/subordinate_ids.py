"""The subordinate user and group ids of users: with them a user can make files of other users (subuid(5))."""

import contextlib
import os
import pwd
from collections.abc import Iterable, Iterator
from pathlib import Path

FILES = (Path("/etc/subuid"), Path("/etc/subgid"))
_FIRST = 100_000
"""Where useradd begins to give ranges (SUB_UID_MIN of login.defs(5)); below are users."""
_COUNT = 65_536


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
    return any(line.split(":")[0] in user() for line in _text(file).splitlines())


def range_command() -> str:
    """What root runs to give this user a range that is nobody's yet."""
    free = first_free(_text(file) for file in FILES)
    ids = f"{free[0]}-{free[-1]}"
    return f"as root: usermod --add-subuids {ids} --add-subgids {ids} {user()[0]}"


def first_free(texts: Iterable[str]) -> range:
    """The first range of 65536 ids from 100000 on that no line ``user:first:count`` of these files overlaps."""
    start = _FIRST
    for first, count in sorted(taken for text in texts for taken in _taken(text)):
        if first < start + _COUNT and start < first + count:
            start = first + count
    return range(start, start + _COUNT)


def _taken(text: str) -> Iterator[tuple[int, int]]:
    for line in text.splitlines():
        with contextlib.suppress(ValueError):  # not a line of subuid(5)
            _, first, count = line.split(":")
            yield int(first), int(count)


def _text(file: Path) -> str:
    with contextlib.suppress(OSError):
        return file.read_text(errors="replace")
    return ""
