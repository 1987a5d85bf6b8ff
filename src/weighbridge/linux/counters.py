"""Converts the kernel's text to numbers. The functions are pure; unreadable values are absent, never zero.

Each function returns the counters and the levels in a text. A **counter** only grows, and has the name of its rate:
``cpu_user_share`` is in seconds of CPU time, so its growth per second is the number of busy CPUs. A **level** is a
value at that moment. Names of files and fields: proc(5), cgroups(7), the kernel's documentation of accounting/psi,
admin-guide/iostats, admin-guide/cgroup-v1/memory and admin-guide/cgroup-v2.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

CPU_KINDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
"""The fields of the line "cpu" in /proc/stat, in their order. ``user`` includes guests, as in ``sar -u``."""
GUEST_TICKS = 100
"""Ticks of the clock per second (USER_HZ), in every kernel of the architectures that guests have."""
SECTOR = 512
"""Bytes of a sector in /proc/diskstats, for all disks."""
_DIGITS = 20
"""The number of digits of the largest kernel counter."""
_MEMINFO = re.compile(r"^(Mem(?:Total|Free|Available)|Buffers|Cached|Slab|Committed_AS):\s+(\d+) kB\n", re.MULTILINE)
_MEMORY_STAT = re.compile(r"^(anon|shmem|file|total_(?:rss|shmem|cache)) (\d{1,20})\n", re.MULTILINE | re.ASCII)
_PARTITION = re.compile(r"(?:(?:nvme|mmcblk)\w*?\d+p\d+|(?:[shv]d|xvd)[a-z]+\d+)")
_OF_A_DEVICE = re.compile(r"(.+)_(?:receive|transmit)_\w+?_per_s|(disk_.+)_(?:reads?|writes|written|busy)_\w+")

_LINES = 1024
"""The number of parsed lines to keep: most interfaces and disks are idle, so their lines repeat."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The counters and the levels in one text of the kernel."""

    counters: dict[str, float] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)


def cpu_ticks(text: str) -> dict[str, int]:
    """Return the ticks over all CPUs by kind, in the order of /proc/stat; empty for other text."""
    first, end, _ = text.partition("\n")
    name, *fields = first.split() or [""]
    if name != "cpu" or not end or not _are_numbers(fields):
        return {}
    return dict(zip(CPU_KINDS, map(int, fields)))  # noqa: B905 - Python 3.9 of an agent has no "strict"


def cpu(text: str, ticks: int) -> Numbers:
    """Return CPU seconds by kind over all CPUs, from /proc/stat."""
    return Numbers(
        {f"cpu_{kind}_share": n / ticks for kind, n in cpu_ticks(text).items() if not kind.startswith("guest")}
    )


def guest_cpu(text: str) -> dict[str, float]:
    """Return seconds over all CPUs of a guest, from its /proc/stat, to 1/`GUEST_TICKS` s; empty for other text.

    ``guest_cpu_s``: the CPUs were busy. ``guest_steal_s``: the hypervisor did not let the CPUs run.
    """
    kinds = cpu_ticks(text)
    if "steal" not in kinds:
        return {}
    busy = sum(kinds[kind] for kind in ("user", "nice", "system", "irq", "softirq"))
    return {"guest_cpu_s": busy / GUEST_TICKS, "guest_steal_s": kinds["steal"] / GUEST_TICKS}


def memory_kib(text: str) -> dict[str, int]:
    """Return KiB by the names of lines of /proc/meminfo, for the lines that `meminfo` and the facts use."""
    return {match[1]: int(match[2]) for match in _MEMINFO.finditer(text)}


def meminfo(text: str) -> Numbers:
    """Return levels from /proc/meminfo with the definitions of ``sar -r`` (sysstat 12.6.1, sar(1) and pr_stats.c).

    kbmemfree is MemFree, kbavail MemAvailable, kbbuffers Buffers, kbcached Cached, kbcommit Committed_AS (the memory
    needed if all requested memory were used); kbmemused = MemTotal - MemFree - Buffers - Cached - Slab.
    """
    kib = memory_kib(text)
    names = {
        "MemFree": "free", "MemAvailable": "available", "Buffers": "buffers", "Cached": "cached",
        "Committed_AS": "committed",
    }  # fmt: skip
    levels = {f"memory_{name}_bytes": kib[key] * 1024.0 for key, name in names.items() if key in kib}
    if kib.keys() >= {"MemTotal", "MemFree", "Buffers", "Cached", "Slab"}:
        unused = kib["MemFree"] + kib["Buffers"] + kib["Cached"] + kib["Slab"]
        levels["memory_used_bytes"] = (kib["MemTotal"] - min(unused, kib["MemTotal"])) * 1024.0
    return Numbers(levels=levels)


def interfaces(text: str) -> dict[str, list[int]]:
    """Return the sixteen numbers of each interface in /proc/net/dev; 0 is bytes received, 8 is bytes sent."""
    return dict(filter(None, map(_interface, _whole_lines(text)[2:])))


def _interface(line: str) -> tuple[str, list[int]] | None:
    name, _, rest = line.rpartition(":")
    fields = rest.split()
    if not name.strip() or len(fields) != 16 or not _are_numbers(fields):
        return None
    return name.strip(), [int(each) for each in fields]


def network(text: str) -> Numbers:
    """Return bytes, packets and dropped packets of each interface in both directions, from /proc/net/dev."""
    counters: dict[str, float] = {}
    for line in _whole_lines(text)[2:]:
        counters |= _network_of(line)
    return Numbers(counters)


@functools.lru_cache(_LINES)
def _network_of(line: str) -> dict[str, float]:
    name, numbers = _interface(line) or ("", [])
    return {
        f"{name}_{direction}_{kind}_per_s": float(numbers[first + offset])
        for direction, first in (("receive", 0), ("transmit", 8))
        for kind, offset in (("bytes", 0), ("packets", 1), ("dropped", 3))
        if numbers
    }


def snmp(text: str, protocol: str) -> dict[str, int]:
    """Return one protocol's counters in /proc/net/snmp by name. Raises ValueError if it has no such lines."""
    names, values = (line.split()[1:] for line in text.splitlines() if line.startswith(f"{protocol}:"))
    if len(names) != len(values):
        raise ValueError(f"damaged counters of {protocol}")
    return dict(zip(names, map(int, values)))  # noqa: B905 - as above


def disks(text: str) -> Numbers:
    """Return the counters of complete disks, from /proc/diskstats."""
    counters: dict[str, float] = {}
    for line in _whole_lines(text):
        counters |= _disk(line)
    return Numbers(counters)


@functools.lru_cache(_LINES)
def _disk(line: str) -> dict[str, float]:
    fields = line.split()
    if len(fields) < 14 or not _are_numbers(fields[3:14]) or _PARTITION.fullmatch(fields[2]):
        return {}
    reads, sectors_read, writes, sectors_written, busy_ms = (int(fields[place]) for place in (3, 5, 7, 9, 12))
    return {
        f"disk_{fields[2]}_reads_per_s": float(reads),
        f"disk_{fields[2]}_read_bytes_per_s": float(sectors_read * SECTOR),
        f"disk_{fields[2]}_writes_per_s": float(writes),
        f"disk_{fields[2]}_written_bytes_per_s": float(sectors_written * SECTOR),
        f"disk_{fields[2]}_busy_share": busy_ms / 1e3,
    }


def disk_flushes(text: str) -> dict[str, tuple[float, float]]:
    """Return the completed flushes and busy seconds of complete disks, from /proc/diskstats.

    Kernels before 5.5 do not count flushes; their disks are skipped.
    """
    numbers: dict[str, tuple[float, float]] = {}
    for line in _whole_lines(text):
        fields = line.split()
        if len(fields) >= 20 and _are_numbers(fields[3:20]) and not _PARTITION.fullmatch(fields[2]):
            numbers[fields[2]] = float(fields[18]), int(fields[12]) / 1e3
    return numbers


def softnet(text: str) -> dict[str, float]:
    """Return dropped packets and polls that ended with packets left, over all CPUs, from /proc/net/softnet_stat."""
    rows = [_hexadecimal(line.split()) for line in _whole_lines(text)]
    if not rows or any(len(row) < 3 for row in rows):
        return {}
    return {
        "softnet_drops": float(sum(row[1] for row in rows)),
        "softnet_squeezes": float(sum(row[2] for row in rows)),
    }


def conntrack(text: str) -> dict[str, float]:
    """Return rejected packets or connections from /proc/net/stat/nf_conntrack, which has a row per CPU."""
    head, *lines = _whole_lines(text) or [""]
    names = head.split()
    rows = [dict(zip(names, _hexadecimal(line.split()))) for line in lines]  # noqa: B905 - as above
    lost = ("insert_failed", "drop", "early_drop")
    if not rows or any(not row.keys() >= {*lost} for row in rows):
        return {}
    drops = sum(row[name] for row in rows for name in lost)
    return {"conntrack_drops": float(drops)}


def received(netstat: str, snmp_text: str) -> dict[str, float]:
    """Return IPv4 packets received, and their bytes with IP headers, from /proc/net/netstat and /proc/net/snmp.

    Segments that the kernel has merged, or not split yet, are one packet. Raises ValueError.
    """
    try:
        octets, packets = snmp(netstat, "IpExt")["InOctets"], snmp(snmp_text, "Ip")["InReceives"]
    except KeyError as error:
        raise ValueError(f"no {error}") from error
    return {"received_octets": float(octets), "received_packets": float(packets)}


def _hexadecimal(fields: Sequence[str]) -> list[int]:
    """Return these words as numbers to the base 16; empty if one of them is not a number."""
    is_hexadecimal = all(re.fullmatch("[0-9a-f]{8,16}", field, re.ASCII) for field in fields)
    return [int(field, 16) for field in fields] if is_hexadecimal else []


@functools.cache
def device(name: str) -> str:
    """Return the interface or disk that a counter belongs to; empty for other counters."""
    match = _OF_A_DEVICE.fullmatch(name)
    return (match[1] or match[2]) if match else ""


def pressure(text: str, what: str) -> Numbers:
    """Return seconds in which some or all tasks waited, from /proc/pressure/WHAT, without "full" for CPUs."""
    waiting_s = {}
    for match in re.finditer(r"^(some|full) .*total=(\d+)\n", text, re.MULTILINE):
        if (what, match[1]) != ("cpu", "full"):
            waiting_s[f"pressure_{what}_{match[1]}_share"] = int(match[2]) / 1e6
    return Numbers(waiting_s)


def loadavg(text: str) -> Numbers:
    """Return the mean number of tasks that ran or waited for a CPU in the last minute, from /proc/loadavg."""
    first = text.split(" ", 1)[0]
    return Numbers(levels={"load1": float(first)} if re.fullmatch(r"\d+\.\d+", first) and "\n" in text else {})


def cpuacct(text: str) -> Numbers:
    """Return CPU time from cpuacct.usage (version 1), which is in nanoseconds."""
    return Numbers({"cpu_share": int(text) / 1e9}) if _is_line(text) else Numbers()


def cpu_stat(text: str) -> Numbers:
    """Return CPU time (version 2) and the time in which a limit throttled tasks, from cpu.stat of both versions."""
    stat = _pairs(text)
    units = {
        "usage_usec": ("cpu_share", 1e6), "user_usec": ("cpu_user_share", 1e6),
        "system_usec": ("cpu_system_share", 1e6),
        "throttled_usec": ("throttled_share", 1e6), "throttled_time": ("throttled_share", 1e9),
    }  # fmt: skip
    return Numbers({name: stat[key] / unit for key, (name, unit) in units.items() if key in stat})


def throttled_periods(text: str) -> dict[str, float]:
    """Return the number of throttled periods, from cpu.stat of both versions; empty if it is missing."""
    stat = _pairs(text)
    return {"throttled_periods": float(stat["nr_throttled"])} if "nr_throttled" in stat else {}


def memory_now(text: str) -> Numbers:
    """Return all memory charged to a group, including cached files, from memory.current or memory.usage_in_bytes."""
    return Numbers(levels={"memory_bytes": float(text)} if _is_line(text) else {})


def memory_events(text: str) -> Numbers:
    """Return the number of OOM-killed processes of a group, from memory.events or memory.oom_control."""
    stat = _pairs(text)
    return Numbers({"oom_kills": float(stat["oom_kill"])} if "oom_kill" in stat else {})


def memory_stat(text: str) -> Numbers:
    """Return anonymous and shared memory and cached files, from memory.stat of both versions with child groups.

    A cached file is charged to the site that read it first.
    """
    stat = {match[1]: int(match[2]) for match in _MEMORY_STAT.finditer(text)}
    two = "anon" in stat
    keys = ("anon", "shmem", "file") if two else ("total_rss", "total_shmem", "total_cache")
    if not stat.keys() >= set(keys):
        return Numbers()
    anonymous, shared, cached = (float(stat[key]) for key in keys)
    return Numbers(
        levels={
            "memory_anonymous_bytes": anonymous,
            "memory_shared_bytes": shared,
            "memory_files_bytes": max(0.0, cached - shared),  # both versions count shared memory there too
        }
    )


def pids(text: str) -> Numbers:
    """Return the number of processes and threads, from pids.current."""
    return Numbers(levels={"pids_count": float(text)} if _is_line(text) else {})


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) <= _DIGITS


def _are_numbers(fields: Sequence[str]) -> bool:
    together = "".join(fields)
    return together.isdecimal() and together.isascii() and max(map(len, fields)) <= _DIGITS


def _is_line(text: str) -> bool:
    """Return whether a text is one number and its end of line: a truncated number would be smaller."""
    return text.endswith("\n") and _is_number(text[:-1])


def _whole_lines(text: str) -> list[str]:
    return text.split("\n")[:-1]


def _pairs(text: str) -> dict[str, int]:
    pairs = (line.split(" ") for line in _whole_lines(text))
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and _is_number(pair[1])}
