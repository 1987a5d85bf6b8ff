"""Reads the counters of a machine, and finds the flags of a trial in two readings."""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from weighbridge.linux import counters
from weighbridge.linux.kernel_files import read_here
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import EVENT_COUNTERS

FOREIGN = 0.75
"""The largest number of CPUs that can be busy outside of the sites during a trial without a flag."""
SATURATED = 0.93
"""Share of one CPU from which a generator counts as being the limit: it also starts, connects and ends."""
FULL = 0.8
"""Share of CPU time from which the CPUs of the sites count as full, because the kernel also works for the sites."""
TABLE_FULL = 0.9
"""The largest used share of the connection table without a flag. A full table drops connections."""
_TABLE = "connection_table_share"
THROTTLED = 0.05
"""The largest share of the time in which a CPU limit can throttle a role without a flag."""
_TICKS = os.sysconf("SC_CLK_TCK")
_BUSY_KINDS = ("user", "nice", "system", "irq", "softirq")
"""The kinds of /proc/stat that make up ``busy_s``."""


def read(proc: Path = Path("/proc"), file: Callable[[str], bytes] = read_here) -> dict[str, float]:
    """Return the present counters of this machine, or of the machine whose files ``file`` reads.

    These are the counters of `stat`, ``load1``, the used share of the connection table, and ``psi_cpu_s``,
    ``psi_memory_s`` and ``psi_io_s`` in seconds since boot (proc(5), /proc/pressure). Missing counters are absent.
    """

    def text(name: str) -> str:
        return file(f"{proc}/{name}").decode()

    readings: dict[str, float] = {}
    with contextlib.suppress(OSError, ValueError):
        readings |= stat(text("stat"))
    with contextlib.suppress(OSError, ValueError):
        readings |= counters.loadavg(text("loadavg")).levels
    for what in ("cpu", "memory", "io"):
        if (waited := waited_s(what, proc, file)) is not None:
            readings[f"psi_{what}_s"] = waited
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        taken, most = (int(text(f"sys/net/netfilter/nf_conntrack_{what}")) for what in ("count", "max"))
        readings[_TABLE] = taken / most
    return readings


def waited_s(what: str, proc: Path = Path("/proc"), file: Callable[[str], bytes] = read_here) -> float | None:
    """Return the seconds since boot in which at least one program waited for ``what`` (cpu, memory, io)."""
    with contextlib.suppress(OSError, ValueError):
        text = file(f"{proc}/pressure/{what}").decode()
        return counters.pressure(text, what).counters.get(f"pressure_{what}_some_share")
    return None


def stat(text: str, ticks: int = _TICKS) -> dict[str, float]:
    """Return the counters in /proc/stat (proc(5)), in seconds over all CPUs, to 1/``ticks`` s.

    ``busy_s``, ``irq_s``, ``softirq_s``, ``steal_s``, ``unused_s`` (idle, and waiting for disks),
    ``context_switches`` and the number of ``cpus`` that are online. Raises ValueError for any other text.
    """
    lines, kinds = text.splitlines(), counters.cpu_ticks(text)
    if "steal" not in kinds:
        raise ValueError("this is not /proc/stat")
    readings = {
        "busy_s": sum(kinds[kind] for kind in _BUSY_KINDS) / ticks,
        "irq_s": kinds["irq"] / ticks,
        "softirq_s": kinds["softirq"] / ticks,
        "steal_s": kinds["steal"] / ticks,
        "unused_s": (kinds["idle"] + kinds["iowait"]) / ticks,
        "cpus": float(sum(line.startswith("cpu") for line in lines) - 1),
    }
    switches = [int(line.split()[1]) for line in lines if line.startswith("ctxt ")]
    return readings | ({"context_switches": float(switches[0])} if switches else {})


_COUNTERS = (
    "_s", "_kills", "_switches", "_bits", "_segments", "_periods", "_octets", "_packets",
    *(each.name for each in EVENT_COUNTERS),
)  # fmt: skip
"""The ends of the names of counters. All other readings are levels."""


def used(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return the growth of each counter, the first value of each level, and the table's largest share."""
    levels = {name: max(before[name], after[name]) for name in (_TABLE,) if name in before and name in after}
    return levels | {
        name: after[name] - value if name.endswith(_COUNTERS) else value
        for name, value in before.items()
        if name in after and name not in levels
    }


def host_flags(
    used_by_host: Mapping[str, float], used_by_sites: Sequence[Mapping[str, float]], wall_s: float, cpus: int
) -> list[Flag]:
    """Return the flags about the machine in a trial of ``wall_s`` seconds.

    FOREIGN allows for the kernel's network path, the engine and Weighbridge, which work outside of the sites.
    CPU time within the resolution of /proc/stat makes no flag. No flag states more CPU time than the CPUs have.
    """
    flags = []
    steal_s = used_by_host.get("steal_s", 0.0)
    steal = min(1.0, steal_s / (wall_s * cpus))
    if steal > 0.01 and steal_s > _resolution_s(1, cpus):
        flags.append(Flag(FlagCode.STEAL, figures={"share": steal}))
    if "busy_s" in used_by_host and all("cpu_s" in site for site in used_by_sites):
        foreign_s = used_by_host["busy_s"] - sum(site["cpu_s"] for site in used_by_sites)
        foreign = min(float(cpus), foreign_s / wall_s)
        if foreign > FOREIGN and foreign_s > _resolution_s(len(_BUSY_KINDS), cpus):
            flags.append(Flag(FlagCode.OTHER_WORK, figures={"cpus": foreign}))
    for what, code in (("memory", FlagCode.MEMORY_PRESSURE), ("io", FlagCode.IO_PRESSURE)):
        share = used_by_host.get(f"psi_{what}_s", 0.0) / wall_s
        if share > 0.05:
            flags.append(Flag(code, figures={"share": share}))
    if (full := used_by_host.get(_TABLE, 0.0)) > TABLE_FULL:
        flags.append(Flag(FlagCode.CONNECTION_TABLE, figures={"share": full}))
    return flags


def _resolution_s(kinds: int, cpus: int) -> float:
    """Return the seconds by which a sum of ``kinds`` of /proc/stat can be too large.

    Each kind is cut to a tick, and each CPU charges its whole tick to the task that is running at that moment.
    """
    return (kinds + cpus) / _TICKS


def shared_flags(used: Mapping[str, Mapping[str, float]], busy_s: float, cpus: int) -> list[Flag]:
    """Return a flag if client and server share full ``cpus`` and the client uses more: it can be the limit."""
    client, server = (used.get(role, {}).get("cpu_s", 0.0) / busy_s for role in ("client", "server"))
    if client + server <= FULL * cpus or client <= server:
        return []
    return [Flag(FlagCode.GENERATOR_TOOK, figures={"client": client, "server": server, "cpus": cpus})]


def site_flags(role: str, used_by_site: Mapping[str, float], measured_s: float, threads: int = 1) -> list[Flag]:
    """Return the flags about one role while the measured process ran: it was throttled, or it was the limit.

    Most generators have one busy thread (iperf3 3.12, redis-benchmark, netperf), so their limit is one CPU. For
    others, ``threads`` is the number of threads that can be busy at the same time. A throttled generator is also
    the limit.
    """
    flags = []
    throttled = used_by_site.get("throttled_s", 0.0) / measured_s
    if throttled > THROTTLED:
        flags.append(Flag(FlagCode.THROTTLED, role, {"share": throttled}))
    if role == "client" and (
        throttled > THROTTLED or used_by_site.get("cpu_s", 0.0) > SATURATED * threads * measured_s
    ):
        flags.append(Flag(FlagCode.GENERATOR_SATURATED))
    return flags
