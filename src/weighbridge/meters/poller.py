"""Keeps one CPU from halting: a program of the lowest scheduling class that reads the clock in a loop.

It only uses the standard library: ``python3 -I -S -c SOURCE CPU FILE PARENT PROCS ...``. It joins the control groups
of PROCS; any other program gets the CPU at once. In FILE it stores the nanoseconds (8 bytes, the machine's order) for
which no other program had the CPU: the sum of the short times between two reads. During a long one, another program,
an interrupt or the hypervisor had it. The kernel's timer interrupts an idle CPU only because it polls, and counting
needs time too. Therefore the unit is the share that these two leave of an otherwise idle CPU: the best of all windows
of WINDOW_NS. The program ends when PARENT, which started it, has ended.
"""

import mmap
import os
import resource
import struct
import sys
import time

GAP_NS = 2000
"""The time that counts as an interruption: reads are some 100 ns apart, a kernel's interrupts longer."""
SLOW_NS = GAP_NS / 4
"""The time of a read from which it cannot measure interruptions."""
TRIES = 5
"""The number of attempts before giving up: the kernel separates user and system time by few samples in such a short
time, and a hypervisor can slow any read."""
LOOKS = 4096
"""The number of reads between two writes: less than a millisecond."""
WINDOW_NS = 100_000_000
ALONE = 0.9
"""A poller that never had this share of a window has not seen its CPU idle."""


def polling_obstacle() -> str:
    """Return why this machine's clock cannot be polled; empty if reading is cheap and without a system call."""
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
    for procs in sys.argv[4:]:
        with open(procs, "w") as group:  # noqa: PTH123 - avoids loading pathlib
            group.write("0")
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    os.nice(19)  # the kernel then counts it as "nice", separately from others
    if all(why := polling_obstacle() for _ in range(TRIES)):
        sys.stderr.write(why + "\n")
        return 1
    with open(path, "r+b") as file:  # noqa: PTH123
        page = mmap.mmap(file.fileno(), 8)
    clock, gap, looks = time.monotonic_ns, GAP_NS, range(LOOKS)
    best, idle, window = ALONE, 0.0, 0
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
