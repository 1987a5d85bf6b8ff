"""The files that a meter reads, and their labels. A label is "PLACE/WHAT"; the place is "host NAME" or a role."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weighbridge.model.sampling import SampledFile

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
"""The files of the host as its own processes see it: /proc/net is that of its network namespace."""

MOST = {"stat": 256, "meminfo": 1536}
"""Sufficient bytes: the line of all CPUs is the first, and the used part of meminfo is above its middle."""

SLOW = frozenset({
    "diskstats", "loadavg", "pressure.cpu", "pressure.memory", "pressure.io",
    "memory.usage_in_bytes", "memory.current", "pids.current", "cgroup.procs",
})  # fmt: skip
"""Files that are read at most once per second: all except CPU time, network, and the memory with peaks."""


def host_place(name: str) -> str:
    """Return the place of a host's own series."""
    return f"host {name}"


ENOUGH = 1 << 20
"""The limit of bytes for any other file."""


@dataclass(frozen=True, slots=True)
class Order:
    """An order for a sampler: files by label, limits of bytes for some of them, and which ones are slow."""

    files: Mapping[str, str]
    most: Mapping[str, int]
    slow: Sequence[str]

    @classmethod
    def of(cls, sites: Mapping[str, Mapping[str, str]], host: str = "") -> "Order":
        """Return the order for sites (each role's ``Site.scope()``) and a host; "" means only sites."""
        place = host_place(host)
        files = {f"{place}/{what}": path for what, path in HOST_FILES.items()} if host else {}
        files |= {f"{role}/{what}": path for role, scope in sites.items() for what, path in scope.items()}
        slow = [label for label in files if label.partition("/")[2] in SLOW]
        # in version 1, a group's cpu.stat only has its throttling
        slow += [f"{role}/cpu.stat" for role, scope in sites.items() if {"cpu.stat", "cpuacct.usage"} <= scope.keys()]
        return cls(files, {f"{place}/{what}": most for what, most in MOST.items()} if host else {}, slow)

    @property
    def sampled(self) -> list[SampledFile]:
        """Return the files, in order, for a `weighbridge.model.sampling.Sampler`."""
        return [
            SampledFile(path, self.most.get(label, ENOUGH), label in self.slow) for label, path in self.files.items()
        ]
