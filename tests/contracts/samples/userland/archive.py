"""A sample: an archive of the user's."""

import hashlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.errors import Unavailable
from weighbridge.model.options import External
from weighbridge.model.userland import UserlandSpec
from weighbridge.model.userland_source import SourceOptions, UserlandSource


class ArchiveOptions(SourceOptions):
    """``file`` is a tar archive of a root file system."""

    kind: Literal["archive"] = "archive"
    file: Annotated[str, Field(description="A tar archive"), External.FILE]


class Archive(UserlandSource):
    """It is there already, and only copied."""

    kind = "archive"
    summary = "a tar archive of a root file system"
    options = ArchiveOptions

    def key(self, options: Any, spec: UserlandSpec) -> str:
        try:
            return hashlib.sha256(Path(options.file).read_bytes()).hexdigest()[:16]
        except OSError as error:
            raise Unavailable(f"userland: {error}") from error

    def build(
        self, options: Any, spec: UserlandSpec, work: Path, cache: Path, say: Callable[[str], None]
    ) -> Mapping[str, str]:
        shutil.copy(options.file, work / "root.tar")
        return {}


PLUGIN = Archive()
