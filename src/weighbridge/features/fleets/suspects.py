"""Chooses the machines of a fleet that are measured again, and their partners, by the results so far."""

from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.errors import RunDirectoryError
from weighbridge.features.fleets.analysis import read_fleet
from weighbridge.features.fleets.folder import FleetFolder
from weighbridge.features.fleets.rounds import unit_named


@dataclass(frozen=True, slots=True)
class Suspects:
    """The outliers (``outliers``) in any metric, and the other machines, by their names in the fleet."""

    outliers: tuple[str, ...]
    good: tuple[str, ...]

    @classmethod
    def of(cls, folder: FleetFolder, machines: Sequence[str]) -> "Suspects":
        """Judge the machines by the runs of a folder, as the fleet's report does.

        There are no outliers with too few results. A machine that was never measured is not a good partner.
        """
        try:
            fleet = read_fleet(folder.path)
        except (RunDirectoryError, OSError):
            return cls((), tuple(machines))
        names: dict[str, str] = {}
        for run in fleet.runs:
            if (unit := unit_named(run.name)) is not None and len(unit.machines) == len(run.machines):
                names |= dict(zip(run.machines, unit.machines, strict=True))
        outliers = {names[each] for each in fleet.outlier_machines if each in names}
        measured = {*names.values()} - outliers
        return cls(
            tuple(each for each in machines if each in outliers), tuple(each for each in machines if each in measured)
        )
