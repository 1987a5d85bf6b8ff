"""Checks that this machine, or another host, has enough memory for guests."""

import sys
from dataclasses import dataclass, field
from threading import Lock

from weighbridge.linux import counters

MEMINFO = "/proc/meminfo"
LESS = "give it less memory"


@dataclass(slots=True)
class MemoryBudget:
    """Bytes that a host had available before its first guest, and bytes promised to its guests since."""

    available: int
    promised: int = 0
    _promising: Lock = field(default_factory=Lock, repr=False, compare=False)

    def promise(self, memory: int, where: str) -> str:
        """Promise bytes to a guest on ``where``; return why they do not fit, or "" if they do."""
        with self._promising:
            if not (reason := no_room(memory, where, self)):
                self.promised += memory
            return reason

    def take_back(self, memory: int) -> None:
        """Take back what was promised to a guest that has ended."""
        with self._promising:
            self.promised -= memory


def room_in(meminfo: str) -> MemoryBudget:
    """Return the room on a host by the text of its ``MEMINFO``."""
    return MemoryBudget(counters.memory_kib(meminfo).get("MemAvailable", sys.maxsize >> 10) << 10)


def no_room(memory: int, where: str, room: MemoryBudget, guests: int = 1) -> str:
    """Return why ``guests`` guests of ``memory`` bytes each do not fit on ``where``; "" if they do."""
    if room.promised + memory * guests <= room.available:
        return ""
    one_guest = f"a guest with {mib(memory)} does"
    subject = one_guest if guests == 1 else f"{guests} guests with {mib(memory)} each do"
    others = f", of which other guests need {mib(room.promised)}" if room.promised else ""
    return f"{subject} not fit on {where} ({mib(room.available)} available{others})"


def mib(size: int) -> str:
    """Return a number of bytes as text in MiB."""
    return f"{size >> 20} MiB"
