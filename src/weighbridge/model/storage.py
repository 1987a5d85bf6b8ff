"""What a storage back end has to be. One object per module of ``storage``; the registry finds it."""

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from weighbridge.model.options import Options
from weighbridge.model.plugin import Durability, Plugin, Readiness
from weighbridge.model.quantity import Size
from weighbridge.model.site import Mount, MountRequest, Way


class DiskOptions(Options):
    """A file system of its own in a sparse file on the host's disk, by a loop device past its page cache.

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
        """A name for a host whose engine is on it."""
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
    """Base of the options of a storage back end."""

    kind: str

    @property
    def engine_disk(self) -> DiskOptions | None:
        """The disk that holds all of the engine's data, where it is to have one of its own."""
        return None

    @property
    def capacity(self) -> int | None:
        """How many bytes it holds, where these options say so; None: what is free on its host's disk."""
        return self.engine_disk.size if self.engine_disk is not None else None

    @property
    def manifest(self) -> Mapping[str, Any]:
        """A volume of a pod as its manifest says it, where a cluster may refuse that; {}: it is as any other."""
        return {}

    @property
    def on_host_disk(self) -> bool:
        """Whether what is written to it takes room of its host's disk, be it of a disk of its own there."""
        return True


class Storage(Plugin):
    """What a site keeps its data on."""

    group = "storage"
    options: ClassVar[type[StorageOptions]]
    ways: ClassVar[tuple[Way, ...]]
    """How it can get into a site, the preferred way first; an environment says which of them its sites take."""
    served: ClassVar[bool] = False
    """Whether a server has it, on the host that the study's placement names for ``storage``, else on the site's."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names that studies have for it."""

    @abstractmethod
    def durability(self, options: Any) -> Durability:
        """What a power cut leaves of what was written and synced to it: ``unknown`` where somebody else decides."""

    def readiness(self, options: Any | None = None) -> Readiness:
        """Whether it can be had on this machine."""
        return Readiness(True)

    @abstractmethod
    def open(self, options: Any, request: MountRequest) -> AbstractContextManager[Mount]:
        """Make it, empty; gone when the context ends. Unavailable, in one sentence, where it cannot be had."""


def weaker(one: Durability, other: Durability) -> Durability:
    """Return the durability of a program on a storage: the weaker of both."""
    return min(one, other, key=_STRENGTH.index)
