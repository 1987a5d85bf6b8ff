"""What all plug-ins have in common: one object per module, which the registry finds."""

from abc import ABC
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from weighbridge.model.leavings import Leavings
from weighbridge.model.options import Options


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether something can be used here, and if not, why and the one command that makes it ready.

    ``caveat``: in a few words, how what is ready is less than one would take it for ("emulated"), which ``detail``
    explains.
    """

    ready: bool
    detail: str = ""
    remedy: str = ""
    caveat: str = ""


Group = Literal["", "engines", "userlands", "virtual machines", "load generators", "storage", "network"]
"""A line of `doctor`; "": none."""
Durability = Literal["synchronous", "unknown", "asynchronous", "none"]
"""All of what was acknowledged is on the disk; nobody can tell; most of it is; it is in memory alone."""


class Plugin(ABC):
    """Common to all plug-ins: the ``kind`` that a study file names, one line about it, its options."""

    kind: ClassVar[str]
    summary: ClassVar[str]
    options: ClassVar[type[Options]]
    group: ClassVar[Group] = ""
    """What `doctor` counts it among, where it does not name all by themselves."""
    programs: ClassVar[Collection[str]] = ()
    """The programs that it starts on this machine itself, as PATH finds them.

    Which package has one is known to `weighbridge.linux.packages`, for each distribution.
    """
    root_makes: ClassVar[str] = ""
    """What only root can create of it ("guest hosts"); empty: it works for every user, or `readiness` knows for whom.

    Told before its programs that are not installed: nobody is to install what is of no use then.
    """
    architectures: ClassVar[Collection[str]] = ()
    """Those of this machine, by uname(2)'s names, that it works on; empty: all."""
    installed_by: ClassVar[Mapping[str, str]] = {}
    """For those of its programs that are in no distribution's packages: the command that installs each."""
    launches: ClassVar[bool] = False
    """Whether it brings up launchers of sites, which are built here once."""

    leavings: ClassVar[Sequence[Leavings]] = ()
    """What may stay on a machine of what an environment, a storage or a kind of host makes there, if a run is killed.

    Beside what its host knows of everybody's, where it is not a host: processes, control groups, links, data folders.
    """

    def needs_virtualisation(self, options: Any | None = None) -> bool:
        """Whether it works only with hardware virtualisation (vmx, svm), with these options where some are given.

        Where the machine has none, that is told in place of what else is missing: installing it would be of no use.
        """
        return False

    def unverified(self, options: Any | None = None) -> str:
        """What of it has never been seen to work on real hardware, with these options where some are given; else "".

        A part of a sentence: "machines were started, but no workload was run in one".
        """
        return ""
