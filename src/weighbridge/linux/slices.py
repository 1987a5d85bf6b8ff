"""Slices of systemd's in which an engine of root's has the containers of runs: at the top, beside native programs."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from weighbridge.linux import own_container
from weighbridge.linux.cgroup_files import MOUNT, TOP
from weighbridge.linux.cgroups import hierarchies
from weighbridge.linux.process import output
from weighbridge.model.leavings import NO_RUN, DeadRun, Leavings, Leftover, RunFolders
from weighbridge.model.names import RunId

_ABOVE = f"{TOP}.slice"
"""By its name systemd has a run's slice in this one (systemd.slice(5))."""
_OF_A_RUN = re.compile(rf"{TOP}-([0-9a-f]{{12}})\.slice")


def slice_of(run_id: RunId) -> str:
    """The name of the slice of a run's containers, which systemd makes when the first one is started."""
    return f"{TOP}-{run_id}.slice"


class RunSlices(Leavings):
    """The slices of runs, which systemd keeps when they are empty, and the one that they are in.

    Systemd stops all that is in a slice along with it. So the one above is stopped only where nothing is in it right
    before: a run that makes its own between that look and the stop, a few milliseconds, would lose its containers.
    """

    label = "systemd slices"
    owner_may_be_unknown = True

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Each run's slice, and the one above where it is empty: a run was killed before it stopped that."""
        for name in sorted({name for group in _groups(_ABOVE) for name in _inside(group)}):
            if (match := _OF_A_RUN.fullmatch(name)) is not None:
                yield Leftover(match[1], "slice", name)
        if _above_is_empty():
            yield Leftover(NO_RUN, "slice", _ABOVE)

    def remove(self, run: DeadRun) -> None:
        """Stop it, and the one that it is in where nothing else is in that. Raises OSError where one stays."""
        _stop(slice_of(run.id))
        if _above_is_empty():
            _stop(_ABOVE)

    def remove_ownerless(self, folders: RunFolders) -> None:
        """Stop the one above where nothing is in it. Raises OSError where it stays."""
        if _above_is_empty():
            _stop(_ABOVE)


def _groups(name: str) -> list[Path]:
    """Return the control groups of a slice, one for each hierarchy that has it."""
    path = Path(_ABOVE) if name == _ABOVE else Path(_ABOVE, name)
    return [group for base in hierarchies(MOUNT) if (group := base / path).exists()]


def _inside(group: Path) -> list[str]:
    """Return the names of the groups in a group; none where it has just gone."""
    with contextlib.suppress(OSError):
        return [path.name for path in group.iterdir() if path.is_dir()]
    return []


def _above_is_empty() -> bool:
    groups = _groups(_ABOVE)
    return bool(groups) and not any(map(_inside, groups))


def _stop(name: str) -> None:
    """Stop a slice, where there is one. Raises OSError where it stays."""
    if _groups(name):
        output(own_container.by_machine(("systemctl", "stop", name)))
    if stays := _groups(name):
        raise OSError(f"systemd did not remove {stays[0]}. Try: systemctl stop {name}")
