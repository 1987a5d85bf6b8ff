"""Which files a meter reads, under which labels. A label is "PLACE/WHAT"; the place is "host NAME" or a role."""

from collections.abc import Mapping

HOST_FILES = {
    "stat": "/proc/stat",
    "meminfo": "/proc/meminfo",
    "net": "/proc/net/dev",
    "diskstats": "/proc/diskstats",
    "loadavg": "/proc/loadavg",
    "pressure.cpu": "/proc/pressure/cpu",
    "pressure.memory": "/proc/pressure/memory",
    "pressure.io": "/proc/pressure/io",
}
"""Of the host as its own processes see it: /proc/net is that of its network namespace."""

MOST = {"stat": 256, "meminfo": 1536}
"""Bytes that are enough: the line of all CPUs is the first, and what is used of meminfo is above its middle."""

SLOW = frozenset({
    "diskstats", "loadavg", "pressure.cpu", "pressure.memory", "pressure.io",
    "memory.usage_in_bytes", "memory.current", "pids.current", "cgroup.procs",
})  # fmt: skip
"""What is read once a second at most: all but CPU time, network, and the memory that peaks are taken of."""


def host_place(name: str) -> str:
    """The place of a host's own series."""
    return f"host {name}"


def order(host: str, sites: Mapping[str, Mapping[str, str]]) -> dict[str, object]:
    """What a sampler is to read on a host: files by label, how much of some of them, and which ones slowly."""
    place = host_place(host)
    files = {f"{place}/{what}": path for what, path in HOST_FILES.items()}
    files |= {f"{role}/{what}": path for role, scope in sites.items() for what, path in scope.items()}
    slow = [label for label in files if label.partition("/")[2] in SLOW]
    # in version 1 a group's cpu.stat has its throttling alone
    slow += [f"{role}/cpu.stat" for role, scope in sites.items() if {"cpu.stat", "cpuacct.usage"} <= scope.keys()]
    return {"files": files, "most": {f"{place}/{what}": most for what, most in MOST.items()}, "slow": slow}
