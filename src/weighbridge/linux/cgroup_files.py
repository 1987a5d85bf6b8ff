"""The files of a control group, version 1 and 2: their paths, and the current values that meters read from them."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from weighbridge.linux import counters
from weighbridge.linux.kernel_files import read_here

MOUNT = Path("/sys/fs/cgroup")
BESIDE_VERSION_1 = MOUNT / "unified"
"""The mount of version 2 on machines that mount both versions (hybrid control groups)."""
HIDE_VERSION_2 = f"if [ -e {BESIDE_VERSION_1}/cgroup.controllers ]; then umount -l {BESIDE_VERSION_1}; fi"
"""A shell command for the mount namespace of an engine that a run starts, because crun refuses hybrid control groups.

All runtimes then use version 1, like the engine.
"""
TOP = "weighbridge"
IDLE = "weighbridge-idle"
"""The name of a sibling group, whose processes only get CPU time that no other process wants."""
ITSELF = "weighbridge-itself"
"""The name of a sibling group for the process of a user's run: a group with controllers for its children has none."""
V1_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "freezer", "pids", "blkio")
NETWORK, PROCESSES = "net", "processes"
"""Labels of a site's files, in addition to the names of its control group's files."""


_NO_MEMORY_LIMIT = 2**62
"""The value from which memory is unlimited: version 1 reports nearly 2^63."""


def version(mount: Path = MOUNT) -> int:
    """Return 2 for the unified hierarchy, 1 for separate (or hybrid) ones, 0 if there are none."""
    if (mount / "cgroup.controllers").exists():
        return 2
    return 1 if (mount / "cpu").is_dir() else 0


def bases(mount: Path = MOUNT) -> dict[str, Path]:
    """Return the hierarchies to use: controller -> its mount (version 1), or "" -> the one tree (version 2)."""
    if version(mount) == 2:
        return {"": mount}
    return {name: mount / name for name in V1_CONTROLLERS if (mount / name).is_dir()}


def read_meters(cgroup_version: int, path_of: Callable[[str], Path]) -> dict[str, float]:
    """Return counters from the files of a group, without unreadable ones; ``path_of`` returns a controller's folder.

    ``cpu_s`` and ``throttled_s`` are seconds since the group was made, ``throttled_periods`` the number of throttled
    periods.
    """

    def text(controller: str, name: str) -> str:
        with contextlib.suppress(OSError, ValueError):
            return read_here(f"{path_of(controller)}/{name}").decode()
        return ""

    one = cgroup_version == 1
    cpu_stat = text("cpu", "cpu.stat")
    cpu, periods = counters.cpu_stat(cpu_stat).counters, counters.throttled_periods(cpu_stat)
    if one:
        cpu |= counters.cpuacct(text("cpuacct", "cpuacct.usage")).counters
    memory = counters.memory_now(text("memory", "memory.usage_in_bytes" if one else "memory.current")).levels
    events = counters.memory_events(text("memory", "memory.oom_control" if one else "memory.events")).counters
    if not one and "cpu_share" in cpu:
        cpu = {"throttled_share": 0.0, **cpu}  # no controller, no limit
    seconds = {"cpu_s": "cpu_share", "throttled_s": "throttled_share"}
    return {name: cpu[key] for name, key in seconds.items() if key in cpu} | {**periods, **memory, **events}


SCOPE_V1 = {
    "cpuacct.usage": "cpuacct",
    "cpu.stat": "cpu",
    "memory.usage_in_bytes": "memory",
    "memory.stat": "memory",
    "pids.current": "pids",
    "cgroup.procs": "cpu",
}
SCOPE_V2 = ("cpu.stat", "memory.current", "memory.stat", "pids.current", "cgroup.procs")


def scope_files(cgroup_version: int, path_of: Callable[[str], Path]) -> dict[str, str]:
    """Return the files of a group that a meter reads, by label (the file's name), including missing ones.

    ``path_of`` returns the folder of a controller, as for `read_meters`.
    """
    files = SCOPE_V1.items() if cgroup_version == 1 else ((name, name.partition(".")[0]) for name in SCOPE_V2)
    return {name: f"{path_of(controller)}/{name}" for name, controller in files}


@functools.lru_cache
def folders_of(proc_cgroup: str, mount: Path = MOUNT) -> Callable[[str], Path]:
    """From the text of a process's /proc/PID/cgroup: the folder of its group for each controller.

    A controller that it does not name (the process has ended) gives a folder that does not exist.
    """
    groups: dict[str, str] = {}
    for line in proc_cgroup.splitlines():
        _, names, path = line.split(":", 2)
        groups.update(dict.fromkeys(names.split(","), path))
    unified, base = version(mount) == 2, bases(mount)

    def folder(controller: str) -> Path:
        name = "" if unified else controller
        return base[name] / groups[name].lstrip("/") if name in groups and name in base else Path("/nonexistent")

    return folder


def meters_of(read: Callable[[str], bytes], pid: int) -> dict[str, float]:
    """Return the counters of a process's group, empty if the process has ended; ``read`` reads a host's file."""
    with contextlib.suppress(OSError):
        return read_meters(version(), folders_of(read(f"/proc/{pid}/cgroup").decode()))
    return {}


def scope_of(read: Callable[[str], bytes], pid: int) -> dict[str, str]:
    """Return the files of a process's group and network, by label, for meters; empty if it has ended."""
    with contextlib.suppress(OSError):
        folder = folders_of(read(f"/proc/{pid}/cgroup").decode())
        return {**scope_files(version(), folder), **network_of(pid)}
    return {}


def process_limit(read: Callable[[str], bytes], pid: int, mount: Path = MOUNT) -> int | None:
    """Return the lowest pids.max of a process's group and its ancestors; None without a limit.

    Raises OSError if it is unknown: the process has ended, or no group counts processes.
    """
    limits = []
    for group in _groups_of(read, pid, "pids", mount):
        with contextlib.suppress(FileNotFoundError):  # missing at the top, and without the controller
            limits.append(read(f"{group}/pids.max").decode().strip())
    return min((int(limit) for limit in limits if limit.isdecimal()), default=None)


def outermost_group(read: Callable[[str], bytes], pid: int, mount: Path = MOUNT) -> str:
    """Return the outermost control group of a process, with which it competes for CPUs: ``system.slice``.

    Returns "/" if it is in none. Raises OSError if it is unknown.
    """
    return next((group.name for group in [*_groups_of(read, pid, "cpu", mount)][-2:-1]), "/")


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """The lowest limits of a process's groups: CPUs, the seconds of their period, bytes; None without a limit."""

    cpus: float | None = None
    period_s: float = 0.0
    memory: int | None = None

    @property
    def cpu_words(self) -> str:
        """Return the limit of CPU time in words: "1 CPU, in each 100 ms"."""
        return "none" if self.cpus is None else f"{self.cpus:g} CPU, in each {1000 * self.period_s:g} ms"

    @property
    def memory_words(self) -> str:
        """Return the limit of memory in words: "256 MiB"."""
        return "none" if self.memory is None or self.memory >= _NO_MEMORY_LIMIT else f"{self.memory / 2**20:g} MiB"


def limits_in_force(read: Callable[[str], bytes], pid: int, mount: Path = MOUNT) -> GroupLimits:
    """Return the limits of a process, from its group and all ancestors. Raises OSError if they are unknown."""
    return _least_limits(read, pid, mount, lambda groups: groups)


def _least_limits(
    read: Callable[[str], bytes], pid: int, mount: Path, choose: Callable[[list[Path]], list[Path]]
) -> GroupLimits:
    """Return the lowest limits of the groups that ``choose`` selects, from a list with the innermost first."""
    quotas, memory = [], []
    for group in choose([*_groups_of(read, pid, "cpu", mount)]):
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            quota, period = _quota(read, group, mount)
            quotas += [(quota / period, period / 1e6)] if quota > 0 else []
    for group in choose([*_groups_of(read, pid, "memory", mount)]):
        with contextlib.suppress(OSError, ValueError):
            memory += [_memory_limit(read, group, mount)]
    cpus, period_s = min(quotas, default=(None, 0.0))
    return GroupLimits(cpus, period_s, min((each for each in memory if each < _NO_MEMORY_LIMIT), default=None))


def _quota(read: Callable[[str], bytes], group: Path, mount: Path) -> tuple[int, int]:
    """Return a group's microseconds of CPU time per period, and the period. Raises OSError or ValueError."""
    if version(mount) == 2:
        quota, period = read(f"{group}/cpu.max").split()
    else:
        quota, period = (read(f"{group}/cpu.cfs_{name}_us") for name in ("quota", "period"))
    return int(quota), int(period)


def _memory_limit(read: Callable[[str], bytes], group: Path, mount: Path) -> int:
    """Return a group's limit of memory in bytes. Raises OSError or ValueError."""
    return int(read(f"{group}/{'memory.max' if version(mount) == 2 else 'memory.limit_in_bytes'}"))


def limits_above(read: Callable[[str], bytes], pid: int, mount: Path = MOUNT) -> tuple[float | None, int | None]:
    """Return the CPUs and bytes that the groups above a site's own group allow it; None without a limit.

    The site's own groups belong to a run, or are an engine's scope of a container. Raises OSError if unknown.
    """
    limits = _least_limits(read, pid, mount, _above_site)
    return limits.cpus, limits.memory


def _above_site(groups: list[Path]) -> list[Path]:
    """Return the groups above all groups of a process's site, from a list with the innermost first."""
    names = [group.name for group in groups]
    if TOP in names:
        return groups[names.index(TOP) + 1 :]
    scopes = [number for number, name in enumerate(names) if name.endswith(".scope")]
    return groups[scopes[0] + 1 if scopes else 1 :]


def _groups_of(read: Callable[[str], bytes], pid: int, controller: str, mount: Path) -> Iterator[Path]:
    """Yield the group of a process and its ancestors, the top last. Raises OSError if it has ended, or has none."""
    folder = folders_of(read(f"/proc/{pid}/cgroup").decode(), mount)(controller)
    base = bases(mount).get("" if version(mount) == 2 else controller)
    if base is None or not folder.is_relative_to(base):
        raise FileNotFoundError(f"no control group of {controller} contains process {pid}")
    for group in (folder, *folder.parents):
        yield group
        if group == base:
            return


def network_of(pid: int) -> dict[str, str]:
    """Return the file of a process's network interfaces, for a site with its own network namespace."""
    return {NETWORK: f"/proc/{pid}/net/dev"}


def processes_of(pid: int) -> dict[str, str]:
    """Return the file for all processes in the mount namespace of ``pid``, for a native site without a group."""
    return {PROCESSES: f"/proc/{pid}/ns/mnt"}
