"""A sample: storage in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weighbridge.errors import Unavailable
from weighbridge.model.command import Command
from weighbridge.model.plugin import Durability
from weighbridge.model.quantity import Size
from weighbridge.model.site import Mount, MountRequest
from weighbridge.model.storage import Storage, StorageOptions


class MemoryOptions(StorageOptions):
    """``size`` is how much it holds, in bytes."""

    kind: Literal["memory"] = "memory"
    size: Annotated[Size, Field(ge=2**20, description="How much it holds")] = 2**28


class Memory(Storage):
    """What disks cost is what is missing in it."""

    kind = "memory"
    summary = "memory of the site's host"
    options = MemoryOptions
    ways = ("folder",)
    programs: ClassVar = ("mount",)

    def durability(self, options: Any) -> Durability:
        return "none"

    @contextmanager
    def open(self, options: Any, request: MountRequest) -> Iterator[Mount]:
        host = request.host
        with host.data_folder(request.run, request.name) as folder:
            mounted = host.run(
                Command(("mount", "-t", "tmpfs", "-o", f"size={options.size}", "tmpfs", str(folder)), 10)
            )
            if mounted.returncode != 0:
                raise Unavailable(f"{request.name}: {mounted.last_words}")
            try:
                yield Mount("folder", str(folder))
            finally:
                host.run(Command(("umount", "--lazy", str(folder)), 10))


PLUGIN = Memory()
