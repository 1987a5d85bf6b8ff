"""What runs leave in this machine's kernel and on its disk, whatever they opened: the same on every kind of host."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from weighbridge.linux import cgroups, links
from weighbridge.linux.deletion import OwnFolder, remove_trees
from weighbridge.linux.folders import mounted_below, unmount_below
from weighbridge.linux.process import run_of
from weighbridge.model.leavings import ENDING, NO_RUN, DeadRun, Leavings, Leftover, RunFolders
from weighbridge.model.names import RunId

HOST_VARIABLE = "WEIGHBRIDGE_HOST"
"""In the environment of everything that a run starts on a host that ssh reaches: the host's name."""
_END_S = 10.0


class Processes(Leavings):
    """Processes, and the control groups that they are in."""

    label = "processes"
    portable = told_by_host = True

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Each run's topmost groups, and this user's processes: who started others knows whether their run lives."""
        for top in cgroups.TOPS:
            yield from (Leftover(run, "control group", f"{top}/{run}") for run in cgroups.runs(top=top))
        for pid, run, process in processes():
            with contextlib.suppress(OSError):
                name = (process / "comm").read_bytes().decode(errors="replace").strip()  # the kernel cuts it anywhere
                yield Leftover(run, "process", f"{pid} {name}")

    def end(self, run: DeadRun) -> None:
        """Thaw the groups, as what is frozen cannot die, and end every process, in a group or with the run's mark.

        OSError names the processes that are still there.
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
        if stays := {*processes_of(run)}.union(*(group.pids() for group in groups)):
            raise OSError(f"processes still alive {_END_S:g} s after SIGKILL: {', '.join(map(str, sorted(stays)))}")

    def remove(self, run: DeadRun) -> None:
        """Remove the groups. OSError names those that are still there."""
        stays = [group.name for group in cgroups.groups_of(run.group) if not group.remove()]
        cgroups.remove_top(run_id=run.id)
        if stays:
            raise OSError(f"control groups that the kernel did not remove: {', '.join(sorted({*stays}))}")

    def remove_ownerless(self, folders: RunFolders) -> None:
        """Remove the groups in which runs have theirs, where they are empty."""
        cgroups.remove_top()


def processes(proc: Path = Path("/proc"), *, everybodys: bool = False) -> Iterator[tuple[int, str, Path]]:
    """This user's processes that a run has started, or everybody's, without this one: number, run, folder in /proc.

    Anybody may set a variable: what is no run's id is none.
    """
    for process in proc.glob("[0-9]*"):
        pid = int(process.name)
        with contextlib.suppress(OSError, ValueError):
            own = everybodys or (process / "environ").stat().st_uid == os.geteuid()
            if own and pid != os.getpid() and RunId.matches(run := run_of(process) or NO_RUN):
                yield pid, run, process


def processes_of(run: DeadRun, proc: Path = Path("/proc")) -> list[int]:
    """The numbers of a run's processes; where the run has a ``host``, of those that name it."""
    name = f"{HOST_VARIABLE}={run.host}".encode()
    pids = []
    for pid, owner, process in processes(proc, everybodys=run.everybodys):
        with contextlib.suppress(OSError):  # it has ended
            if owner == run.id and (not run.host or name in (process / "environ").read_bytes().split(b"\0")):
                pids.append(pid)
    return pids


class Links(Leavings):
    """Network links, and the rules that let frames pass between them."""

    label = "network links"
    portable = owner_may_be_unknown = True

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Rules, whose comment has the run's id, and links, whose name has the end of it."""
        yield from (Leftover(run, "packet filter rule", rule) for run, rule in links.rules())
        for link in sorted(path.name for path in links.FOLDER.glob("wb-*") if links.OURS.fullmatch(path.name)):
            yield Leftover(f"{ENDING}{link.split('-')[1]}", "network link", link)

    def remove(self, run: DeadRun) -> None:
        """Remove the links and take out the rules."""
        links.remove_all(run.id)


class DataFolders(Leavings):
    """The folders of sites' and engines' data, and what is mounted in them."""

    label = "data folders"
    portable = told_by_host = True

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Each run's folder, and each mount."""
        paths = sorted(folders.data.iterdir()) if folders.data.is_dir() else []
        yield from (Leftover(path.name, "engine data", str(path)) for path in paths)
        yield from (Leftover(path.name, "mount", str(at)) for path in paths for at in mounted_below(path))

    def remove(self, run: DeadRun) -> None:
        """Unmount and remove it. OSError names what stays."""
        folder = OwnFolder.at(run.data)
        unmount_below(folder)
        remove_trees(folder)
        with contextlib.suppress(OSError):
            run.data.parent.rmdir()


OF_HOSTS = (Processes(), Links(), DataFolders())
"""What is left of a run on a host that is on this machine."""
