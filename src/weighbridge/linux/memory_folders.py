"""Folders in memory that sites have as their own, of those who may mount nothing: each below /dev/shm, as its run's.

Portable: the agent of an ssh host has this module too.
"""

from collections.abc import Iterator
from pathlib import Path

from weighbridge.linux.deletion import OwnFolder, remove_trees
from weighbridge.linux.folders import is_own_folder
from weighbridge.model.leavings import DeadRun, Leavings, Leftover, RunFolders
from weighbridge.model.names import RunId

MEMORY = Path("/dev/shm")  # noqa: S108 - of each site one folder, which nobody else may enter
_PREFIX = "weighbridge_"
"""No "-": podman's folders have that."""


def memory_of(run_id: RunId, site: str) -> Path:
    """Return the folder in memory of a site of a run."""
    return MEMORY / f"{_PREFIX}{run_id}-{site}"


class MemoryFolders(Leavings):
    """This user's folders of sites in memory."""

    label = "folders in memory"
    portable = True

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Each site's folder."""
        for path in _folders("*"):
            yield Leftover(path.name[len(_PREFIX) :].partition("-")[0], "folder in memory", str(path))

    def remove(self, run: DeadRun) -> None:
        """Remove those of the run. OSError names what stays."""
        remove_trees(*(OwnFolder.of(MEMORY, path.name) for path in _folders(run.id)))


def _folders(run_id: str) -> list[Path]:
    """What others put there is theirs."""
    return [path for path in sorted(MEMORY.glob(f"{_PREFIX}{run_id}-*")) if is_own_folder(path)]
