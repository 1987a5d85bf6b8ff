"""Converts a site's limits to a guest's virtual CPUs and memory."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.linux.memory_room import LESS, MEMINFO, mib, no_room, room_in
from weighbridge.model.environment import Needs
from weighbridge.model.host import Host, Limits, RunContext
from weighbridge.model.plugin import Readiness
from weighbridge.model.quantity import cpus_in
from weighbridge.model.study import Resources

DEFAULT_MEMORY = 1024 * 2**20
"""Bytes of a guest's RAM if the study sets no limit."""
SMALLER = "set a smaller limit (resources: memory)"
LEAST_MEMORY = 128 * 2**20
"""The least bytes in which the kernel with its RAM disk boots."""


def cpus_of(limits: Limits, host: Host) -> int:
    """Return the number of virtual CPUs: as many as the CPU limit can keep busy, at most those of the host."""
    cpu_count = len(_cpus_there(limits, host))
    return cpu_count if limits.cpus is None else min(cpu_count, max(1, math.ceil(limits.cpus)))


def own_cpus(limits: Limits, host: Host, *, behind_server: bool = False) -> list[int]:
    """Return a CPU for each virtual one. Raises Unavailable if there are too few for the limit.

    ``behind_server`` selects, without a CPU list, the CPUs after those of an equally large guest of the server.
    """
    cpus = _cpus_there(limits, host)
    vcpu_count = len(cpus) if limits.cpus is None else max(1, math.ceil(limits.cpus))
    first = vcpu_count if behind_server and not limits.cpuset else 0
    if first + vcpu_count > len(cpus):
        raise Unavailable(
            f"pin: vcpus needs one CPU for each of {first + vcpu_count} virtual CPUs, but host {host.name} has "
            f"{len(cpus)} for them ({', '.join(map(str, cpus))}). Use fewer (resources: cpus), or remove 'pin'"
        )
    return cpus[first : first + vcpu_count]


def _cpus_there(limits: Limits, host: Host) -> list[int]:
    return sorted({*cpus_in(limits.cpuset)}) if limits.cpuset else host.cpus_online()


def memory_of(limits: Limits | Resources) -> int:
    """Return a guest's RAM in bytes, a multiple of a MiB."""
    return (limits.memory or DEFAULT_MEMORY) >> 20 << 20


def memory_problems(needs: Needs) -> list[str]:
    """Return why no guest can boot with the study's memory limit."""
    if (memory := memory_of(needs.resources)) >= LEAST_MEMORY:
        return []
    least = f"a guest needs at least {mib(LEAST_MEMORY)} of memory"
    return [f"{least}, but its limit is {mib(memory)}: raise it (resources: memory)"]


def guests_of(needs: Needs) -> int:
    """Return how many guests of one environment run at the same time on one machine."""
    return len(needs.inside) if needs.network and not needs.separate_hosts else 1


def lacking_memory(needs: Needs) -> Readiness | None:
    """Return why this machine has too little memory for the guests of one environment; None if it has enough."""
    room = room_in(Path(MEMINFO).read_text())
    if reason := no_room(memory_of(needs.resources), "this machine", room, guests_of(needs)):
        return Readiness(False, reason, SMALLER)
    return None


@contextmanager
def reserved(memory: int, host: Host, run: RunContext, remedy: str = LESS) -> Iterator[None]:
    """Reserve bytes of a host's memory for a guest, which allocates them only when it uses them.

    Raises Unavailable if the host has too few, including the promises to other guests of the run.
    """
    room = run.share(f"memory for guests on {host.name}", lambda: nullcontext(room_in(host.read(MEMINFO).decode())))
    if reason := room.promise(memory, f"host {host.name}"):
        raise Unavailable(f"{reason}: {remedy}")
    try:
        yield
    finally:
        room.take_back(memory)
