"""How fast the disk of a host's data may be."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DiskSpeed:
    """A limit of a disk: requests and bytes per second, both ways together. It stands for a kind of disk.

    A request that has to wait for it is late; one that does not is as fast as the disk below.
    """

    name: str
    requests: int
    bytes: int

    def __str__(self) -> str:
        """What it is, for facts."""
        return f"{self.name}: at most {self.requests} requests and {self.bytes / 1e6:g} MB per second"


SPEEDS: Mapping[str, DiskSpeed] = {
    each.name: each for each in (DiskSpeed("hdd-like", 120, 120_000_000), DiskSpeed("ssd-like", 5000, 400_000_000))
}
"""By name: about what a disk of 7200 revolutions a minute does, and a SATA SSD of its time."""
