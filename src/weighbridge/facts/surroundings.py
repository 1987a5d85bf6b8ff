"""The surroundings of a site's programs: the size of folders in memory, limits of processes, sysctls."""

import re
from collections.abc import Collection, Iterable

from weighbridge.linux.counters import memory_kib
from weighbridge.linux.memory_room import MEMINFO, mib
from weighbridge.model.facts import MEMORY_FOLDERS, SYSCTL, ULIMIT, VARIABLES
from weighbridge.model.site import Site

_SIZE = re.compile(r"\bsize=(\d{1,15})k\b")
_ULIMIT = re.compile(r"^Max (.{1,25}?) {2,}(\S+) +(\S+)", re.MULTILINE)
"""A line of /proc/PID/limits (proc_pid_limits(5))."""
_OF_FILES = "open files"


def about_surroundings(site: Site) -> dict[str, str]:
    """Return the size of each of `MEMORY_FOLDERS`, and the ulimits if the site has its host's kernel, as facts.

    Unreadable values are omitted. Another kernel has its own limits, which are part of the environment.
    """
    facts = {fact: size for path, fact in MEMORY_FOLDERS.items() if (size := room_of(site, path))}
    limits = ulimits(_read(site, "/proc/self/limits"))
    return facts | limits if limits and site.layers == site.host.layers else facts


def room_of(site: Site, path: str) -> str:
    """Return the size of a site's folder ("64 MiB"), "on TYPE" if it is not in memory, "" if unknown."""
    line = _mount_of(_read(site, "/proc/self/mountinfo"), path)
    kind, _, options = line.partition(" - ")[2].partition(" ")
    if kind != "tmpfs":
        return f"on {kind}" if kind else ""
    if (size := _SIZE.search(options)) is not None:
        return mib(int(size[1]) << 10) if int(size[1]) else "no limit"
    total_kib = memory_kib(_read(site, MEMINFO)).get("MemTotal")
    return mib(total_kib << 9) if total_kib else ""  # the default is half of it (tmpfs(5))


def ulimits(limits: str) -> dict[str, str]:
    """Return the limits in a text of /proc/PID/limits as facts, except open files, which is a separate fact.

    The value is the soft limit, followed by the hard one if it differs.
    """
    return {
        f"{ULIMIT}: {name}": soft if soft == hard else f"{soft}, at most {hard}"
        for name, soft, hard in _ULIMIT.findall(limits)
        if name != _OF_FILES
    }


def about_sysctls(site: Site, names: Iterable[str]) -> dict[str, str]:
    """Return kernel settings as a site sees them, as facts, without unreadable ones."""
    values = {name: " ".join(_read(site, f"/proc/sys/{name.replace('.', '/')}").split()) for name in names}
    return {f"{SYSCTL} {name}": value for name, value in values.items() if value}


def about_variables(site: Site, names: Collection[str]) -> dict[str, str]:
    """Return as a fact the given variables of a site's launcher with their values, or "none"."""
    variables = (each.partition("=") for each in _read(site, "/proc/self/environ").split("\0"))
    present = sorted(f"{name}={value}" for name, _, value in variables if name in names)
    return {VARIABLES: ", ".join(present) or "none"}


def _mount_of(mountinfo: str, path: str) -> str:
    """Return the line of the mount that contains ``path``: the deepest, and of several the last."""
    best, depth = "", -1
    for line in mountinfo.splitlines():
        fields = line.partition(" - ")[0].split(" ")
        point = fields[4].rstrip("/") if len(fields) > 4 else "-"
        if f"{path}/".startswith(f"{point}/") and len(point) >= depth:
            best, depth = line, len(point)
    return best


def _read(site: Site, path: str) -> str:
    try:
        return site.read(path).decode(errors="replace")
    except OSError:
        return ""
