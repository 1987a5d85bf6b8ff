"""Orphaned resources of runs in this machine's kernel and on its disk, which are the same on every kind of host."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from weighbridge.linux import cgroups, links
from weighbridge.linux.deletion import OwnFolder, remove_trees
from weighbridge.linux.folders import mounted_below, unmount_below
from weighbridge.linux.process import has_variable, run_of
from weighbridge.model.cleanup import ENDING, NO_RUN, Cleanup, Leftover, OrphanedRun, RunFolders
from weighbridge.model.names import RunId

HOST_VARIABLE = "WEIGHBRIDGE_HOST"
"""The variable with the host's name, for all processes that a run starts on an ssh host."""
_END_S = 10.0


class Processes(Cleanup):
    """Processes and their control groups."""

    label = "processes"
    portable = host_knows_owner = True

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Yield each run's topmost groups, and this user's processes; other users' runs cannot be judged here."""
        for top in cgroups.TOPS:
            yield from (Leftover(run, "control group", f"{top}/{run}") for run in cgroups.runs(top=top))
        for pid, run, process in processes():
            with contextlib.suppress(OSError):
                name = (process / "comm").read_bytes().decode(errors="replace").strip()  # it can be cut anywhere
                yield Leftover(run, "process", f"{pid} {name}")

    def end(self, run: OrphanedRun) -> None:
        """Thaw the groups, because frozen processes cannot die, and kill every process of the run.

        A process belongs to the run by its group or by the run's mark. Raises OSError with the remaining processes.
        """
        groups = cgroups.groups_of(run.group)
        for group in groups:
            with contextlib.suppress(OSError, KeyError):
                group.thaw_below()
        deadline = time.monotonic() + _END_S
        while (pids := processes_of(run)) and time.monotonic() < deadline:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        for group in groups:
            group.kill()
        if remaining := {*processes_of(run)}.union(*(group.pids() for group in groups)):
            raise OSError(
                f"processes still alive {_END_S:g} s after SIGKILL: {', '.join(map(str, sorted(remaining)))}"
            )

    def remove(self, run: OrphanedRun) -> None:
        """Remove the groups. Raises OSError with the remaining groups."""
        remaining = [group.name for group in cgroups.groups_of(run.group) if not group.remove()]
        cgroups.remove_top(run_id=run.id)
        if remaining:
            raise OSError(f"control groups that the kernel did not remove: {', '.join(sorted({*remaining}))}")

    def remove_ownerless(self, folders: RunFolders) -> None:
        """Remove the parents of runs' groups if they are empty."""
        cgroups.remove_top()


def processes(proc: Path = Path("/proc"), *, of_all_users: bool = False) -> Iterator[tuple[int, str, Path]]:
    """Yield number, run and /proc folder of processes that runs started, of this or of all users, except this one.

    Any process can set the variable, so only valid run ids count.
    """
    for process in proc.glob("[0-9]*"):
        pid = int(process.name)
        with contextlib.suppress(OSError, ValueError):
            included = of_all_users or (process / "environ").stat().st_uid == os.geteuid()
            if included and pid != os.getpid() and RunId.matches(run := run_of(process) or NO_RUN):
                yield pid, run, process


def processes_of(run: OrphanedRun, proc: Path = Path("/proc")) -> list[int]:
    """Return the numbers of a run's processes; if the run has a ``host``, only those that name it."""
    pids = []
    for pid, owner, process in processes(proc, of_all_users=run.of_all_users):
        with contextlib.suppress(OSError):  # it has ended
            if owner == run.id and (not run.host or has_variable(process, HOST_VARIABLE, run.host)):
                pids.append(pid)
    return pids


class Links(Cleanup):
    """Network links, and the rules that let frames pass between them."""

    label = "network links"
    portable = owner_may_be_unknown = True

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Yield rules, whose comment has the run's id, and links, whose name has the end of it."""
        yield from (Leftover(run, "packet filter rule", rule) for run, rule in links.rules())
        for link in sorted(path.name for path in links.FOLDER.glob("wb-*") if links.OURS.fullmatch(path.name)):
            yield Leftover(f"{ENDING}{link.split('-')[1]}", "network link", link)

    def remove(self, run: OrphanedRun) -> None:
        """Remove the links and the rules."""
        links.remove_all(run.id)


class DataFolders(Cleanup):
    """The folders with the data of sites and engines, and the mounts in them."""

    label = "data folders"
    portable = host_knows_owner = True

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Yield each run's folder, and each mount."""
        paths = sorted(folders.data.iterdir()) if folders.data.is_dir() else []
        yield from (Leftover(path.name, "engine data", str(path)) for path in paths)
        yield from (Leftover(path.name, "mount", str(point)) for path in paths for point in mounted_below(path))

    def remove(self, run: OrphanedRun) -> None:
        """Unmount and remove the folder. Raises OSError with the remaining entries."""
        folder = OwnFolder.at(run.data)
        unmount_below(folder)
        remove_trees(folder)
        with contextlib.suppress(OSError):
            run.data.parent.rmdir()


OF_HOSTS = (Processes(), Links(), DataFolders())
"""The kinds of orphaned resources on a host that is this machine."""
