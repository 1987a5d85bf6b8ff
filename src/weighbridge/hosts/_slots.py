"""Empty disks that a guest host has from its start: a file system is copied into one when it is first used there."""

from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.guests import disk

_SLOTS = {"/dev/vdc": "slot-0", "/dev/vdd": "slot-1"}
"""Their devices there, and the files here."""


def make_slots(folder: Path, size: int) -> list[Path]:
    """Make the files, sparse ones of that size (bytes), in the order of their devices."""
    files = [folder / name for name in _SLOTS.values()]
    for slot in files:
        with slot.open("wb") as file:
            file.truncate(size)
    return files


class Slots:
    """Those of one host, whose files are in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._free = dict(_SLOTS)
        self._taken: dict[Path, str] = {}

    def device_of(self, image: Path, host: str) -> str:
        """The device with a file system, which is copied at first use. Unavailable where all have another."""
        if image not in self._taken:
            if not self._free:
                raise Unavailable(f"host {host} has no more than {len(_SLOTS)} disks for guests and userlands")
            device, name = self._free.popitem()
            disk.copy_into(self._folder / name, image)
            self._taken[image] = device
        return self._taken[image]
