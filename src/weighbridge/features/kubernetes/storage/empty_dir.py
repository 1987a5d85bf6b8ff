"""A folder of a pod on its node's disk."""

from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.model.plugin import Durability
from weighbridge.model.quantity import Size
from weighbridge.model.site import Mount, MountRequest
from weighbridge.model.storage import Storage, StorageOptions


class EmptyDirOptions(StorageOptions):
    """A pod that writes more than ``size`` is evicted."""

    kind: Literal["empty-dir"] = "empty-dir"
    size: Annotated[Size | None, Field(ge=2**20, description="Size limit; default: the size of the node's disk")] = (
        None
    )

    @property
    def capacity(self) -> int | None:
        return self.size


class EmptyDir(Storage):
    """The default of pods: kubelet makes it with the pod and removes it with that."""

    kind = "empty-dir"
    summary = "an emptyDir of the pod, on the disk of its node"
    options = EmptyDirOptions
    ways = ("pod volume",)

    def durability(self, options: Any) -> Durability:
        return "synchronous"

    def open(self, options: Any, request: MountRequest) -> AbstractContextManager[Mount]:
        limit = {} if options.size is None else {"sizeLimit": str(options.size)}
        return nullcontext(Mount("pod volume", manifest={"emptyDir": limit}))


PLUGIN = EmptyDir()
