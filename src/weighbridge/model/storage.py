"""The protocol of storage: where a site keeps its data."""

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from weighbridge.model.options import Options
from weighbridge.model.plugin import Durability, Plugin, Readiness
from weighbridge.model.quantity import Size
from weighbridge.model.site import Mount, MountRequest, StorageMode


class DiskOptions(Options):
    """A separate file system in a sparse file on the host's disk, through a loop device that bypasses its page cache.

    ``size`` is in bytes.
    """

    filesystem: Annotated[
        Literal["ext4", "xfs", "btrfs"],
        Field(
            description="File system with mkfs's defaults; ext4 is fully initialised and reserves nothing for root"
        ),
    ]
    size: Annotated[
        Size, Field(ge=512 * 2**20, le=2**44, description="Size of the file system; its file is sparse")
    ] = 2**32

    def __str__(self) -> str:
        """Return the disk as text, for facts."""
        by = "by a loop device past its page cache"
        return f"{self.filesystem} of {self.size / 2**30:g} GiB in a file on the host's disk, {by}"

    @property
    def purpose(self) -> str:
        """The name of a host whose engine is on this disk."""
        return f"{self.filesystem}-{self.size >> 20}"


def _from_name(raw: Any) -> Any:
    return {"filesystem": raw} if isinstance(raw, str) else raw


Disk = Annotated[
    DiskOptions | None,
    BeforeValidator(_from_name, json_schema_input_type=DiskOptions | Literal["ext4", "xfs", "btrfs"] | None),
    Field(description="A file system made for this storage; default: the host's disk"),
]
"""``disk: xfs``, or ``disk: {filesystem: xfs, size: 8GiB}``."""
_STRENGTH: tuple[Durability, ...] = ("none", "asynchronous", "unknown", "synchronous")


class StorageOptions(Options):
    """The base class of a storage's options."""

    kind: str
    """The name of the storage."""

    @property
    def engine_disk(self) -> DiskOptions | None:
        """Return the separate disk that holds all of the engine's data, or None."""
        return None

    @property
    def capacity(self) -> int | None:
        """Return its size in bytes, or None if it can fill the free space of its host's disk."""
        return self.engine_disk.size if self.engine_disk is not None else None

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Return the manifest of its pod volume if a cluster can refuse it, else an empty mapping."""
        return {}

    @property
    def on_host_disk(self) -> bool:
        """Return whether its data uses space on its host's disk."""
        return True


class Storage(Plugin):
    """A place for the data of a site: it appears at ``/srv``."""

    group = "storage"
    options: ClassVar[type[StorageOptions]]
    """The model of its options."""
    ways: ClassVar[tuple[StorageMode, ...]]
    """The ways in which it can be mounted into a site, the preferred way first. Each environment lists the ways that
    it supports."""
    served: ClassVar[bool] = False
    """Whether a server holds the data. The server runs on the host that the study's placement names for ``storage``,
    or on the site's host."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names for it in studies."""

    @abstractmethod
    def durability(self, options: Any) -> Durability:
        """Return how durable data is that was written and synced: ``unknown`` if something else decides that.

        ``weighbridge durability`` checks the claim.
        """

    def ready(self, options: Any | None = None) -> Readiness:
        """Return whether this machine can provide it, with these options if any are given. Changes nothing."""
        return Readiness(True)

    @abstractmethod
    def open(self, options: Any, request: MountRequest) -> AbstractContextManager[Mount]:
        """Create the storage, empty, on ``request.host``, and remove it when the context ends.

        Start every process through the host, so that the storage also works on ssh hosts. Raises Unavailable with one
        sentence if the storage cannot be created.
        """


def weaker(one: Durability, other: Durability) -> Durability:
    """Return the durability of a program on a storage: the weaker of both."""
    return min(one, other, key=_STRENGTH.index)
