"""The writable layer of a container."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Literal

from weighbridge.model.plugin import Durability
from weighbridge.model.site import Mount, MountRequest
from weighbridge.model.storage import Disk, DiskOptions, Storage, StorageOptions


class LayerOptions(StorageOptions):
    """The image's layer of the engine's storage driver; with a ``disk``, all of the engine's data is on that disk."""

    kind: Literal["layer"] = "layer"
    disk: Disk = None

    @property
    def engine_disk(self) -> DiskOptions | None:
        return self.disk


class LayerStorage(Storage):
    """The container's whole root can then be written to, through the engine's storage driver."""

    kind = "layer"
    summary = "the container's own writable layer, through the engine's storage driver"
    options = LayerOptions
    ways = ("layer",)
    aliases: ClassVar = ("container", "overlay")

    def durability(self, options: Any) -> Durability:
        return "synchronous"

    def open(self, options: Any, request: MountRequest) -> AbstractContextManager[Mount]:
        return nullcontext(Mount("layer", facts={"disk": str(options.disk)} if options.disk else {}))


PLUGIN = LayerStorage()
