"""How a site's limits become a guest's virtual CPUs and memory."""

import math

from weighbridge.errors import Unavailable
from weighbridge.linux import counters
from weighbridge.model.cpus import cpus_in
from weighbridge.model.site import Host, Limits

DEFAULT_MEMORY = 1024 * 2**20
"""Bytes of a guest's RAM where the study sets no limit: a machine always has a size."""
LEAST_MEMORY = 128 * 2**20
"""Bytes in which the kernel with its RAM disk comes up."""


def cpus_of(limits: Limits, host: Host) -> int:
    """Virtual CPUs: as many as the limit of CPU time can keep busy, else as its CPU list or the host has."""
    there = len(cpus_in(limits.cpuset)) if limits.cpuset else len(host.cpus_online())
    return there if limits.cpus is None else min(there, max(1, math.ceil(limits.cpus)))


def memory_of(limits: Limits, host: Host) -> int:
    """Bytes of RAM, a multiple of a MiB. Raises Unavailable where the host has less, or a guest needs more."""
    wanted = (limits.memory or DEFAULT_MEMORY) >> 20 << 20
    if wanted < LEAST_MEMORY:
        raise Unavailable(
            f"a guest needs {LEAST_MEMORY >> 20} MiB of memory at least, but the limit is {_mib(wanted)}"
        )
    must_have_room(wanted, host, "set a smaller limit (resources: memory)")
    return wanted


def must_have_room(wanted: int, host: Host, remedy: str = "give it less memory") -> None:
    """Raise Unavailable where the host has fewer bytes of memory available than a guest is to have."""
    available = counters.memory_kib(host.read("/proc/meminfo").decode()).get("MemAvailable")
    if available is not None and available << 10 < wanted:
        raise Unavailable(
            f"a guest of {_mib(wanted)} of memory has no room on host {host.name}, where {_mib(available << 10)} are "
            f"available: {remedy}"
        )


def _mib(size: int) -> str:
    return f"{size >> 20} MiB"
