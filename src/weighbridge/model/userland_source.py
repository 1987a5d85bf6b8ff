"""The protocol of sources of root filesystems: where the measured programs come from."""

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
    """The base class of the options of each source."""

    kind: str
    """The name of the source."""


def own_userland_key(environment: str) -> str:
    """Return the place in a study of an environment's own userland."""
    return f"environments.{environment}.userland"


class UserlandSource(Plugin):
    """A source of root filesystems. Each archive is built once and cached under its key."""

    group = "userlands"
    options: ClassVar[type[SourceOptions]]
    """The model of its options."""
    packed: ClassVar[bool] = True
    """Whether it is an archive, which engines, guests and other machines can receive."""

    shared: ClassVar[bool] = False
    """Whether other users of the machine can enter the cached files. False for images, because their files can have
    the setuid bit of root and are never updated."""

    build_s: ClassVar[float] = 15.0
    """About how many seconds a build takes. ``plan`` uses them."""

    from_registry: ClassVar[bool] = False
    """Whether its image can come from a registry."""

    def reference(self, options: Any) -> str:
        """Return the name and digest of its image in a registry, or "" if there is none."""
        return ""

    def existing(self, options: Any) -> Userland | None:
        """Return the root filesystem if it exists without a build, or None if it must be built."""
        return None

    @abstractmethod
    def key(self, options: Any, spec: UserlandSpec) -> str:
        """Return its name in the cache: sixteen hexadecimal digits that depend on the options and the contents.

        Raises Unavailable if the source is missing, and UserlandError if it is not valid.
        """

    def cannot_build(self, options: Any, spec: UserlandSpec, cache: Path) -> tuple[str, str] | None:
        """Return why this user cannot build it and what would help, or None if the user can.

        Without ``options`` the answer is about every root filesystem of this source.
        """
        return None

    def lacks(self, options: Any, program: str) -> tuple[str, str] | None:
        """Return why it cannot contain a program that a command names by path and what would help, or None."""
        return None

    def recipe(self, options: Any, spec: UserlandSpec) -> Recipe:
        """Return how to build an image of it by hand, for ``weighbridge kit``."""
        return Recipe("its files are on one machine: archive them there, and `docker import` the archive")

    def process(self, options: Any, root: Path) -> ProcessDefaults:
        """Return the variables, folder and user with which its programs start. ``root`` is its root folder.

        Weighbridge asks once, after the build.
        """
        return ProcessDefaults()

    def entry_point(self, options: Any) -> tuple[str, ...]:
        """Return the entry point: the words in front of every command in it. Raises Unavailable, UserlandError."""
        return ()

    def default_command(self, options: Any) -> tuple[str, ...]:
        """Return the default command, which follows the entry point if the study names no command.

        Raises Unavailable, UserlandError.
        """
        return ()

    @abstractmethod
    def build(
        self, options: Any, spec: UserlandSpec, work: Path, cache: Path, say: Callable[[str], None]
    ) -> Mapping[str, str]:
        """Write ``work/root.tar``, and return the versions of the parts that are not in Debian's package database.

        ``say`` prints progress. Raises Unavailable, UserlandError, DiskFull.
        """
