"""Which files a meter reads, under which labels. A label is "PLACE/WHAT"; the place is "host NAME" or a role."""

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


ENOUGH = 1 << 20
"""Bytes of any other file."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a sampler is to read: files by label, how much of some of them, and which ones slowly."""

    files: Mapping[str, str]
    most: Mapping[str, int]
    slow: Sequence[str]

    @classmethod
    def of(cls, sites: Mapping[str, Mapping[str, str]], host: str = "") -> "Order":
        """Return the order for sites (each role's ``Site.scope()``) and a host; "": for sites alone."""
        place = host_place(host)
        files = {f"{place}/{what}": path for what, path in HOST_FILES.items()} if host else {}
        files |= {f"{role}/{what}": path for role, scope in sites.items() for what, path in scope.items()}
        slow = [label for label in files if label.partition("/")[2] in SLOW]
        # in version 1 a group's cpu.stat has its throttling alone
        slow += [f"{role}/cpu.stat" for role, scope in sites.items() if {"cpu.stat", "cpuacct.usage"} <= scope.keys()]
        return cls(files, {f"{place}/{what}": most for what, most in MOST.items()} if host else {}, slow)

    @property
    def sampled(self) -> list[SampledFile]:
        """The files, in order, for a `weighbridge.model.sampling.Sampler`."""
        return [
            SampledFile(path, self.most.get(label, ENOUGH), label in self.slow) for label, path in self.files.items()
        ]
