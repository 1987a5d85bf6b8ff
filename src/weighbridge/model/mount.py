"""What a site has at `weighbridge.model.site.DATA`, and what is needed to make it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from weighbridge.model.site import Host, RunContext

Way = Literal["folder", "volume", "layer"]
"""How storage gets into a site: a folder of its host, a volume of the host's engine, or the container's own layer."""


@dataclass(frozen=True, slots=True)
class Mount:
    """``source`` is the folder as the host names it, or the volume's name; empty for the container's layer.

    ``servers``: the hosts other than the site's that hold its files, and cache them. ``facts``: what is in force of
    it there (export options, the file system of a disk), by name. ``filesystem``: the type that the site's mount
    table must show, where another one may be in its place; "": any. ``options``: those of
    the mount that it must show. ``cached_by``: who caches its files in memory for
    which no limit of the site's memory holds.
    """

    way: Way
    source: str = ""
    servers: tuple[Host, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    filesystem: str = ""
    cached_by: str = ""
    options: frozenset[str] = frozenset()


class Volumes(Protocol):
    """An engine that makes volumes."""

    def volume(self, name: str, options: Mapping[str, str] | None = None) -> AbstractContextManager[str]:
        """Make a volume for the site ``name``; gives the volume's own name, and removes it at the end.

        Empty, and on the engine's disk, unless there are ``options`` of the engine's local driver (``type``, ``o``,
        ``device``). Raises Unavailable.
        """


@dataclass(frozen=True, slots=True)
class MountRequest:
    """What an environment tells of a site: its host, its name, and the engine that it is in (None: in none).

    ``server``, which the runner adds: the host on which the study places servers of storage; None: on the site's.
    """

    run: RunContext
    host: Host
    name: str
    volumes: Volumes | None = None
    server: Host | None = None


@dataclass(frozen=True, slots=True)
class SiteStorage:
    """The storage that was chosen for a site, with its options; the environment opens it on the site's host."""

    kind: str
    open: Callable[[MountRequest], AbstractContextManager[Mount]]
    mounts: list[Mount] = field(default_factory=list, compare=False)
    """What was opened of it: the runner notes it here."""
    capacity: int | None = None
    """How many bytes it holds, where its options say so."""
