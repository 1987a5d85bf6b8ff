"""The namespaces of a process, by their numbers (namespaces(7))."""

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

_KINDS = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")
_LINK = re.compile(r"[a-z]+:\[(\d+)\]")


def namespaces_in(link: Callable[[str], str]) -> dict[str, int]:
    """Return the number of each namespace by its kind (``net``), without unreadable ones.

    ``link`` returns the text of a link in a process's folder ``ns`` ("net:[4026531840]"), or raises OSError.
    """
    numbers = {}
    for kind in _KINDS:
        with contextlib.suppress(OSError):
            if match := _LINK.fullmatch(link(kind)):
                numbers[kind] = int(match[1])
    return numbers


def namespaces_of(process: Path) -> dict[str, int]:
    """Return the namespaces of a process, given its folder in /proc."""
    return namespaces_in(lambda kind: str((process / "ns" / kind).readlink()))
