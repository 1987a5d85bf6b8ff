"""Reads the use of machines between two moments: CPU time of all programs, interrupts, TCP's retransmits.

The CPU time is the complement of the idle time, and not the sum of the kinds in /proc/stat. A kernel without
VIRT_CPU_ACCOUNTING charges each tick to the task that is running at that moment, which was seen to be wrong by 14%
in two seconds. Idle time is measured exactly, also with interrupts in between (kernel/time/tick-sched.c). Both have a
resolution of a hundredth of a second. The share of softirq is one of the charged kinds, and as inexact as they are.
"""

import contextlib
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from weighbridge.linux.counters import snmp
from weighbridge.linux.kernel_files import read_here
from weighbridge.meters.host import stat
from weighbridge.model.host import HERE, Host
from weighbridge.model.site import Site

RESOLUTION_S = 3 / os.sysconf("SC_CLK_TCK")
"""The largest error of a CPU time in seconds. It consists of three counters, each cut to a tick at both ends."""

Read = Callable[[str], bytes]
"""Reads a file of a machine by its path. Raises OSError."""


def reader_of(host: Host, local_reader: Read = read_here) -> Read:
    """Return the function that reads the files of a host's machine. ``local_reader`` reads files of this machine."""
    return local_reader if host.machine == HERE else host.read


@dataclass(frozen=True, slots=True)
class Use:
    """The use of a machine in ``seconds``: CPU seconds and context switches of all CPUs.

    ``ticks_s`` is ``busy_s`` by the kernel's ticks, like ``softirq_s``. ``stolen`` is the hypervisor's share.
    """

    seconds: float
    busy_s: float
    softirq_s: float
    context_switches: float
    ticks_s: float = 0.0
    stolen: float = 0.0


@dataclass(frozen=True, slots=True)
class Idle:
    """The idle level of a machine, while no site runs: CPUs busy, context switches per second."""

    busy_cpus: float
    switches_per_s: float


def counters_of(read: Read) -> dict[str, float]:
    """Return a machine's counters (`weighbridge.meters.host.stat`), or none if they cannot be read.

    ``at_s`` is their time by `time.monotonic` on this machine, in the middle of the reading.
    """
    start = time.monotonic()
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = read("/proc/stat").decode()
        return {"at_s": (start + time.monotonic()) / 2, **stat(text)}
    return {}


def use(before: Mapping[str, float], after: Mapping[str, float]) -> Use | None:
    """Return a machine's use between two readings (`counters_of`), or None if one is missing or the CPUs changed."""
    if "at_s" not in before or "at_s" not in after or before["cpus"] != after["cpus"]:
        return None
    grown = {name: value - before.get(name, value) for name, value in after.items()}
    if (seconds := grown["at_s"]) <= 0:
        return None
    busy_s = after["cpus"] * seconds - grown["unused_s"] - grown["steal_s"]
    stolen = max(0.0, grown["steal_s"]) / (after["cpus"] * seconds)
    return Use(
        seconds, busy_s, grown["softirq_s"], grown.get("context_switches", 0.0), grown.get("busy_s", 0.0), stolen
    )


def idle(machine_use: Use) -> Idle:
    """Return the idle level from one reading of a machine. It can be below 0 within the error of the counters."""
    return Idle(machine_use.busy_s / machine_use.seconds, machine_use.context_switches / machine_use.seconds)


FIRST_S, AGAIN_S = 1.0, 0.5
"""Seconds that the first reading of idle machines takes, and each later reading."""
BETWEEN_S = 100 * AGAIN_S
"""Least seconds between two readings of idle machines, so that these take at most one percent of a run."""
LOOKS = 5
"""The number of last readings that give the idle level."""


@dataclass(slots=True)
class IdleLevels:
    """Reads the idle level of each machine while all sites are frozen, before the first trial and later."""

    readers: Mapping[str, Read]
    keep: Callable[[Mapping[str, str]], None] = lambda _: None
    """Receives each reading as facts: "MACHINE: CPUs busy" and "MACHINE: context switches per second"."""
    _looks: dict[str, deque[Idle]] = field(default_factory=dict)
    _looked_at: float = -math.inf

    @property
    def levels(self) -> dict[str, Idle]:
        """Return the median of the last readings of each machine, because one reading is only exact to 10 ms."""
        return {
            name: Idle(median(each.busy_cpus for each in looks), median(each.switches_per_s for each in looks))
            for name, looks in self._looks.items()
        }

    @property
    def due(self) -> bool:
        """Return whether another reading is due."""
        return time.monotonic() - self._looked_at >= BETWEEN_S

    def look(self) -> None:
        """Read all machines at the same time. All sites must be frozen."""
        before = {name: counters_of(read) for name, read in self.readers.items()}
        time.sleep(AGAIN_S if self._looks else FIRST_S)
        for name, read in self.readers.items():
            if (used := use(before[name], counters_of(read))) is not None:
                if used.busy_s < -RESOLUTION_S:  # the hypervisor took part of it, so this reading is useless
                    continue
                level = idle(used)
                self._looks.setdefault(name, deque(maxlen=LOOKS)).append(level)
                self.keep(
                    {
                        f"{name}: CPUs busy": f"{level.busy_cpus:.4f}",
                        f"{name}: context switches per second": f"{level.switches_per_s:.0f}",
                    }
                )
        self._looked_at = time.monotonic()


Networks = Mapping[tuple[str, str], tuple[Read, str]]


def networks_of(sites: Iterable[Site]) -> Networks:
    """Return the counters of each network namespace of the sites and of their hosts (where docker-proxy is)."""
    files: dict[tuple[str, str], tuple[Read, str]] = {}
    for site in sites:
        owner, counters = site.host.network
        files[owner, counters] = site.host.read, _snmp(counters)
        if (own := site.scope().get("net")) is not None:
            read, reader = (site.read, f"site {site.name}") if site.sampler else (site.host.read, owner)
            files[reader, own] = read, _snmp(own)
    return files


def _snmp(counters: str) -> str:
    return f"{counters.rpartition('/')[0]}/snmp"


def tcp(text: str) -> dict[str, float]:
    """Return TCP's ``sent_segments`` and ``resent_segments`` from the text of a /proc/PID/net/snmp.

    Raises ValueError for any other text.
    """
    counters = snmp(text, "Tcp")
    try:
        return {"sent_segments": float(counters["OutSegs"]), "resent_segments": float(counters["RetransSegs"])}
    except KeyError as missing:
        raise ValueError(f"no counter {missing}") from missing


def tcp_total(networks: Networks) -> dict[str, float]:
    """Return TCP's counters, added up over network namespaces, or none if one is unreadable."""
    total = {"sent_segments": 0.0, "resent_segments": 0.0}
    try:
        for read, path in networks.values():
            one = tcp(read(path).decode())
            total = {name: value + one[name] for name, value in total.items()}
    except (OSError, ValueError):
        return {}
    return total
