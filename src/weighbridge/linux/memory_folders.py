"""Folders in memory for sites of users who cannot mount file systems: subfolders of /dev/shm.

This module is portable: the agent of an ssh host also uses it.
"""

from collections.abc import Iterator
from pathlib import Path

from weighbridge.linux.deletion import OwnFolder, remove_trees
from weighbridge.linux.folders import is_own_folder
from weighbridge.model.cleanup import Cleanup, Leftover, OrphanedRun, RunFolders
from weighbridge.model.names import RunId

MEMORY = Path("/dev/shm")  # noqa: S108 - one folder per site, which no other user can enter
_PREFIX = "weighbridge_"
"""The prefix of the folders; it has no "-", unlike podman's folders."""


def memory_of(run_id: RunId, site: str) -> Path:
    """Return the folder in memory of a site of a run."""
    return MEMORY / f"{_PREFIX}{run_id}-{site}"


class MemoryFolders(Cleanup):
    """This user's folders of sites in memory."""

    label = "folders in memory"
    portable = True

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Yield each site's folder."""
        for path in _folders("*"):
            yield Leftover(path.name[len(_PREFIX) :].partition("-")[0], "folder in memory", str(path))

    def remove(self, run: OrphanedRun) -> None:
        """Remove the folders of the run. Raises OSError with the remaining ones."""
        remove_trees(*(OwnFolder.of(MEMORY, path.name) for path in _folders(run.id)))


def _folders(run_id: str) -> list[Path]:
    """Return this user's folders of a run; folders of other users are skipped."""
    return [path for path in sorted(MEMORY.glob(f"{_PREFIX}{run_id}-*")) if is_own_folder(path)]
