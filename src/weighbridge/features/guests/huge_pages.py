"""Huge pages for a guest's memory (hugetlbfs): the host's reserve, and the pages of a hypervisor."""

import re
from dataclasses import dataclass
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.linux.memory_room import MEMINFO, mib
from weighbridge.linux.remedies import as_root
from weighbridge.model.command import Command
from weighbridge.model.host import Group, Host
from weighbridge.model.plugin import Readiness

NOT_METERED = "its control group does not count huge pages"
_FIELD = re.compile(r"^(HugePages_Total|HugePages_Free|HugePages_Rsvd|Hugepagesize):\s+(\d{1,15})\b", re.MULTILINE)
ORDINARY, TRANSPARENT = "ordinary", "mostly transparent huge pages"
_READ_S = 20.0
# process numbers are read on the host, because a testbed host has its own
_IN_USE = (
    'for pid in $(cat "$1"); do'
    ' grep -hE "^(HugetlbPages|RssAnon|AnonHugePages):" "/proc/$pid/status" "/proc/$pid/smaps_rollup"; done'
)


@dataclass(frozen=True, slots=True)
class Pool:
    """The huge pages that a machine has reserved: their number, the number of free ones, and the bytes of a page."""

    total: int
    free: int
    size: int


def pool_of(meminfo: str) -> Pool:
    """Return the pool in a text of /proc/meminfo; it is empty if the kernel has no huge pages."""
    fields = {name: int(number) for name, number in _FIELD.findall(meminfo)}
    free = fields.get("HugePages_Free", 0) - fields.get("HugePages_Rsvd", 0)
    return Pool(fields.get("HugePages_Total", 0), free, fields.get("Hugepagesize", 0) << 10)


def lacking(memory: int, where: str, pool: Pool, guests: int = 1) -> Readiness | None:
    """Return why guests of ``memory`` bytes each cannot get huge pages on ``where``; None if they can."""
    if pool.size == 0:
        return Readiness(False, f"the kernel of {where} has no huge pages", "remove 'huge_pages'")
    if memory % pool.size:
        reason = f"{mib(memory)} of memory is not a multiple of the huge page size, {mib(pool.size)}"
        return Readiness(False, reason, "set another limit (resources: memory)")
    pages = memory // pool.size * guests
    if pages <= pool.free:
        return None
    who = f"a guest with {mib(memory)} needs" if guests == 1 else f"{guests} guests with {mib(memory)} each need"
    reason = f"{who} {pages} huge pages of {mib(pool.size)}, but {where} has {pool.free} free"
    return Readiness(False, reason, as_root(f"sysctl vm.nr_hugepages={pool.total - pool.free + pages}"))


def lacking_here(memory: int, guests: int) -> Readiness | None:
    """Return why this machine has too few huge pages; None if it has enough."""
    return lacking(memory, "this machine", pool_of(Path(MEMINFO).read_text()), guests)


def require(memory: int, host: Host) -> None:
    """Raise Unavailable if a host has too few free huge pages."""
    if (problem := lacking(memory, f"host {host.name}", pool_of(host.read(MEMINFO).decode()))) is not None:
        raise Unavailable(f"{problem.detail}: {problem.remedy}")


def in_use(host: Host, group: Group) -> str:
    """Return as a fact which pages the hypervisor in a group uses for its guest; "" if unknown."""
    completed = host.run(Command(("sh", "-c", _IN_USE, "pages", str(group.procs[0])), _READ_S))
    kib: dict[str, int] = {}
    for line in completed.text.splitlines():
        name, size, *_ = line.split()
        kib[name] = max(kib.get(name, 0), int(size))
    if "HugetlbPages:" not in kib:
        return ""
    if reserved := kib["HugetlbPages:"]:
        return f"huge: {mib(reserved << 10)} of them"
    return TRANSPARENT if 2 * kib.get("AnonHugePages:", 0) > kib.get("RssAnon:", 0) else ORDINARY
