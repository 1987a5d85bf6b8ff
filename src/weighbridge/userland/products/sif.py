"""The root filesystem as the single file of an Apptainer container: a squashfs (SIF), which Apptainer builds once."""

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
    """Return the file with the root filesystem, made if needed. Raises Unavailable, UserlandError, DiskFull.

    ``builder`` returns the start of Apptainer's command line, given a folder for its own files.
    """
    userland.archive()  # fails for the machine's own root filesystem
    file = cache / _KIND / f"{userland.digest[:16]}-{_BUILDER}" / NAME

    def make(work: Path) -> None:
        private = work / "apptainer"
        private.mkdir()
        must(*builder(private), "build", str(work / NAME), str(userland.root), program="apptainer")
        build_once.discard(private)

    return build_once.ensure_file(file, "Apptainer's image", say, make)
