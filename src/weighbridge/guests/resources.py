"""How a site's limits become a guest's virtual CPUs and memory."""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from weighbridge.errors import Unavailable
from weighbridge.linux import counters
from weighbridge.model.cpus import cpus_in
from weighbridge.model.site import Host, Limits, RunContext

DEFAULT_MEMORY = 1024 * 2**20
"""Bytes of a guest's RAM where the study sets no limit: a machine always has a size."""
LEAST_MEMORY = 128 * 2**20
"""Bytes in which the kernel with its RAM disk comes up."""


def cpus_of(limits: Limits, host: Host) -> int:
    """Virtual CPUs: as many as the limit of CPU time can keep busy, else as its CPU list or the host has."""
    there = len(_cpus_there(limits, host))
    return there if limits.cpus is None else min(there, max(1, math.ceil(limits.cpus)))


def own_cpus(limits: Limits, host: Host, *, behind_server: bool = False) -> list[int]:
    """A CPU of its own for each virtual one. Raises Unavailable where there are fewer than the limit asks for.

    ``behind_server``: without a CPU list, the CPUs after those that as large a guest of the server has on this host.
    """
    there = _cpus_there(limits, host)
    wanted = len(there) if limits.cpus is None else max(1, math.ceil(limits.cpus))
    first = wanted if behind_server and not limits.cpuset else 0
    if first + wanted > len(there):
        raise Unavailable(
            f"pin: vcpus puts each of {first + wanted} virtual CPUs on a CPU of its own, but on host {host.name} "
            f"there are only {there}: ask for fewer (resources: cpus), or leave 'pin' out"
        )
    return there[first : first + wanted]


def _cpus_there(limits: Limits, host: Host) -> list[int]:
    return sorted({*cpus_in(limits.cpuset)}) if limits.cpuset else host.cpus_online()


def memory_of(limits: Limits) -> int:
    """Bytes of RAM, a multiple of a MiB. Raises Unavailable where a guest needs more."""
    wanted = (limits.memory or DEFAULT_MEMORY) >> 20 << 20
    if wanted < LEAST_MEMORY:
        raise Unavailable(
            f"a guest needs {LEAST_MEMORY >> 20} MiB of memory at least, but the limit is {_mib(wanted)}"
        )
    return wanted


@dataclass(slots=True)
class _Room:
    """Bytes that a host had available before its first guest, and that its guests were promised since."""

    available: int
    promised: int = 0


@contextmanager
def reserved(wanted: int, host: Host, run: RunContext, remedy: str = "give it less memory") -> Iterator[None]:
    """Bytes of a host's memory for a guest, which takes them only as it uses them.

    Raises Unavailable where there are fewer, beside what the run's other guests there were promised.
    """
    room = run.share(f"memory for guests on {host.name}", lambda: nullcontext(_Room(_available(host))))
    if room.promised + wanted > room.available:
        others = f", {_mib(room.promised)} of them for other guests" if room.promised else ""
        raise Unavailable(
            f"a guest of {_mib(wanted)} of memory has no room on host {host.name}, where "
            f"{_mib(room.available)} are available{others}: {remedy}"
        )
    room.promised += wanted
    try:
        yield
    finally:
        room.promised -= wanted


def _available(host: Host) -> int:
    return counters.memory_kib(host.read("/proc/meminfo").decode()).get("MemAvailable", sys.maxsize >> 10) << 10


def _mib(size: int) -> str:
    return f"{size >> 20} MiB"
