"""The protocol of cleanups: they find and remove the resources that a killed run left on a machine.

This module uses no library, because the agent of an ssh host imports it, too.
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
"""The run of resources that belong to no run."""
ENDING = "…"
"""Stands before the last six digits of a run's id if the others are unknown."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A resource that a run left. ``run`` is its id, `NO_RUN`, or `ENDING` and the end of the id."""

    run: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class RunFolders:
    """The folders in which the runs of this machine keep their files, each in a folder with its id.

    ``states`` has their sockets and notes, ``data`` their files on disk. ``only`` is the one run to look for, or ""
    for all.
    """

    states: Path
    data: Path
    only: str = ""


@dataclass(frozen=True, slots=True)
class OrphanedRun:
    """A dead run whose resources must be removed from this machine, with its own folders of `RunFolders`.

    With ``host``, only its resources as this host of its study are removed, because another host of it is on the same
    machine.
    """

    id: RunId
    state: Path
    data: Path
    host: str = ""
    of_all_users: bool = False
    """Whether processes of other users are ended, too, because they are known to belong to this run."""

    def __post_init__(self) -> None:
        """Check the id. Raises ValueError if it is not a `RunId`."""
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
    """The resources of a run from any machine in a shared cluster. ``alive``: why it could still be running."""

    id: str
    leftovers: tuple[Leftover, ...]
    alive: str = ""


class Cleanup(ABC):
    """A kind of resource that runs create on a machine, and that can stay there if a run is killed.

    A plug-in lists the kinds that it creates (`Plugin.cleanup`). ``weighbridge clean`` uses the kinds of all
    plug-ins, as do the end of a run and the agent of an ssh host. An object is created without arguments.
    """

    label: ClassVar[str] = "what a plug-in made"
    """The name of these resources in error messages."""

    host_knows_owner: ClassVar[bool] = False
    """Whether it can distinguish the resources of two hosts of a run that are on one machine."""

    owner_may_be_unknown: ClassVar[bool] = False
    """Whether it yields resources of `NO_RUN`, or with `ENDING`. If not, resources without a run's id are ignored."""

    portable: ClassVar[bool] = False
    """Whether it also removes these resources on a machine that ssh reaches.

    Its module, and all modules of Weighbridge that it imports, then need only the standard library of Python 3.9.
    """

    @property
    def elsewhere(self) -> "Cleanup | None":
        """The cleanup for the same resources on a machine that ssh reaches; None if it is not portable."""
        return self if self.portable else None

    @abstractmethod
    def find(self, folders: RunFolders) -> Iterable[Leftover]:
        """Return the resources of runs on this machine, including living runs. Changes nothing."""

    def find_at(self, context: str, namespace: str) -> Iterable[RemoteRun]:
        """Return the resources of all runs in a cluster (``clean --cluster``; "": the default). Raises OSError."""
        return ()

    def remove_at(self, context: str, namespace: str, run: str) -> None:  # noqa: B027
        """Remove the resources of a dead run in a cluster. Raises OSError if some remain."""

    def end(self, run: OrphanedRun) -> None:  # noqa: B027
        """Stop active resources. Every kind is stopped before the first `remove`. Raises OSError if some continue."""

    def remove(self, run: OrphanedRun) -> None:  # noqa: B027
        """Remove the dead run's resources, after all of its processes have ended. Raises OSError if some remain.

        The run's folder in `RunFolders.states` is only removed when `find` returns nothing of the run any more.
        """

    def remove_ownerless(self, folders: RunFolders) -> None:  # noqa: B027
        """Remove resources that belong to no run, or to an unknown one."""


def discard(run: OrphanedRun, kinds: Sequence[Cleanup]) -> list[str]:
    """End and remove all resources of a run, the last kind first; return a sentence for each step that failed."""
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
    """Add a sentence to ``failures`` if the body fails in any way, and continue after it."""
    try:
        yield
    except Exception as error:  # including errors of libraries and of plug-ins from other packages
        known = isinstance(error, (WeighbridgeError, OSError))
        failures.append(f"{what}: {error}" if known else f"{what}: {type(error).__name__}: {error}")
