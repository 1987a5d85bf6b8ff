"""Whether this machine, or another host, has the memory that guests are promised."""

import sys
from dataclasses import dataclass

from weighbridge.linux import counters

MEMINFO = "/proc/meminfo"
LESS = "give it less memory"


@dataclass(slots=True)
class Room:
    """Bytes that a host had available before its first guest, and that its guests were promised since."""

    available: int
    promised: int = 0


def room_in(meminfo: str) -> Room:
    """The room that the text of ``MEMINFO`` tells of."""
    return Room(counters.memory_kib(meminfo).get("MemAvailable", sys.maxsize >> 10) << 10)


def no_room(memory: int, where: str, room: Room, guests: int = 1) -> str:
    """Why so many guests of ``memory`` bytes each have no room ``where`` they are to be; "" where they have."""
    if room.promised + memory * guests <= room.available:
        return ""
    each = f"a guest with {mib(memory)} does"
    what = each if guests == 1 else f"{guests} guests with {mib(memory)} each do"
    others = f", of which other guests need {mib(room.promised)}" if room.promised else ""
    return f"{what} not fit on {where} ({mib(room.available)} available{others})"


def mib(size: int) -> str:
    """Bytes as MiB."""
    return f"{size >> 20} MiB"
