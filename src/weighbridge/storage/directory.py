"""A directory on the disk of the site's host."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

from weighbridge.errors import Unavailable
from weighbridge.linux.filesystems import disk_in
from weighbridge.model.plugin import Durability
from weighbridge.model.site import Mount, MountRequest
from weighbridge.model.storage import Disk, Storage, StorageOptions


class StorageDirectoryOptions(StorageOptions):
    """A folder where the host keeps its data, or on its own ``disk`` there."""

    kind: Literal["directory"] = "directory"
    disk: Disk = None

    @property
    def capacity(self) -> int | None:
        return self.disk.size if self.disk is not None else None


class Directory(Storage):
    """The default of native sites; a container mounts it (a bind mount)."""

    kind = "directory"
    summary = "a directory on the disk of the host"
    options = StorageDirectoryOptions
    ways = ("folder",)
    aliases: ClassVar = ("bind",)

    def durability(self, options: Any) -> Durability:
        return "synchronous"

    @contextmanager
    def open(self, options: Any, request: MountRequest) -> Iterator[Mount]:
        host, disk = request.host, options.disk
        if host.capabilities.pods is not None:
            if disk is not None:
                raise Unavailable(
                    f"host {host.name} is a node of a cluster, where Weighbridge does not create disks: remove 'disk'"
                )
            yield Mount("pod volume", manifest={"emptyDir": {}})
            return
        with host.data_folder(request.run, request.name) as folder:
            if disk is None:
                yield Mount("folder", str(folder))
                return
            with disk_in(host, folder, disk) as at:
                yield Mount("folder", str(at), facts={"disk": str(disk)}, filesystem=disk.filesystem)


PLUGIN = Directory()
