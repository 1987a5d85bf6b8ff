"""The processes of a site, from their /proc/PID/stat lines and /proc/PID/io files (proc(5))."""

import re
from collections.abc import Sequence

from weighbridge.linux.counters import Numbers

_LINE = re.compile(r"^(\d+) \(.*\) [A-Za-z] ([-\d ]+)$")


def trees(texts: Sequence[str | None], ticks: int, page: int) -> list[Numbers | None]:
    """Return for each moment the CPU seconds (user and system), resident memory and threads of all processes.

    An ended process keeps its last readings. Its use after them, and processes that lived only between two readings,
    are missed.
    """
    cpu_s: dict[tuple[str, str], float] = {}
    readings: list[Numbers | None] = []
    for text in texts:
        if text is None:
            readings.append(None)
            continue
        resident = threads = 0
        for line in text.split("\n")[:-1]:
            match = _LINE.match(line)
            fields = match[2].split() if match else []
            if match is None or len(fields) < 21:
                continue
            user, system, count, started, pages = (int(fields[place]) for place in (10, 11, 16, 18, 20))
            cpu_s[match[1], str(started)] = (user + system) / ticks
            resident += pages * page
            threads += count
        levels = {"memory_anonymous_bytes": float(resident), "pids_count": float(threads)}
        readings.append(Numbers({"cpu_share": sum(cpu_s.values())}, levels))
    return readings


_OF_DISKS = ("read_bytes", "write_bytes")


def disk_use(texts: Sequence[str | None]) -> list[Numbers | None]:
    """Return for each moment the bytes that a group's processes read from disks and caused to be written.

    Each text is "pid: N" followed by that process's io file, one after the other. Writes count when they reach the
    cache, whenever the disk gets them, and include reaped children. An ended process keeps its last readings.
    """
    disk_bytes: dict[str, tuple[float, float]] = {}
    ended = [0.0, 0.0]
    readings: list[Numbers | None] = []
    for text in texts:
        if text is None:
            readings.append(None)
            continue
        for process, now in _io_files(text):
            before = disk_bytes.get(process, (0.0, 0.0))
            if now[0] < before[0] or now[1] < before[1]:  # another process got its number
                ended = [total + each for total, each in zip(ended, before, strict=True)]
            disk_bytes[process] = now
        read, written = (
            total + sum(each[column] for each in disk_bytes.values()) for column, total in enumerate(ended)
        )
        readings.append(Numbers({"disk_read_bytes_per_s": read, "disk_written_bytes_per_s": written}))
    return readings


def _io_files(text: str) -> list[tuple[str, tuple[float, float]]]:
    processes = []
    for part in text.split("pid: ")[1:]:
        process, *lines = part.split("\n")[:-1] or [""]
        fields = dict(line.split(": ", 1) for line in lines if ": " in line)
        numbers = [fields.get(name, "") for name in _OF_DISKS]
        if process.isdecimal() and all(each.isascii() and each.isdecimal() and len(each) < 21 for each in numbers):
            processes.append((process, (float(numbers[0]), float(numbers[1]))))
    return processes
