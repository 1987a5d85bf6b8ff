"""What a site has at `weighbridge.model.site.DATA`, and what is needed to make it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from weighbridge.model.site import Host, RunContext

Way = Literal["folder", "volume", "layer"]
"""How storage gets into a site: a folder of its host, a volume of the host's engine, or the container's own layer."""


@dataclass(frozen=True, slots=True)
class Mount:
    """``source`` is the folder as the host names it, or the volume's name; empty for the container's layer."""

    way: Way
    source: str = ""


class Volumes(Protocol):
    """An engine that makes volumes."""

    def volume(self, name: str) -> AbstractContextManager[str]:
        """Make an empty volume for the site ``name``; gives the volume's own name, and removes it at the end."""


@dataclass(frozen=True, slots=True)
class MountRequest:
    """What an environment tells of a site: its host, its name, and the engine that it is in (None: in none)."""

    run: RunContext
    host: Host
    name: str
    volumes: Volumes | None = None


@dataclass(frozen=True, slots=True)
class SiteStorage:
    """The storage that was chosen for a site, with its options; the environment opens it on the site's host."""

    kind: str
    open: Callable[[MountRequest], AbstractContextManager[Mount]]
