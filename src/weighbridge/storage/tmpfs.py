"""A file system in the memory of the site's host."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weighbridge.linux.filesystems import mounted
from weighbridge.model.plugin import Durability, Readiness
from weighbridge.model.quantity import Size
from weighbridge.model.site import Mount, MountRequest
from weighbridge.model.storage import Storage, StorageOptions


class TmpfsOptions(StorageOptions):
    """``size`` is how much it holds, in bytes: pages that are written are charged to the site's memory limit."""

    kind: Literal["tmpfs"] = "tmpfs"
    size: Annotated[Size, Field(ge=2**20, description="Its size")] = 2**30

    @property
    def capacity(self) -> int:
        return self.size

    @property
    def on_host_disk(self) -> bool:
        return False


class Tmpfs(Storage):
    """What disks cost is what is missing in it. A container's engine mounts it, a pod has it
    as an emptyDir, for other sites their host does."""

    kind = "tmpfs"
    summary = "memory of the host, freed when the environment is closed"
    options = TmpfsOptions
    ways = ("volume", "folder", "pod volume")
    programs: ClassVar = ("mount",)

    def durability(self, options: Any) -> Durability:
        return "none"

    def ready(self, options: Any | None = None) -> Readiness:
        """Return whether this user can mount it everywhere, or only in containers."""
        if os.geteuid() == 0:
            return Readiness(True)
        return Readiness(True, "only root can mount it elsewhere", caveat="in containers of a running engine")

    @contextmanager
    def open(self, options: Any, request: MountRequest) -> Iterator[Mount]:
        size = f"size={options.size}"
        if request.volumes is not None:
            with request.volumes.volume(request.name, {"type": "tmpfs", "device": "tmpfs", "o": size}) as volume:
                yield Mount("volume", volume, filesystem="tmpfs")
            return
        host = request.host
        if host.capabilities.pods is not None:
            memory = {"medium": "Memory", "sizeLimit": str(options.size)}
            yield Mount("pod volume", filesystem="tmpfs", manifest={"emptyDir": memory})
            return
        with host.data_folder(request.run, request.name) as folder, mounted(host, "tmpfs", "tmpfs", folder, (size,)):
            yield Mount("folder", str(folder), filesystem="tmpfs")


PLUGIN = Tmpfs()
