"""Which machines of a fleet are measured a second time, and with whom: by what was measured so far."""

from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.analysis.fleet import read_fleet
from weighbridge.errors import RunDirectoryError
from weighbridge.fleets.folder import FleetFolder
from weighbridge.fleets.rounds import unit_named


@dataclass(frozen=True, slots=True)
class Suspects:
    """The machines that are ``odd`` in some metric, and the others, by their names in the fleet."""

    odd: tuple[str, ...]
    good: tuple[str, ...]

    @classmethod
    def of(cls, folder: FleetFolder, machines: Sequence[str]) -> "Suspects":
        """Judge the machines by the runs of a folder, as the fleet's report does.

        Nobody is odd where there is too little to judge by. A machine that was never measured is no good partner.
        """
        try:
            fleet = read_fleet(folder.path)
        except (RunDirectoryError, OSError):
            return cls((), tuple(machines))
        names: dict[str, str] = {}
        for run in fleet.runs:
            if (unit := unit_named(run.name)) is not None and len(unit.machines) == len(run.machines):
                names |= dict(zip(run.machines, unit.machines, strict=True))
        odd = {names[each] for each in fleet.odd_machines if each in names}
        measured = {*names.values()} - odd
        return cls(
            tuple(each for each in machines if each in odd), tuple(each for each in machines if each in measured)
        )
