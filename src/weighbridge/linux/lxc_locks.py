"""The locks that LXC keeps for its containers, in folders that it never removes."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from weighbridge.linux.deletion import OwnFolder, remove_trees
from weighbridge.linux.folders import is_own_folder
from weighbridge.model.cleanup import Cleanup, Leftover, OrphanedRun, RunFolders

LOCKS = Path("/run/lxc/lock")
"""The folder of root's locks."""


def lock_folder(containers: Path) -> Path:
    """Return the folder with the locks of containers whose folder (``lxc-start -P``) is here or below."""
    return LOCKS / containers.absolute().relative_to("/")


def remove(containers: Path) -> None:
    """Remove the locks of containers here or below, and their parents that are then empty. Raises OSError."""
    folder = lock_folder(containers)
    if is_own_folder(folder):
        remove_trees(OwnFolder.at(folder))
    for above in folder.parents:
        if above in LOCKS.parents[1:]:
            break
        with contextlib.suppress(OSError):
            above.rmdir()


class LxcLocks(Cleanup):
    """The locks of a run's containers, whose folders are among the run's data."""

    label = "LXC locks"
    portable = host_knows_owner = True

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Yield each run's folder."""
        runs = lock_folder(folders.data)
        with contextlib.suppress(OSError):
            yield from (Leftover(path.name, "lock", str(path)) for path in sorted(runs.iterdir()))

    def remove(self, run: OrphanedRun) -> None:
        """Remove the folder of the run."""
        remove(run.data)
