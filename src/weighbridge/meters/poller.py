"""Keeps one CPU from halting: a program of the lowest scheduling class that looks at the clock without end.

It uses the standard library alone and nothing of this project: ``python3 -I -S -c SOURCE CPU FILE PARENT PROCS ...``.
It joins the control groups of PROCS; whatever else wants the CPU then has it at once. In FILE it keeps the
nanoseconds (8 bytes, the machine's order) for which nobody else had the CPU: the sum of the short times between two
looks. In a long one somebody else had it, an interrupt or the hypervisor. The kernel's timer interrupts an idle CPU
only because it polls, and keeping the count takes time too: what these two leave of a CPU that nobody else wants, as
the best of all times of WINDOW_NS shows it, is the unit. It ends once PARENT, who started it, has ended.
"""

import mmap
import os
import resource
import struct
import sys
import time

GAP_NS = 2000
"""Looks are some 100 ns apart; a kernel's shortest interrupt takes about as long as this."""
SLOW_NS = GAP_NS / 4
"""A look that takes so long is no way to tell how long an interrupt took."""
TRIES = 5
"""So often the clock is looked at before it is given up: the kernel tells a program's time in its calls from that
outside by samples, few in so short a time, and a hypervisor makes any look a slow one."""
LOOKS = 4096
"""So many looks are between two times of writing: less than a millisecond."""
WINDOW_NS = 100_000_000
ALONE = 0.9
"""A poller that never had this share of a window has not seen its CPU idle."""


def polling_obstacle() -> str:
    """Why this machine's clock cannot be polled; empty where it can: a look is cheap, and no call into the kernel."""
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
        with open(procs, "w") as group:  # noqa: PTH123 - pathlib would have to be loaded for it
            group.write("0")
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    os.nice(19)  # the kernel counts it as "nice" then, apart from everybody else
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
