"""The userland as the one file of which Apptainer makes containers: a squashfs (SIF). Apptainer builds it once."""

from collections.abc import Callable
from pathlib import Path

from weighbridge import build_once
from weighbridge.model.userland import Userland
from weighbridge.userland.commands import must

NAME = "userland.sif"
_KIND = "disks"
_BUILDER = "sif1"


def ensure(
    userland: Userland, cache: Path, say: Callable[[str], None], builder: Callable[[Path], tuple[str, ...]]
) -> Path:
    """Return the file with the userland, made if need be. Raises Unavailable, UserlandError, DiskFull.

    ``builder`` gives the start of Apptainer's command line, with a folder in which it may keep what is its own.
    """
    userland.archive()  # a machine's own root file system is no image
    file = cache / _KIND / f"{userland.digest[:16]}-{_BUILDER}" / NAME

    def make(work: Path) -> None:
        own = work / "apptainer"
        own.mkdir()
        must(*builder(own), "build", str(work / NAME), str(userland.root), program="apptainer")
        build_once.discard(own)

    return build_once.ensure_file(file, "Apptainer's image", say, make)
