"""What whole machines did between two moments: CPU time of everything that ran, interrupts, TCP's retransmits.

The CPU time is what the idle clock leaves over, and not the sum of the kinds in /proc/stat: a kernel without
VIRT_CPU_ACCOUNTING charges those by what its tick happens to meet (seen to be wrong by 14 % in two seconds), while
the time that a CPU was idle is measured, also where an interrupt came in between (kernel/time/tick-sched.c). Both
are told in hundredths of a second. softirq's share is one of those kinds: it is as good as they are.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from weighbridge.linux.counters import snmp
from weighbridge.meters.host import stat

RESOLUTION_S = 3 / os.sysconf("SC_CLK_TCK")
"""Seconds by which a CPU time can be wrong: three counters make it up, each cut to a tick at both ends."""

Read = Callable[[str], bytes]
"""Reads a file of a machine by its path. Raises OSError."""


def read_here(path: str) -> bytes:
    """A file of this machine. Raises OSError."""
    return Path(path).read_bytes()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counters of one machine at one moment of `time.monotonic` here, the middle of the reading."""

    at_s: float
    counters: Mapping[str, float]


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


@dataclass(frozen=True, slots=True)
class Tcp:
    """Segments that TCP sent in some network namespaces, and how many of them again."""

    sent: float
    retransmitted: float


def snapshot(read: Read) -> Snapshot | None:
    """The counters now; None where they cannot be read."""
    begun = time.monotonic()
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = read("/proc/stat").decode()
        return Snapshot((begun + time.monotonic()) / 2, stat(text))
    return None


def use(before: Snapshot | None, after: Snapshot | None) -> Use | None:
    """What lies between two snapshots; None without both, or where a CPU came or went meanwhile."""
    if before is None or after is None or before.counters["cpus"] != after.counters["cpus"]:
        return None
    seconds = after.at_s - before.at_s
    grown = {name: value - before.counters.get(name, value) for name, value in after.counters.items()}
    busy_s = after.counters["cpus"] * seconds - grown["unused_s"] - grown["steal_s"]
    stolen = max(0.0, grown["steal_s"]) / (after.counters["cpus"] * seconds) if seconds > 0 else 0.0
    return Use(
        seconds, busy_s, grown["softirq_s"], grown.get("context_switches", 0.0), grown.get("busy_s", 0.0), stolen
    )


def idle(found: Use) -> Idle:
    """The idle level that one look at a machine shows; it may lie below 0 by what the counters cannot tell."""
    return Idle(found.busy_s / found.seconds, found.context_switches / found.seconds)


def tcp(text: str) -> Tcp:
    """TCP's counters in the text of a /proc/PID/net/snmp. Raises ValueError where it is something else."""
    counters = snmp(text, "Tcp")
    try:
        return Tcp(float(counters["OutSegs"]), float(counters["RetransSegs"]))
    except KeyError as missing:
        raise ValueError(f"no counter {missing}") from missing


def tcp_total(networks: Iterable[tuple[Read, str]]) -> Tcp | None:
    """TCP's counters over network namespaces, each given by who reads and the path; None where one is unreadable."""
    total = Tcp(0.0, 0.0)
    try:
        for read, path in networks:
            one = tcp(read(path).decode())
            total = Tcp(total.sent + one.sent, total.retransmitted + one.retransmitted)
    except (OSError, ValueError):
        return None
    return total
