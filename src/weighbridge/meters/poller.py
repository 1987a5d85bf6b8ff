"""Keeps one CPU from halting: a program of the lowest scheduling class that reads the clock all the time.

It uses the standard library alone and nothing of this project: ``python3 -I -S -c SOURCE CPU FILE PARENT PROCS ...``.
After a test of the clock it joins the control groups of PROCS, so every other program gets the CPU at once. In FILE
it keeps the nanoseconds (8 bytes, native byte order) in which no other program had the CPU: the sum of the short
times between two readings. In a long time, another program, an interrupt or the hypervisor had it. Polling itself
causes timer interrupts, and counting takes time. The unit is therefore the best share that any window of WINDOW_NS
shows on an otherwise idle CPU. The poller ends when PARENT, which started it, has ended.
"""

import mmap
import os
import resource
import struct
import sys
import time

GAP_NS = 2000
"""Nanoseconds. Readings are about 100 ns apart, and the kernel's shortest interrupt takes about this time."""
SLOW_NS = GAP_NS / 4
"""Nanoseconds. A reading that takes this long cannot measure an interrupt."""
TRIES = 5
"""The number of tries before the clock counts as too slow. The kernel separates time inside and outside of its
calls by samples, which are few in a short time, and a hypervisor can delay any reading."""
READINGS = 4096
"""The number of readings between two writes, which is less than a millisecond."""
WINDOW_NS = 100_000_000
IDLE_SHARE = 0.9
"""The least share of a window that shows that the CPU was idle."""


def polling_obstacle() -> str:
    """Return why this machine's clock cannot be polled, or "" if a reading is fast and needs no system call."""
    clock, before = time.monotonic_ns, resource.getrusage(resource.RUSAGE_SELF)
    looks = []
    last = start = clock()
    while last - start < 30_000_000:
        now = clock()
        looks.append(now - last)
        last = now
    after = resource.getrusage(resource.RUSAGE_SELF)
    system, user = after.ru_stime - before.ru_stime, after.ru_utime - before.ru_utime
    typical = sorted(looks)[len(looks) // 2]
    if typical > SLOW_NS:
        return f"reading the clock takes {typical} ns"
    return "reading the clock is a system call" if system > user else ""


def main() -> int:
    """Poll until the parent has ended."""
    cpu, path, parent = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    os.sched_setaffinity(0, {cpu})
    if all(why := polling_obstacle() for _ in range(TRIES)):  # first: after it gave way, this took 20 s on a busy CPU
        sys.stderr.write(why + "\n")
        return 1
    for procs in sys.argv[4:]:
        with open(procs, "w") as group:  # noqa: PTH123 - pathlib would have to be loaded for it
            group.write("0")
    os.sched_setaffinity(0, {cpu})  # before Linux 6.2, joining a cpuset allows all of its CPUs again
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    os.nice(19)  # the kernel counts it as "nice" then, apart from everybody else
    with open(path, "r+b") as file:  # noqa: PTH123
        page = mmap.mmap(file.fileno(), 8)
    clock, gap, looks = time.monotonic_ns, GAP_NS, range(READINGS)
    best, idle, window = IDLE_SHARE, 0.0, 0
    last = window_start = clock()
    while os.getppid() == parent:
        polled = 0
        for _ in looks:
            now = clock()
            if now - last < gap:
                polled += now - last
            last = now
        window += polled
        if last - window_start > WINDOW_NS:
            best, window, window_start = max(best, window / (last - window_start)), 0, last
        idle += polled / best
        page[:8] = struct.pack("=Q", int(idle))
    return 0


if __name__ == "__main__":
    sys.exit(main())
