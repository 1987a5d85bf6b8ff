"""A private Docker engine on this machine, which leaves the machine as it was: its packet filter and folders too.

A program that a study names is checked without starting it, because the user has not agreed yet.
"""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weighbridge.engines import firewall
from weighbridge.engines.client import await_answer
from weighbridge.engines.firewall import Adds
from weighbridge.engines.machine_lock import exclusive_machine_lock, left, restore
from weighbridge.engines.settings import PROGRAM, Settings, daemon_file
from weighbridge.launcher.within import within
from weighbridge.linux import process
from weighbridge.linux.cgroup_files import HIDE_VERSION_2
from weighbridge.linux.cgroups import Cgroup, groups_of
from weighbridge.linux.cleanup import DataFolders
from weighbridge.linux.deletion import OwnFolder, remove_trees
from weighbridge.linux.folders import changeable_by_others
from weighbridge.model.cleanup import NO_RUN, Cleanup, Leftover, OrphanedRun, RunFolders, discard
from weighbridge.model.command import Command
from weighbridge.model.host import Host, RunContext
from weighbridge.model.names import GroupName
from weighbridge.model.plugin import Readiness

HOST_FOLDERS = {
    "etc": Path("/etc/docker"),
    "run": Path("/run/docker"),
    "containerd": Path("/run/containerd"),
    "lib": Path("/var/lib/docker"),
    "opt": Path("/opt/containerd"),
}
"""The host's folders that an engine always writes to, by the names of their private contents."""
_MADE = "made-folders"
_RUNNING = "engine"
"""The engine's control group, the folder of its data, and the folder of its sockets in a run's state.

The sockets of a killed engine would keep another from starting.
"""

# In a mount namespace of its own, so that no mount of the engine outlives its processes. The host's folders get
# private contents: dockerd would leave its key, its run-time data, containerd's sockets and files of overlay networks
# there.
_START = """set -e
while [ "$1" != -- ]; do mount --bind "$1" "$2"; shift 2; done
shift
exec "$@"
"""


@contextmanager
def private_engine(run: RunContext, host: Host, settings: Settings) -> Iterator[Any]:
    """Yield the client of our own engine on this machine, ``host``; only root can start one."""
    run.say("starting a private Docker engine")
    data, socket = run.cache / "engines" / run.id / _RUNNING, run.state / "docker.sock"
    try:
        with exclusive_machine_lock(run.state.parent, run.say):
            _prepare(run, data)
            group = Cgroup(GroupName(run.id, _RUNNING)).create()
            argv = with_private_folders(
                data,
                *settings.program, "--data-root", str(data / "data"), "--exec-root", str(run.state / _RUNNING),
                "--host", f"unix://{socket}", "--pidfile", str(data / "docker.pid"), "--bridge", "none",
                "--exec-opt", "native.cgroupdriver=cgroupfs", "--config-file", str(data / "etc/daemon.json"),
                "--shutdown-timeout", "5", "--log-level", "warn", *settings.arguments,
            )  # fmt: skip
            # containerd's sockets are below exec-root, and a path of more than 107 bytes is too long
            # the user's variables (LD_PRELOAD, locale, ...) must not affect the measured engine
            # containerd writes to TMPDIR what it did when it was found hanging
            variables = {**process.environment_of(run.id), "TMPDIR": str(data / "tmp")}
            variables["DOCKER_SERVICE_PREFER_OFFLINE_IMAGE"] = "1"
            daemon = process.Process(Command(within(host, run, group, *argv)), env=variables, inherit=False)
            try:
                yield await_answer(lambda: socket if socket.exists() else None, daemon)
            finally:
                daemon.stop()
    finally:
        _discard(run, data)


def with_private_folders(scratch: Path, *argv: str) -> tuple[str, ...]:
    """Return a command with folders in ``scratch`` in place of `HOST_FOLDERS`, in a mount namespace of its own."""
    mounts = (str(path) for name, folder in HOST_FOLDERS.items() for path in (scratch / name, folder))
    start = ("unshare", "--mount", "--propagation", "private", "sh", "-c", f"{HIDE_VERSION_2}\n{_START}", "start")
    return (*start, *mounts, "--", *argv)


def _prepare(run: RunContext, data: Path) -> None:
    """Note how the host is, once: an existing note is a killed run's, and the true one."""
    base = run.state.parent
    if not (base / _MADE).exists():
        missing_folders = [str(folder) for folder in HOST_FOLDERS.values() if not folder.exists()]
        (base / _MADE).write_text("\n".join(missing_folders))
    firewall.remember(base)
    for folder in (*(data / name for name in ("data", "tmp", *HOST_FOLDERS)), *HOST_FOLDERS.values()):
        folder.mkdir(parents=True, exist_ok=True)
    (data / "etc/daemon.json").write_text(daemon_file(runtimes_by_path=run.runtimes))


def _discard(run: RunContext, data: Path) -> None:
    """Remove what an engine that has stopped leaves: its processes, filter rules and folders.

    Other sites of the run can be open, so this removes nothing else. The end of the run removes all links and groups.
    It also tries again what fails, and says it.
    """
    for group in groups_of(GroupName(run.id, _RUNNING)):
        group.kill()
        group.remove()
    discard(OrphanedRun(run.id, run.state, data), (DataFolders(), EngineTraces()))
    with contextlib.suppress(OSError):
        data.parent.parent.rmdir()


class EngineTraces(Cleanup):
    """What engines that were started for runs change on this machine: its packet filter, and folders for them."""

    label = "changes by container engines"
    owner_may_be_unknown = True

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Return what engines left in the packet filter, without whose it was."""
        yield from (Leftover(NO_RUN, "packet filter rules of an engine", table) for table in left(folders.states))

    def remove(self, run: OrphanedRun) -> None:
        """Bring back what no living run needs, and remove the engine's sockets. OSError names what stays of these."""
        self._restore(run.state.parent)
        remove_trees(OwnFolder.of(run.state.parent, run.state.name, _RUNNING))

    def remove_ownerless(self, folders: RunFolders) -> None:
        """Bring back what no living run needs."""
        self._restore(folders.states)

    @staticmethod
    def _restore(base: Path) -> None:
        restore(base, Adds.DOCKER, lambda: _remove_folders(base))


def _remove_folders(base: Path) -> None:
    """Remove the folders that were made for the engine's sake."""
    for path in (base / _MADE).read_text().split():
        with contextlib.suppress(OSError):
            Path(path).rmdir()
    (base / _MADE).unlink()


BESIDE = ("containerd", "containerd-shim-runc-v2", "runc", "docker-proxy", "docker-init")
"""The programs that an engine starts from its own folder, if they are there, else from PATH."""
_COVERED = (Path("/run"), Path("/proc"), Path("/sys"), *HOST_FOLDERS.values())
"""The folders that are others for an engine of ours than for this machine."""
BESIDE_ANOTHER = Readiness(
    False,
    f"{PROGRAM}: another engine is already running on this machine",
    "use hosts of kind testbed, or stop that engine",
)


def program_readiness(named: str) -> Readiness:
    """Return whether this user can start such an engine."""
    file = Path(named)
    try:
        wrong = next(_faults(file), None)
    except OSError as error:
        wrong = (f"{error.filename or named} is not accessible ({error.strerror})", "check its permissions")
    if wrong is not None:
        return Readiness(False, f"{PROGRAM}: {wrong[0]}", wrong[1])
    if os.geteuid() != 0:
        return Readiness(False, f"{PROGRAM}: only root can start a private engine", "run as root")
    return Readiness(True, f"the run starts {named}")


def _faults(file: Path) -> Iterator[tuple[str, str]]:
    """Return why the program must not be started, and what helps. Raises OSError."""
    if not file.exists():
        yield f"there is no {file}", f"set it to the {PROGRAM} of another Docker engine"
        return
    if not file.is_file() or not os.access(file, os.X_OK):
        yield f"{file} is not an executable program", f"set it to the {PROGRAM} of another Docker engine"
        return
    programs = [file, *(beside for name in BESIDE if (beside := file.with_name(name)).exists())]
    ways = (way for program in programs for way in (program, program.resolve()))
    for path in dict.fromkeys(path for way in ways for path in way.parents):
        if path in _COVERED:
            why = f"a private engine sees different files in {path} from this machine"
            yield why, f"put {file.name} in another folder"
    for program in programs:
        yield from changeable_by_others(program)
