"""A directory of the user with a root filesystem."""

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.errors import Unavailable
from weighbridge.model.options import ABSOLUTE, External
from weighbridge.model.userland import UserlandSpec
from weighbridge.model.userland_source import SourceOptions, UserlandSource
from weighbridge.userland.products import archive


class DirectoryOptions(SourceOptions):
    """``path`` is copied when the run begins, and copied again after a file in it has changed."""

    kind: Literal["directory"] = "directory"
    path: Annotated[
        str, Field(min_length=1, description="The folder with the root filesystem"), ABSOLUTE, External.FILE
    ]


class DirectoryRoot(UserlandSource):
    """The source that reads the files of a directory and never changes them."""

    kind = "directory"
    summary = "a directory with a root filesystem"
    options = DirectoryOptions

    def key(self, options: Any, spec: UserlandSpec) -> str:
        """Return a digest of the names, types, owners, sizes and times of all files below it, similar to make."""
        top = Path(options.path)
        if not top.is_dir():
            raise Unavailable(f"userland: there is no directory {options.path}")
        digest = hashlib.sha256(b"directory")
        for folder, folders, files in os.walk(top):
            folders.sort()
            for name in sorted((*folders, *files)):
                path = Path(folder, name)
                status = path.lstat()
                # the size and times of a folder only show that its entries changed
                is_no_folder = not stat.S_ISDIR(status.st_mode)
                metadata = (str(path.relative_to(top)), status.st_mode, status.st_uid, status.st_gid)
                digest.update(
                    repr((*metadata, status.st_size * is_no_folder, status.st_mtime_ns * is_no_folder)).encode()
                )
        return digest.hexdigest()[:16]

    def build(
        self, options: Any, spec: UserlandSpec, work: Path, cache: Path, say: Callable[[str], None]
    ) -> Mapping[str, str]:
        """Archive the directory."""
        archive.pack(Path(options.path), work / archive.NAME)
        return {}


PLUGIN = DirectoryRoot()
