"""A volume of a StorageClass."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes.pods import Pods
from weighbridge.model.plugin import Durability
from weighbridge.model.quantity import Size
from weighbridge.model.site import Mount, MountRequest
from weighbridge.model.storage import Storage, StorageOptions


class ClaimOptions(StorageOptions):
    """``size`` is what is asked for; many drivers give more, and some do not keep to it."""

    kind: Literal["claim"] = "claim"
    storage_class: Annotated[
        str,
        Field(
            pattern=r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$",
            description="StorageClass; default: the cluster's default",
        ),
    ] = ""
    size: Annotated[Size, Field(ge=2**20, description="Its size")] = 2**30

    @property
    def capacity(self) -> int:
        return self.size


class Claim(Storage):
    """The volume that a PersistentVolumeClaim of the run is bound to, read and written by one node."""

    kind = "claim"
    summary = "a volume from a StorageClass of the cluster (PersistentVolumeClaim)"
    options = ClaimOptions
    ways = ("pod volume",)

    def durability(self, options: Any) -> Durability:
        """Return "unknown", because the driver decides which synced data is on a disk."""
        return "unknown"

    @contextmanager
    def open(self, options: Any, request: MountRequest) -> Iterator[Mount]:
        pods: Pods | None = request.host.capabilities.pods
        if pods is None:
            raise Unavailable(f"{request.name} does not run in a pod: use 'storage: directory'")
        with pods.claim(request.name, options.size, options.storage_class) as (claim, facts):
            manifest = {"persistentVolumeClaim": {"claimName": claim}}
            yield Mount("pod volume", facts=facts, manifest=manifest)


PLUGIN = Claim()
