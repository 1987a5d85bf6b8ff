"""The CPUs of this machine."""

import contextlib
import functools
import os
import threading

_MOST = 8192
"""The largest number of CPUs of Linux (CONFIG_NR_CPUS)."""


def cpus_online() -> list[int]:
    """Return the CPUs that Weighbridge can use, whatever affinity the user's shell set (taskset(1))."""
    return [*_cpus()]


@functools.cache
def _cpus() -> tuple[int, ...]:
    """Return the CPUs, determined once, as the launcher does for its site.

    The kernel limits an affinity of all CPUs to those that exist and that the control group has
    (sched_setaffinity(2)). Affinity belongs to a thread, so a temporary thread asks.
    """
    cpus: set[int] = set()

    def ask() -> None:
        with contextlib.suppress(OSError):  # a system call filter forbids it, so the affinity stays
            os.sched_setaffinity(0, range(_MOST))
        cpus.update(os.sched_getaffinity(0))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return tuple(sorted(cpus))
