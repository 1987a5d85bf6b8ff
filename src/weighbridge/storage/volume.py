"""A volume of the container engine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

from weighbridge.engines.client import UsersEngineContents, readiness
from weighbridge.errors import Unavailable
from weighbridge.model.plugin import Durability, Readiness
from weighbridge.model.site import Mount, MountRequest
from weighbridge.model.storage import Disk, DiskOptions, Storage, StorageOptions


class VolumeOptions(StorageOptions):
    """It is a volume of the engine's default driver; with a ``disk`` all of the engine's data is on that."""

    kind: Literal["volume"] = "volume"
    disk: Disk = None

    @property
    def engine_disk(self) -> DiskOptions | None:
        return self.disk


class Volume(Storage):
    """The default of containers, as images of databases ask for: it is on the engine's disk itself.

    Through a container's layer a database works otherwise than natively: MariaDB does not find the disk's block size,
    and buffers its log.
    """

    kind = "volume"
    summary = "a volume of the container engine, on its disk"
    cleanup: ClassVar = (UsersEngineContents(),)
    options = VolumeOptions
    ways = ("volume",)

    def durability(self, options: Any) -> Durability:
        return "synchronous"

    def ready(self, options: Any | None = None) -> Readiness:
        """Return whether an engine answers or can be started."""
        return readiness()

    @contextmanager
    def open(self, options: Any, request: MountRequest) -> Iterator[Mount]:
        if request.volumes is None:
            raise Unavailable(f"{request.name} has no engine that could create a volume: use 'storage: directory'")
        disk = options.disk
        facts, filesystem = ({"disk": str(disk)}, disk.filesystem) if disk else ({}, "")
        with request.volumes.volume(request.name) as volume:
            yield Mount("volume", volume, facts=facts, filesystem=filesystem)


PLUGIN = Volume()
