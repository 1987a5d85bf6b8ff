"""What a storage back end has to be. One object per module of ``storage``; the registry finds it."""

from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Annotated, Any, ClassVar

from pydantic import Field, SerializeAsAny

from weighbridge.model.disk import DiskOptions
from weighbridge.model.mount import Mount, MountRequest, Way
from weighbridge.model.options import Options, by_kind
from weighbridge.model.plugin import Durability, Plugin, Readiness

_STRENGTH: tuple[Durability, ...] = ("none", "asynchronous", "synchronous")


class StorageOptions(Options):
    """Base of what a study file may say about a storage back end."""

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
    def on_host_disk(self) -> bool:
        """Whether what is written to it takes room of its host's disk, be it of a disk of its own there."""
        return True


class EnvironmentOptions(Options):
    """Base of the options of environments whose sites can have storage."""

    storage: Annotated[
        SerializeAsAny[StorageOptions] | None,
        by_kind("storage", "a storage"),
        Field(description="What /srv of its sites is on: a kind, or a kind with its options"),
    ] = None


class Storage(Plugin):
    """What a site keeps its data on."""

    options: ClassVar[type[StorageOptions]]
    ways: ClassVar[tuple[Way, ...]]
    """How it can get into a site, the preferred way first; an environment says which of them its sites take."""
    served: ClassVar[bool] = False
    """Whether a server has it, on the host that the study's placement names for ``storage``, else on the site's."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names that studies have for it."""

    @abstractmethod
    def durability(self, options: Any) -> Durability:
        """What a power cut leaves of what was written and synced to it."""

    def readiness(self, options: Any | None = None) -> Readiness:
        """Whether it can be had on this machine."""
        return Readiness(True)

    @abstractmethod
    def open(self, options: Any, request: MountRequest) -> AbstractContextManager[Mount]:
        """Make it, empty; gone when the context ends. Unavailable, in one sentence, where it cannot be had."""


def weaker(one: Durability, other: Durability) -> Durability:
    """Return the durability of a program on a storage: the weaker of both."""
    return min(one, other, key=_STRENGTH.index)
