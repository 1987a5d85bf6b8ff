"""What whole machines did between two moments: CPU time of everything that ran, interrupts, TCP's retransmits.

The CPU time is what the idle clock leaves over, and not the sum of the kinds in /proc/stat: a kernel without
VIRT_CPU_ACCOUNTING charges those by what its tick happens to meet (seen to be wrong by 14 % in two seconds), while
the time that a CPU was idle is measured, also where an interrupt came in between (kernel/time/tick-sched.c). Both
are told in hundredths of a second. softirq's share is one of those kinds: it is as good as they are.
"""

import contextlib
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from weighbridge.linux.counters import snmp
from weighbridge.meters.host import stat
from weighbridge.model.host import HERE, Host
from weighbridge.model.site import Site

RESOLUTION_S = 3 / os.sysconf("SC_CLK_TCK")
"""Seconds by which a CPU time can be wrong: three counters make it up, each cut to a tick at both ends."""

Read = Callable[[str], bytes]
"""Reads a file of a machine by its path. Raises OSError."""


def read_here(path: str) -> bytes:
    """A file of this machine. Raises OSError."""
    return Path(path).read_bytes()


def reader_of(host: Host, local_reader: Read = read_here) -> Read:
    """Return the function that reads the files of a host's machine; ``local_reader`` reads those of this one."""
    return local_reader if host.machine == HERE else host.read


@dataclass(frozen=True, slots=True)
class Use:
    """What a machine did in some ``seconds``: CPU seconds over all CPUs, context switches of all CPUs.

    ``ticks_s`` is ``busy_s`` by the kernel's ticks, as ``softirq_s``; ``stolen`` the share that a hypervisor took.
    """

    seconds: float
    busy_s: float
    softirq_s: float
    context_switches: float
    ticks_s: float = 0.0
    stolen: float = 0.0


@dataclass(frozen=True, slots=True)
class Idle:
    """What a machine does while no site runs: CPUs busy, context switches per second."""

    busy_cpus: float
    switches_per_s: float


def counters_of(read: Read) -> dict[str, float]:
    """Return a machine's counters (`weighbridge.meters.host.stat`); none where they cannot be read.

    ``at_s`` is their moment of `time.monotonic` here, the middle of the reading.
    """
    start = time.monotonic()
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = read("/proc/stat").decode()
        return {"at_s": (start + time.monotonic()) / 2, **stat(text)}
    return {}


def use(before: Mapping[str, float], after: Mapping[str, float]) -> Use | None:
    """Return a machine's use between two readings (`counters_of`); None without both, or if a CPU came or went."""
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
    """The idle level that one look at a machine shows; it may lie below 0 by what the counters cannot tell."""
    return Idle(machine_use.busy_s / machine_use.seconds, machine_use.context_switches / machine_use.seconds)


FIRST_S, AGAIN_S = 1.0, 0.5
"""How long the first look at idle machines takes, and each later one."""
BETWEEN_S = 100 * AGAIN_S
"""At least so long after a look is the next: looking costs no more than one percent of a run."""
LOOKS = 5
"""How many of the last looks make the idle level."""


@dataclass(slots=True)
class IdleLevels:
    """What each machine does while every site is frozen: looked at before the first trial, and again now and then."""

    readers: Mapping[str, Read]
    keep: Callable[[Mapping[str, str]], None] = lambda _: None
    """Is given each look as facts: "MACHINE: CPUs busy" and "MACHINE: context switches per second"."""
    _looks: dict[str, deque[Idle]] = field(default_factory=dict)
    _looked_at: float = -math.inf

    @property
    def levels(self) -> dict[str, Idle]:
        """The median of the last looks at each machine: one look is to a hundredth of a second only."""
        return {
            name: Idle(median(each.busy_cpus for each in looks), median(each.switches_per_s for each in looks))
            for name, looks in self._looks.items()
        }

    @property
    def due(self) -> bool:
        """Whether it is time for another look."""
        return time.monotonic() - self._looked_at >= BETWEEN_S

    def look(self) -> None:
        """Look at all of them at once. No site may run meanwhile."""
        before = {name: counters_of(read) for name, read in self.readers.items()}
        time.sleep(AGAIN_S if self._looks else FIRST_S)
        for name, read in self.readers.items():
            if (used := use(before[name], counters_of(read))) is not None:
                if used.busy_s < -RESOLUTION_S:  # the hypervisor took part of it: this look tells nothing
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
    """TCP's counters of each network namespace on the way: the sites' own, and their hosts' (docker-proxy's, say)."""
    files: dict[tuple[str, str], tuple[Read, str]] = {}
    for site in sites:
        owner, counters = site.host.network
        files[owner, counters] = site.host.read, _snmp(counters)
        if (own := site.scope().get("net")) is not None:
            read, reader = (site.read, f"site {site.name}") if site.sampler else (site.host.read, owner)
            files[reader, own] = read, _snmp(own)
    return files


def _snmp(counters: str) -> str:
    return str(Path(counters).with_name("snmp"))


def tcp(text: str) -> dict[str, float]:
    """TCP's ``sent_segments`` and ``resent_segments`` in the text of a /proc/PID/net/snmp.

    Raises ValueError where it is something else.
    """
    counters = snmp(text, "Tcp")
    try:
        return {"sent_segments": float(counters["OutSegs"]), "resent_segments": float(counters["RetransSegs"])}
    except KeyError as missing:
        raise ValueError(f"no counter {missing}") from missing


def tcp_total(networks: Networks) -> dict[str, float]:
    """TCP's counters, added up over network namespaces; none where one is unreadable."""
    total = {"sent_segments": 0.0, "resent_segments": 0.0}
    try:
        for read, path in networks.values():
            one = tcp(read(path).decode())
            total = {name: value + one[name] for name, value in total.items()}
    except (OSError, ValueError):
        return {}
    return total
