"""What a killed run leaves on a machine: what there is of it, whose it is, and how it goes.

No library is used here, as the agent of an ssh host has this module too.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from weighbridge.errors import WeighbridgeError
from weighbridge.model.names import GroupName, RunId, SafeName

NO_RUN = ""
"""The run of what belongs to none."""
ENDING = "…"
"""Stands before the last six digits of a run's id, where no more of it is known."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that a run left: which run (`NO_RUN`, or after `ENDING` the end of its id), what kind, its name."""

    run: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class RunFolders:
    """Where the runs of this machine keep their files, each in a folder with its id.

    ``states`` has their sockets and notes, ``data`` what is on the disk for the length of a run. ``only``: the one
    run that is asked about, for what is found by the notes of each; "": all.
    """

    states: Path
    data: Path
    only: str = ""


@dataclass(frozen=True, slots=True)
class OrphanedRun:
    """A run of which nothing may stay on this machine, with its own folders of `RunFolders`.

    ``host``: only what it has here as this host of its study goes, since another host of it is on the same machine.
    """

    id: RunId
    state: Path
    data: Path
    host: str = ""
    of_all_users: bool = False
    """Whether processes of other users go as well: who started them is known to have been this run."""

    def __post_init__(self) -> None:
        """Raises ValueError for an id that is not a `RunId`."""
        RunId(self.id)

    @property
    def group(self) -> GroupName:
        """The name of its control group."""
        return group_of_host(self.id, SafeName(self.host)) if self.host else GroupName(self.id)


def group_of_host(run_id: RunId, host: SafeName) -> GroupName:
    """Return the name of the control group of a run on a host that ssh reaches."""
    return GroupName(run_id, f"ssh-{host}")


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """What a run, of whatever machine, has in a cluster that many machines reach. ``alive``: why it may still run."""

    id: str
    leftovers: tuple[Leftover, ...]
    alive: str = ""


class Cleanup(ABC):
    """One kind of things that runs make on a machine, and that may stay where a run is killed.

    A plug-in names those of what it makes (`Plugin.cleanup`). ``weighbridge clean`` walks the kinds of all plug-ins;
    the end of a run and the agent of an ssh host do so, too. An object of it is made without arguments.
    """

    label: ClassVar[str] = "what a plug-in made"
    """What these things are called where they cannot be found or removed."""

    host_knows_owner: ClassVar[bool] = False
    """Whether what belongs to one of two hosts of a run can be told where both are on one machine."""

    owner_may_be_unknown: ClassVar[bool] = False
    """Whether it tells things of `NO_RUN`, or by `ENDING`: else what has no run's id is somebody's, and left out."""

    portable: ClassVar[bool] = False
    """Whether it removes the same on a machine that ssh reaches, too.

    Its module then, with all of ours that it imports, needs only the standard library of Python 3.9.
    """

    @property
    def elsewhere(self) -> "Cleanup | None":
        """What removes the same on a machine that ssh reaches; None where it is on this machine alone."""
        return self if self.portable else None

    @abstractmethod
    def find(self, folders: RunFolders) -> Iterable[Leftover]:
        """What runs have of it on this machine, living ones too. Changes nothing."""

    def find_at(self, context: str, namespace: str) -> Iterable[RemoteRun]:
        """What runs of all machines have in a cluster (``clean --cluster``), as its users name it; "": the usual one.

        Changes nothing. Raises OSError.
        """
        return ()

    def remove_at(self, context: str, namespace: str, run: str) -> None:  # noqa: B027
        """Remove what a run has there, which does not live. OSError where some stays."""

    def end(self, run: OrphanedRun) -> None:  # noqa: B027
        """Stop what of it still works. Called of every kind before the first `remove`. OSError where some goes on."""

    def remove(self, run: OrphanedRun) -> None:  # noqa: B027
        """Remove what the dead run left of this kind, once all of its processes have ended. OSError where some stays.

        Only where `find` returns nothing of the run any more is its folder of `RunFolders.states` removed.
        """

    def remove_ownerless(self, folders: RunFolders) -> None:  # noqa: B027
        """Remove what belongs to no run, or to one that can no longer be told."""


def discard(run: OrphanedRun, kinds: Sequence[Cleanup]) -> list[str]:
    """End and remove all of a run, the last kind first; return a sentence for each step that failed.

    A step that fails, however it does, keeps none of the others from being made.
    """
    last_first = [each for each in reversed(kinds) if each.host_knows_owner or not run.host]
    failures: list[str] = []
    for kind, verb, step in (
        *((each, "ended", each.end) for each in last_first),
        *((each, "removed", each.remove) for each in last_first),
    ):
        with noting_failure(failures, f"{kind.label} cannot be {verb}"):
            step(run)
    return failures


@contextlib.contextmanager
def noting_failure(failures: list[str], what: str) -> Iterator[None]:
    """Add a sentence to the ``failures`` where the context fails, however it does, and go on behind it."""
    try:
        yield
    except Exception as error:  # also of a library, or of a plug-in of another package
        known = isinstance(error, (WeighbridgeError, OSError))
        failures.append(f"{what}: {error}" if known else f"{what}: {type(error).__name__}: {error}")
