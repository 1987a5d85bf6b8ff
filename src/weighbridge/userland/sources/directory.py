"""A directory of the user's that holds a root file system."""

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.errors import Unavailable
from weighbridge.model.options import ABSOLUTE, Brings
from weighbridge.model.userland import UserlandSpec
from weighbridge.model.userland_source import SourceOptions, UserlandSource
from weighbridge.userland.products import archive


class DirectoryOptions(SourceOptions):
    """``path`` is copied as it is when the run begins; another one is built when a file in it has changed."""

    kind: Literal["directory"] = "directory"
    path: Annotated[
        str, Field(min_length=1, description="The folder with the root filesystem"), ABSOLUTE, Brings.FILE
    ]


class DirectoryRoot(UserlandSource):
    """Its files are read, and never changed."""

    kind = "directory"
    summary = "a directory with a root filesystem"
    options = DirectoryOptions

    def key(self, options: Any, spec: UserlandSpec) -> str:
        """The names, types, owners, sizes and times of all files below it, as make would look at them."""
        top = Path(options.path)
        if not top.is_dir():
            raise Unavailable(f"userland: there is no directory {options.path}")
        digest = hashlib.sha256(b"directory")
        for folder, folders, files in os.walk(top):
            folders.sort()
            for name in sorted((*folders, *files)):
                path = Path(folder, name)
                about = path.lstat()
                is_no_folder = not stat.S_ISDIR(
                    about.st_mode
                )  # those of a folder say only that something in it changed
                what = (str(path.relative_to(top)), about.st_mode, about.st_uid, about.st_gid)
                digest.update(repr((*what, about.st_size * is_no_folder, about.st_mtime_ns * is_no_folder)).encode())
        return digest.hexdigest()[:16]

    def build(
        self, options: Any, spec: UserlandSpec, work: Path, cache: Path, say: Callable[[str], None]
    ) -> Mapping[str, str]:
        """Archive it."""
        archive.pack(Path(options.path), work / archive.NAME)
        return {}


PLUGIN = DirectoryRoot()
