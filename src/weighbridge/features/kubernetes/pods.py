"""The capability of a host that is a node of a Kubernetes cluster: to start pods."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from weighbridge.model.userland import Userland


class Pods(Protocol):
    """A node of a Kubernetes cluster, on which pods can be started."""

    @property
    def node_name(self) -> str:
        """Its name in the cluster."""

    @property
    def namespace(self) -> str:
        """The namespace of its pods."""

    @property
    def owner(self) -> Any:
        """The owner of all objects of the run there (`ObjectOwner`)."""

    @property
    def cpu_manager(self) -> str:
        """Its policy for exclusive CPUs of pods (``none``, ``static``); "" if unknown."""

    @property
    def pulls(self) -> bool:
        """Whether the cluster pulls images from a registry, by the names that `image` returns."""

    @property
    def user(self) -> int:
        """The user id of the programs of its pods: 0 is root."""

    def image(self, userland: Userland) -> str:
        """Return the name of the image of a userland, copied there at first use. Raises Unavailable."""

    def claim(
        self, name: str, size: int, storage_class: str
    ) -> AbstractContextManager[tuple[str, Mapping[str, str]]]:
        """Claim a volume of a StorageClass ("": the default); yield its name and facts. Raises Unavailable."""

    def folder(self, name: str, path: str) -> AbstractContextManager[str]:
        """Create a folder for the site ``name`` below a path of the node, and remove it. Raises Unavailable."""

    def open_pod(self, request: Any) -> AbstractContextManager[Any]:
        """Start a `PodRequest`; yield a `RunningPod` until the context ends. Raises Unavailable."""

    def made(self, manifest: Mapping[str, Any]) -> AbstractContextManager[Any]:
        """Create an object from JSON, yield it as the cluster has it, and delete it. Raises Unavailable."""

    def patched(self, kind: str, name: str, changes: Mapping[str, Any]) -> Any:
        """Change an object of the run (a JSON merge patch); return the changed object. Raises Unavailable."""
