"""systemd slices for the containers of runs with root's engine: at the top level, like native programs."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from weighbridge.linux import own_container
from weighbridge.linux.cgroup_files import MOUNT, TOP
from weighbridge.linux.cgroups import hierarchies
from weighbridge.linux.process import output
from weighbridge.model.cleanup import NO_RUN, Cleanup, Leftover, OrphanedRun, RunFolders
from weighbridge.model.names import RunId

_ABOVE = f"{TOP}.slice"
"""The parent slice, which systemd derives from the name of a run's slice (systemd.slice(5))."""
_OF_A_RUN = re.compile(rf"{TOP}-([0-9a-f]{{12}})\.slice")


def slice_of(run_id: RunId) -> str:
    """Return the name of the slice of a run's containers, which systemd makes with the first container."""
    return f"{TOP}-{run_id}.slice"


class RunSlices(Cleanup):
    """The slices of runs, which systemd keeps when they are empty, and their parent.

    systemd stops everything in a slice along with it. So the parent is only stopped if it was empty right before: a
    run that makes its slice between the check and the stop, a few milliseconds, would lose its containers.
    """

    label = "systemd slices"
    owner_may_be_unknown = True

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Yield each run's slice, and the parent if it is empty because a run was killed before it stopped it."""
        for name in sorted({name for group in _groups(_ABOVE) for name in _inside(group)}):
            if (match := _OF_A_RUN.fullmatch(name)) is not None:
                yield Leftover(match[1], "slice", name)
        if _above_is_empty():
            yield Leftover(NO_RUN, "slice", _ABOVE)

    def remove(self, run: OrphanedRun) -> None:
        """Stop the slice, and the parent if it is then empty. Raises OSError if one remains."""
        _stop(slice_of(run.id))
        if _above_is_empty():
            _stop(_ABOVE)

    def remove_ownerless(self, folders: RunFolders) -> None:
        """Stop the parent if it is empty. Raises OSError if it remains."""
        if _above_is_empty():
            _stop(_ABOVE)


def _groups(name: str) -> list[Path]:
    path = Path(_ABOVE) if name == _ABOVE else Path(_ABOVE, name)
    return [group for base in hierarchies(MOUNT) if (group := base / path).exists()]


def _inside(group: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return [path.name for path in group.iterdir() if path.is_dir()]
    return []


def _above_is_empty() -> bool:
    groups = _groups(_ABOVE)
    return bool(groups) and not any(map(_inside, groups))


def _stop(name: str) -> None:
    if _groups(name):
        output(own_container.by_machine(("systemctl", "stop", name)))
    if remaining := _groups(name):
        raise OSError(f"systemd did not remove {remaining[0]}. Try: systemctl stop {name}")
