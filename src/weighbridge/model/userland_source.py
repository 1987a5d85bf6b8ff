"""What a source of userlands has to be. One object per module of ``userland/sources``; the registry finds it."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from weighbridge.model.by_hand import Recipe
from weighbridge.model.command import ProcessDefaults
from weighbridge.model.options import Options
from weighbridge.model.plugin import Plugin
from weighbridge.model.userland import Userland, UserlandSpec


class SourceOptions(Options):
    """Base of the options of each source."""

    kind: str


def own_userland_key(environment: str) -> str:
    """The place in a study of the userland that an environment has to itself."""
    return f"environments.{environment}.userland"


class UserlandSource(Plugin):
    """Gives the root file system with the programs that are measured. Its archive is built once under its key."""

    group = "userlands"
    options: ClassVar[type[SourceOptions]]
    packed: ClassVar[bool] = True
    """Whether there is an archive of it, which engines, guests and other machines can have."""

    shared: ClassVar[bool] = False
    """Whether a kept one may be entered by other users of the machine: not where its files are an image's, which may
    have the setuid bit of root, and are never brought up to date."""

    from_registry: ClassVar[bool] = False
    """Whether a registry may have the image that it is read from."""

    def reference(self, options: Any) -> str:
        """The name and digest by which a registry has its image; "": none is known."""
        return ""

    def existing(self, options: Any) -> Userland | None:
        """The userland, where it needs not be built; None where it must be."""
        return None

    @abstractmethod
    def key(self, options: Any, spec: UserlandSpec) -> str:
        """The name under which it is cached: sixteen hexadecimal digits of what is asked for.

        Raises Unavailable where what is asked for is not there, UserlandError where it is wrong.
        """

    def cannot_build(self, options: Any, spec: UserlandSpec, cache: Path) -> tuple[str, str] | None:
        """Why this user cannot build it, and what helps; None: it can. Without ``options``: why none at all."""
        return None

    def lacks(self, options: Any, program: str) -> tuple[str, str] | None:
        """Why it cannot have a program that a command names by a path, and what helps; None: it may have it."""
        return None

    def recipe(self, options: Any, spec: UserlandSpec) -> Recipe:
        """How an image with its programs is built by hand, without Weighbridge, for ``weighbridge kit``."""
        return Recipe("its files are on one machine: archive them there, and `docker import` the archive")

    def process(self, options: Any, root: Path) -> ProcessDefaults:
        """What its programs are started with; ``root``: its root folder. Asked once, when it has been built."""
        return ProcessDefaults()

    def entry_point(self, options: Any) -> tuple[str, ...]:
        """The words that come before those of a program in it; () where there are none.

        Raises Unavailable, UserlandError.
        """
        return ()

    def default_command(self, options: Any) -> tuple[str, ...]:
        """The words that follow those of `entry_point` where nobody gives others; () where there are none.

        Raises Unavailable, UserlandError.
        """
        return ()

    @abstractmethod
    def build(
        self, options: Any, spec: UserlandSpec, work: Path, cache: Path, say: Callable[[str], None]
    ) -> Mapping[str, str]:
        """Make ``work/root.tar``; gives the versions of what Debian's package database does not know.

        Raises Unavailable, UserlandError, DiskFull.
        """
