"""The CPUs of this machine."""

import os


def cpus_online() -> list[int]:
    """The CPUs on which this process may run."""
    return sorted(os.sched_getaffinity(0))
