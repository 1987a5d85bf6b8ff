"""A private Docker engine on this machine, which leaves the machine as it was: its packet filter and folders too."""

import contextlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weighbridge.engines import firewall
from weighbridge.engines.alone import alone, left, restore
from weighbridge.engines.client import await_answer
from weighbridge.engines.firewall import Adds
from weighbridge.engines.settings import Settings, daemon_file
from weighbridge.linux import links, process
from weighbridge.linux.cgroups import Cgroup, groups_of
from weighbridge.linux.leavings import DataFolders
from weighbridge.model.command import Command
from weighbridge.model.host import RunContext
from weighbridge.model.leavings import NO_RUN, DeadRun, Leavings, Leftover, RunFolders

HOST_FOLDERS = {
    "etc": Path("/etc/docker"),
    "run": Path("/run/docker"),
    "containerd": Path("/run/containerd"),
    "lib": Path("/var/lib/docker"),
    "opt": Path("/opt/containerd"),
}
"""The host's folders that an engine writes to whatever it is told, by the names of their private contents."""
_MADE = "made-folders"
_RUNNING = "engine"
"""Folder of a run's state with the engine's sockets. Those of a killed one would keep another from starting."""

# In a mount namespace of its own, so that no mount of the engine outlives its processes. The host's folders get
# private contents: dockerd would leave its key, its run-time data, containerd's sockets and files of overlay networks
# there.
_START = """set -e
group=$1; shift
for f in $group; do echo 0 > "$f"; done
while [ "$1" != -- ]; do mount --bind "$1" "$2"; shift 2; done
shift
exec "$@"
"""


@contextmanager
def private_engine(run: RunContext, settings: Settings) -> Iterator[Any]:
    """The client of an engine of our own; only root may have one."""
    run.say("starting a private Docker engine")
    data, socket = run.cache / "engines" / run.id, run.state / "docker.sock"
    try:
        with alone(run.state.parent, run.say):
            _prepare(run, data)
            group = Cgroup(f"{run.id}/engine").create()
            argv = with_private_folders(
                group, data,
                *settings.program, "--data-root", str(data / "data"), "--exec-root", str(run.state / _RUNNING),
                "--host", f"unix://{socket}", "--pidfile", str(data / "docker.pid"), "--bridge", "none",
                "--exec-opt", "native.cgroupdriver=cgroupfs", "--config-file", str(data / "etc/daemon.json"),
                "--shutdown-timeout", "5", "--log-level", "warn", *settings.arguments,
            )  # fmt: skip
            # containerd's sockets are below exec-root: a path of more than 107 bytes, as a cache may have, is none
            # the user's variables (LD_PRELOAD, locale, ...) are no part of the engine that is measured
            # containerd writes to TMPDIR what it did when it was found hanging
            variables = {**process.environment_of(run.id), "TMPDIR": str(data / "tmp")}
            variables["DOCKER_SERVICE_PREFER_OFFLINE_IMAGE"] = "1"
            daemon = process.Process(Command(argv), env=variables, inherit=False)
            try:
                yield await_answer(lambda: socket if socket.exists() else None, daemon)
            finally:
                daemon.stop()
    finally:
        _discard(run)


def with_private_folders(group: Cgroup, scratch: Path, *argv: str) -> tuple[str, ...]:
    """A command in a group, and in a mount namespace in which folders in ``scratch`` stand for `HOST_FOLDERS`."""
    mounts = (str(path) for name, folder in HOST_FOLDERS.items() for path in (scratch / name, folder))
    groups = " ".join(str(path) for path in group.procs)
    start = ("unshare", "--mount", "--propagation", "private", "sh", "-c", _START, "start", groups)
    return (*start, *mounts, "--", *argv)


def _prepare(run: RunContext, data: Path) -> None:
    """Note how the host is, once: a note that is already there was left by a killed run, and is the true one."""
    base = run.state.parent
    if not (base / _MADE).exists():
        made = [str(folder) for folder in HOST_FOLDERS.values() if not folder.exists()]
        (base / _MADE).write_text("\n".join(made))
    firewall.remember(base)
    for folder in (*(data / name for name in ("data", "tmp", *HOST_FOLDERS)), *HOST_FOLDERS.values()):
        folder.mkdir(parents=True, exist_ok=True)
    (data / "etc/daemon.json").write_text(daemon_file())


def _discard(run: RunContext) -> None:
    """Remove everything of an engine that has stopped: processes, links, filter rules, folders."""
    for group in groups_of(run.id):
        group.kill()
        group.remove()
    links.remove_all(run.id)
    ours = DeadRun(run.id, run.state, run.cache / "engines" / run.id)
    EngineTraces().remove(ours)
    DataFolders().remove(ours)


class EngineTraces(Leavings):
    """What engines that were started for runs change on this machine: its packet filter, and folders for them."""

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """What they have in the packet filter: whose it was is not told."""
        yield from (Leftover(NO_RUN, "packet filter of an engine", table) for table in left(folders.states))

    def remove(self, run: DeadRun) -> None:
        """Bring back what no living run needs, and remove the engine's sockets."""
        self._restore(run.state.parent)
        shutil.rmtree(run.state / _RUNNING, ignore_errors=True)

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
