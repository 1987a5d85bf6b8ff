"""Slices of systemd's in which an engine of root's has the containers of runs: at the top, beside native programs."""

import re
from collections.abc import Iterator

from weighbridge.linux.cgroup_files import MOUNT, TOP
from weighbridge.linux.cgroups import hierarchies
from weighbridge.linux.process import output
from weighbridge.model.leavings import DeadRun, Leavings, Leftover, RunFolders

_ABOVE = f"{TOP}.slice"
"""By its name systemd has a run's slice in this one (systemd.slice(5))."""
_OF_A_RUN = re.compile(rf"{TOP}-([0-9a-f]{{12}})\.slice")


def slice_of(run_id: str) -> str:
    """The name of the slice of a run's containers, which systemd makes when the first one is started."""
    return f"{TOP}-{run_id}.slice"


class RunSlices(Leavings):
    """The slices of runs, which systemd keeps when they are empty."""

    label = "slices of systemd"

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Each run's slice."""
        names = {path.name for base in hierarchies(MOUNT) for path in (base / _ABOVE).glob("*.slice")}
        for name in sorted(names):
            if (match := _OF_A_RUN.fullmatch(name)) is not None:
                yield Leftover(match[1], "slice", name)

    def remove(self, run: DeadRun) -> None:
        """Stop it, and the one that it is in where no other run has any. Raises OSError where it stays."""
        above = [folder for base in hierarchies(MOUNT) if (folder := base / _ABOVE).exists()]
        name = slice_of(run.id)
        if any((folder / name).exists() for folder in above):
            output(("systemctl", "stop", name))
        if stays := [str(folder / name) for folder in above if (folder / name).exists()]:
            raise OSError(f"systemd does not remove {stays[0]}: systemctl stop {name}")
        if above and not any([*folder.glob("*.slice")] for folder in above):
            output(("systemctl", "stop", _ABOVE))
