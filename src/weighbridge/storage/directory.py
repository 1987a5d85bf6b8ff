"""A directory on the disk of the site's host."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

from weighbridge.model.mount import Mount, MountRequest
from weighbridge.model.plugin import Durability
from weighbridge.model.storage import Storage, StorageOptions


class DirectoryOptions(StorageOptions):
    """It has no options: it is where the host keeps its data."""

    kind: Literal["directory"] = "directory"


class Directory(Storage):
    """The default of native sites; a container mounts it (a bind mount)."""

    kind = "directory"
    summary = "a directory on the disk of the site's host"
    options = DirectoryOptions
    ways = ("folder",)
    aliases: ClassVar = ("bind",)

    def durability(self, options: Any) -> Durability:
        """What was synced is on the disk."""
        return "synchronous"

    @contextmanager
    def open(self, options: Any, request: MountRequest) -> Iterator[Mount]:
        """A new, empty one."""
        with request.host.data_folder(request.run, request.name) as folder:
            yield Mount("folder", str(folder))


PLUGIN = Directory()
