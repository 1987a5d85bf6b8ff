"""The files that a meter reads, by label. A label is "PLACE/WHAT", and the place is "host NAME" or a role."""

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
"""The files of a host, read by its own processes, so that /proc/net belongs to its network namespace."""

MOST = {"stat": 256, "meminfo": 1536}
"""The number of bytes to read. All CPUs are in the first line, and the used lines of meminfo in its first half."""

SLOW = frozenset({
    "diskstats", "loadavg", "pressure.cpu", "pressure.memory", "pressure.io",
    "memory.usage_in_bytes", "memory.current", "pids.current", "cgroup.procs",
})  # fmt: skip
"""Files that are read at most once a second: all but CPU time, network, and memory whose peak is reported."""


def host_place(name: str) -> str:
    """Return the place of a host's own series."""
    return f"host {name}"


ENOUGH = 1 << 20
"""The number of bytes to read of any other file."""


@dataclass(frozen=True, slots=True)
class Order:
    """The order to a sampler: files by label, limits of bytes, and the files to read slowly."""

    files: Mapping[str, str]
    most: Mapping[str, int]
    slow: Sequence[str]

    @classmethod
    def of(cls, sites: Mapping[str, Mapping[str, str]], host: str = "") -> "Order":
        """Return the order for sites (``Site.scope()`` by role) and a host. Without a host, it is for sites only."""
        place = host_place(host)
        files = {f"{place}/{what}": path for what, path in HOST_FILES.items()} if host else {}
        files |= {f"{role}/{what}": path for role, scope in sites.items() for what, path in scope.items()}
        slow = [label for label in files if label.partition("/")[2] in SLOW]
        # in version 1 a group's cpu.stat has its throttling alone
        slow += [f"{role}/cpu.stat" for role, scope in sites.items() if {"cpu.stat", "cpuacct.usage"} <= scope.keys()]
        return cls(files, {f"{place}/{what}": most for what, most in MOST.items()} if host else {}, slow)

    @property
    def sampled(self) -> list[SampledFile]:
        """Return the files in order, for a `weighbridge.model.sampling.Sampler`."""
        return [
            SampledFile(path, self.most.get(label, ENOUGH), label in self.slow) for label, path in self.files.items()
        ]
