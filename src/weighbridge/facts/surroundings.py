"""What a site has around its programs: the size of its folders in memory, limits of its processes, sysctls."""

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
    """Return as facts what each of `MEMORY_FOLDERS` holds, and where the site has its host's kernel its ulimits.

    What is unreadable is omitted. A kernel of its own has limits of its own, which are part of its environment.
    """
    facts = {fact: size for path, fact in MEMORY_FOLDERS.items() if (size := room_of(site, path))}
    limits = ulimits(_read(site, "/proc/self/limits"))
    return facts | limits if limits and site.layers == site.host.layers else facts


def room_of(site: Site, path: str) -> str:
    """Return what a folder of a site's holds ("64 MiB"), "on TYPE" where it is not in memory; "" where not known."""
    line = _mount_of(_read(site, "/proc/self/mountinfo"), path)
    kind, _, options = line.partition(" - ")[2].partition(" ")
    if kind != "tmpfs":
        return f"on {kind}" if kind else ""
    if (size := _SIZE.search(options)) is not None:
        return mib(int(size[1]) << 10) if int(size[1]) else "no limit"
    total_kib = memory_kib(_read(site, MEMINFO)).get("MemTotal")
    return mib(total_kib << 9) if total_kib else ""  # half of it, which the kernel does not write (tmpfs(5))


def ulimits(limits: str) -> dict[str, str]:
    """Return the limits in a text of /proc/PID/limits as facts, but for that of open files, which is one already.

    The value is the soft limit, and the hard one where that differs.
    """
    return {
        f"{ULIMIT}: {name}": soft if soft == hard else f"{soft}, at most {hard}"
        for name, soft, hard in _ULIMIT.findall(limits)
        if name != _OF_FILES
    }


def about_sysctls(site: Site, names: Iterable[str]) -> dict[str, str]:
    """Return settings of the kernel as a site sees them, as facts; unreadable ones are omitted."""
    values = {name: " ".join(_read(site, f"/proc/sys/{name.replace('.', '/')}").split()) for name in names}
    return {f"{SYSCTL} {name}": value for name, value in values.items() if value}


def about_variables(site: Site, names: Collection[str]) -> dict[str, str]:
    """Return as a fact which of these variables a site's launcher has, with their values; "none": none of them."""
    variables = (each.partition("=") for each in _read(site, "/proc/self/environ").split("\0"))
    told = sorted(f"{name}={value}" for name, _, value in variables if name in names)
    return {VARIABLES: ", ".join(told) or "none"}


def _mount_of(mountinfo: str, path: str) -> str:
    """Return the line of the mount that has ``path``: the latest of those nearest to it."""
    best, depth = "", -1
    for line in mountinfo.splitlines():
        fields = line.partition(" - ")[0].split(" ")
        at = fields[4].rstrip("/") if len(fields) > 4 else "-"
        if f"{path}/".startswith(f"{at}/") and len(at) >= depth:
            best, depth = line, len(at)
    return best


def _read(site: Site, path: str) -> str:
    try:
        return site.read(path).decode(errors="replace")
    except OSError:
        return ""
