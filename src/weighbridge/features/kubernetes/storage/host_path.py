"""A folder below a path of a pod's node."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes.pods import Pods
from weighbridge.model.options import External
from weighbridge.model.plugin import Durability
from weighbridge.model.site import Mount, MountRequest
from weighbridge.model.storage import Storage, StorageOptions


class HostPathOptions(StorageOptions):
    """``path`` exists on the node; a folder is made in it for each site, and removed with all in it."""

    kind: Literal["host-path"] = "host-path"
    path: Annotated[
        str,
        Field(pattern=r"^/[^:]*[^:/]$", max_length=200, description="A folder on a disk of the node"),
        External.NODE_FOLDER,
    ]

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Return the folder, which must exist."""
        return {"hostPath": {"path": self.path, "type": "Directory"}}


class HostPath(Storage):
    """A disk of the node itself, without a driver of the cluster's. Many clusters allow it to few namespaces."""

    kind = "host-path"
    summary = "a folder on the pod's node (hostPath), if the cluster allows it"
    options = HostPathOptions
    ways = ("pod volume",)

    def durability(self, options: Any) -> Durability:
        return "synchronous"

    @contextmanager
    def open(self, options: Any, request: MountRequest) -> Iterator[Mount]:
        """Yield a folder that is created with the pod and removed after it."""
        pods: Pods | None = request.host.capabilities.pods
        if pods is None:
            raise Unavailable(f"{request.name} does not run in a pod: use 'storage: directory'")
        with pods.folder(request.name, options.path) as folder:
            yield Mount("pod volume", folder, facts={"path": options.path}, manifest=options.manifest)


PLUGIN = HostPath()
