"""The protocol that all plug-ins share. `weighbridge.registry` finds them."""

from abc import ABC
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from weighbridge.model.cleanup import Cleanup
from weighbridge.model.options import Options


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether something can be used here, and if not, why and the one command that makes it ready.

    ``caveat`` is a restriction of something that is ready, in a few words ("emulated"); ``detail`` explains it.
    """

    ready: bool
    detail: str = ""
    remedy: str = ""
    caveat: str = ""


Group = Literal["", "engines", "sandboxes", "userlands", "virtual machines", "load generators", "storage", "network"]
"""A line of `doctor`; "" for no line."""
Durability = Literal["synchronous", "unknown", "asynchronous", "none"]
"""How much acknowledged data is on the disk: all of it, an unknown part, most of it, or none (only in memory)."""


class Plugin(ABC):
    """The attributes and methods that all plug-ins share."""

    kind: str
    """The name of the plug-in in a study file."""
    summary: str
    """One line about it, for lists and the reference."""
    options: ClassVar[type[Options]]
    """The pydantic model of its options in a study file. Every option needs a description."""
    group: ClassVar[Group] = ""
    """The line of ``doctor`` that counts it. If it is empty, ``doctor`` lists it by its own name."""
    programs: ClassVar[Collection[str]] = ()
    """The programs that it starts on this machine, as PATH finds them. ``doctor`` prints how to install missing ones.
    The package of each program, by distribution, is in ``linux/packages.txt``: add a line for a new program."""
    root_makes: ClassVar[str] = ""
    """The thing that only root can create, such as "guest hosts". ``doctor`` and ``plan`` report this before missing
    programs. Leave it empty if the plug-in works for every user, or if ``ready`` checks the user."""
    architectures: ClassVar[Collection[str]] = ()
    """The processors on which it works, by the names of uname(2), such as ``x86_64``. Empty means all."""
    installed_by: ClassVar[Mapping[str, str]] = {}
    """The command that installs each of its programs that no distribution packages, such as
    ``{"their-tool": "cargo install their-tool"}``."""
    launches: ClassVar[bool] = False
    """Whether it starts launchers of sites. Weighbridge then builds the launcher once."""

    cleanup: ClassVar[Sequence[Cleanup]] = ()
    """How ``weighbridge clean`` finds and removes the leftovers of a killed run that are specific to this plug-in.
    Processes, control groups, links and data folders of a run are found in any case. A kind of host sets
    ``weighbridge.linux.cleanup.OF_HOSTS``."""

    def needs_virtualisation(self, options: Any | None = None) -> bool:
        """Return whether it works only with hardware virtualisation (vmx, svm), with these options if any are given.

        On a machine without it, ``doctor`` reports that instead of missing programs. Examples: ``virtualbox/``,
        ``xen/``.
        """
        return False

    def unverified(self, options: Any | None = None) -> str:
        """Return the part that was never tested on real hardware, with these options if any are given, or "".

        The text is a part of a sentence: "machines were started, but no workload was run in one". ``doctor``,
        ``plan``, reports and the documentation show it.
        """
        return ""
