"""The CPUs of this machine."""

import contextlib
import functools
import os
import threading

_MOST = 8192
"""As many as Linux can have (CONFIG_NR_CPUS)."""


def cpus_online() -> list[int]:
    """The CPUs on which a process of ours may run, whatever affinity the user's shell gave this one (taskset(1))."""
    return [*_cpus()]


@functools.cache
def _cpus() -> tuple[int, ...]:
    """Asked once, and as the launcher does for its site.

    An affinity of all CPUs is cut to those that are there and that the control group has (sched_setaffinity(2)). It
    is a thread's own, so one is asked that ends with the answer.
    """
    cpus: set[int] = set()

    def ask() -> None:
        with contextlib.suppress(OSError):  # a filter of system calls forbids it: then there is no other affinity
            os.sched_setaffinity(0, range(_MOST))
        cpus.update(os.sched_getaffinity(0))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return tuple(sorted(cpus))
