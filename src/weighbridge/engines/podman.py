"""Podman on a host, for a single run: its images, networks and containers, through its command line.

It is not in the measured path: podman and conmon carry the launcher's stream, and netavark ends once a network is set
up. slirp4netns, pasta and rootlessport are part of the cost of a rootless container.
"""

import contextlib
import copy
import itertools
import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from weighbridge.engines import runtimes
from weighbridge.engines.client import answers
from weighbridge.engines.docker import LAUNCHER
from weighbridge.engines.firewall import Adds, remember
from weighbridge.engines.labelled import LABEL
from weighbridge.engines.layers import random_files
from weighbridge.engines.machine_lock import exclusive_machine_lock, restore
from weighbridge.engines.podman_home import (
    APART,
    NETWORKS,
    Home,
    home_of_root,
    home_of_user,
    program_of_user,
    runtime_of_user,
    store_apart,
)
from weighbridge.engines.shared_root import bare_layer
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.linux import cgroup_files
from weighbridge.linux.deletion import OwnFolder, remove_tree, remove_trees
from weighbridge.linux.folders import is_own_folder
from weighbridge.linux.process import link_prefix, output, which
from weighbridge.model.cleanup import Cleanup, Leftover, OrphanedRun, RunFolders
from weighbridge.model.command import Command, Completed, HostProcess, Stream
from weighbridge.model.host import Group, Host, RunContext
from weighbridge.model.names import RunId, SafeName
from weighbridge.model.once import Once
from weighbridge.model.userland import Userland

_MEMORY = Path("/dev/shm")  # noqa: S108 - one folder per run, which other users cannot enter
_ASK_S, _IMPORT_S = 120.0, 900.0
_numbers = itertools.count()
_IMPORT = '{ cat; tar --create --numeric-owner --one-file-system --directory "$0" .; } | "$@"'
_MOVE = 'pid=$1; shift; for file; do echo "$pid" > "$file"; done'
_USERS = "podman-user"
"""In the name of the data of podmans that are not root's."""


class Podman:
    """The podman of a host in a run; rootless containers have one more."""

    def __init__(self, run: RunContext, host: Host, home: Home, *, rootless: bool) -> None:
        self.host = host
        self.rootless = rootless
        self.launcher = home.launcher
        self._run = run
        self._home = home
        self._images: set[str] = set()
        self.runtime = default_runtime()
        self.runtime_facts = Once()
        """The facts of the OCI runtimes that its containers have."""
        about = json.loads(self.must("reading its settings", "info", "--format", "json"))
        self.version = str(about["version"]["Version"])
        self.storage_driver = str(about["store"]["graphDriverName"])

    def using(self, wanted: str) -> "Podman":
        """Return the same podman, whose containers an OCI runtime makes that a study names."""
        other = copy.copy(self)
        other.runtime = program_of(wanted) if self.host.this_machine else wanted
        return other

    def ask(self, *words: str, deadline_s: float = _ASK_S) -> Completed:
        """Run a podman command to its end."""
        return self.host.run(Command(self.argv(*words), deadline_s))

    def must(self, what: str, *words: str) -> str:
        """Return a command's output. Raises Unavailable if it fails, Raises EnvironmentLost if podman has gone."""
        completed = self.ask(*words)
        if completed.returncode != 0:
            if "nsenter: cannot open" in completed.last_words:
                raise EnvironmentLost(f"{what}: podman's namespace has ended")
            raise Unavailable(f"{what}: podman refused: {_error_in(completed)}")
        return completed.text.strip()

    def argv(self, *words: str) -> tuple[str, ...]:
        """Return the argument list of a podman command on its host."""
        return self._home.argv("--runtime", self.runtime, *words)

    def image(self, userland: Userland, files: int = 0) -> str:
        """Return the name of the userland's image, imported at first use.

        ``files`` are the bytes of additional files in it (`weighbridge.engines.layers.random_files`).
        """
        name = f"weighbridge:{userland.digest[:12]}" + (f"-{files}" if files else "")
        if name not in self._images:
            whose = "rootless podman" if self.rootless else "podman"
            self._run.say(f"importing the root filesystem into {whose} on host {self.host.name}")
            words = ("--quiet", "--change", f"LABEL {LABEL}={self._run.id}", "-", name)
            argv, archive = self.argv("import", *words), b"".join(random_files(files))
            if userland.of_this_machine:
                archive += bare_layer(userland.root, LAUNCHER, b"")
            else:
                argv = ("sh", "-c", _IMPORT, str(self.host.userland(userland)), *argv)
            completed = self.host.run(Command(argv, _IMPORT_S, stdin=archive))
            if completed.returncode != 0:
                raise Unavailable(f"podman cannot import the root filesystem: {completed.last_words}")
            self._images.add(name)
        return name

    @contextmanager
    def bridge(self) -> Iterator[dict[str, Any]]:
        """Make a bridge network, and yield the output of ``podman network inspect``."""
        number = next(_numbers)
        name, link = f"weighbridge-{number}", f"{link_prefix(self._run.id)}n{number}"
        size = ("--opt", f"mtu={self._mtu()}") if self.host.interface else ()
        label = ("--label", f"{LABEL}={self._run.id}")
        self.must(f"creating network {name}", "network", "create", "--disable-dns", *label, *size, name)
        try:
            network = dict(json.loads(self.must("inspecting it", "network", "inspect", name))[0])
            self._rename(network, link)
            yield network
        finally:
            with contextlib.suppress(EnvironmentLost):
                self.ask("network", "rm", "--force", name)

    def _rename(self, network: dict[str, Any], link: str) -> None:
        """Name a network's bridge, not made yet, after the run; not every podman has an option for that."""
        text = json.dumps(network | {"network_interface": link}).encode()
        argv = (*self._home.prefix, "tee", f"{NETWORKS}/{network['name']}.json")
        completed = self.host.run(Command(argv, _ASK_S, stdin=text))
        if completed.returncode != 0:
            raise Unavailable(f"podman's network cannot get its name: {completed.last_words}")

    def _mtu(self) -> str:
        return self.host.read(f"/sys/class/net/{self.host.interface}/mtu").decode().strip()

    def attach(self, container: str) -> tuple[HostProcess, Stream]:
        """Start a container, and talk to its first process."""
        words = ("start", "--attach", "--interactive", "--sig-proxy=false", container)
        return self.host.talk(Command(self.argv(*words)))

    def start_beside(self, *argv: str) -> HostProcess:
        """Start another program where podman runs, and as whom."""
        return self.host.start(Command((*self._home.prefix, *argv)))

    def inspect(self, container: str) -> dict[str, Any]:
        """Return the output of ``podman inspect`` for a container."""
        return dict(json.loads(self.must(f"inspecting {container}", "container", "inspect", container))[0])

    def move(self, pid: int, group: Group) -> None:
        """Put a process of the host into a control group of ours. Raises Unavailable."""
        files = [str(path) for path in group.procs]
        completed = self.host.run(Command(("sh", "-c", _MOVE, "move", str(pid), *files), 10))
        if completed.returncode != 0:
            raise Unavailable(f"a container cannot be moved into its control group: {completed.last_words}")

    def put_folder(self, folder: str, name: str) -> str:
        """Put a folder of the host where containers can mount and write to it; return its path."""
        return self._home.put_folder(self.host, folder, name)


def _error_in(completed: Completed) -> str:
    """Return podman's error message without its hints where to find help."""
    lines = completed.stderr.decode(errors="replace").splitlines()
    errors = [line.removeprefix("Error: ") for line in lines if line.startswith("Error: ")]
    return errors[-1][:300] if errors else completed.last_words


def default_runtime() -> str:
    """Return the runtime of podman's containers: crun, as podman prefers, but runc with control groups version 1."""
    names = ("crun", "runc") if cgroup_files.version() == 2 else ("runc",)
    return next((name for name in names if shutil.which(name)), names[-1])


def program_of(wanted: str) -> str:
    """Return the OCI runtime of a study for podman's command line: a path if it is known to be installed here.

    Podman has a table of names, too, without folders such as /usr/local/bin for all of them.
    """
    if wanted == runtimes.DEFAULT:
        return default_runtime()
    return (which(wanted) if wanted in (runtimes.STOCK, *runtimes.KNOWN) else None) or wanted


def podman_of(run: RunContext, host: Host, *, rootless: bool, layered: str = "") -> Podman:
    """Return the podman of a host, the same for the whole run; ``layered`` as of `Userland`. Raises Unavailable."""
    kind = "rootless podman" if rootless else "podman"
    return run.share(f"{kind} {host.name}", lambda: _opened(run, host, layered, rootless=rootless))


@contextmanager
def _opened(run: RunContext, host: Host, layered: str, *, rootless: bool) -> Iterator[Podman]:
    if not host.root and not host.this_machine:
        raise Unavailable(f"podman needs root on host {host.name}: set 'sudo: true', or log in as root")
    with ExitStack() as stack:
        if host.root and host.this_machine and not rootless:
            stack.enter_context(_noted(run))
        name = SafeName(f"{'podman' if host.root else _USERS}{'-rootless' if rootless else ''}-{host.name}")
        data = stack.enter_context(host.data_folder(run, name))
        if host.root:
            group = host.group(name)
            stack.callback(group.remove)
            stack.callback(group.kill)
            home = stack.enter_context(home_of_root(run, host, group, data, rootless=rootless))
        else:
            stack.callback(_discard_of_user, run.id, run.state, data)
            if layered and data.is_relative_to(layered):
                store_apart(run.id)
            home = stack.enter_context(home_of_user(run, host, data))
        yield Podman(run, host, home, rootless=rootless)


@contextmanager
def _noted(run: RunContext) -> Iterator[None]:
    """Allow changes of the packet filter within the context, and undo them at its end."""
    base = run.state.parent
    with exclusive_machine_lock(base, run.say):
        remember(base, beside_engine=answers())
        yield
    restore(base, Adds.PODMAN)


def _discard_of_user(run_id: RunId, state: Path, data: Path) -> None:
    """Remove files of the user's subordinate ids, and end the process that keeps the user's namespaces."""
    runtime = runtime_of_user(state)
    folders = (data / "storage", *(runtime / "run").glob("overlay*"), *_left_of(run_id))
    output((*program_of_user(run_id, state, data), "unshare", "rm", "-rf", *map(str, folders)))
    _discard_folders(run_id)
    for note in runtime.rglob("pause.pid"):
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(note.read_text()), signal.SIGKILL)
    with contextlib.suppress(OSError):
        remove_tree(OwnFolder.at(runtime))


def _discard_folders(run_id: RunId) -> None:
    """Remove the user's own storage: podman creates an empty one while it removes its containers."""
    for path in _left_of(run_id):
        with contextlib.suppress(OSError):
            remove_tree(OwnFolder.at(path))


def memory_of(run_id: RunId, site: str) -> Path:
    """Return the folder in memory for a site's layer over a folder of this machine."""
    return _MEMORY / f"weighbridge-{run_id}-{site}"


def _left_of(run_id: str) -> list[Path]:
    """Return this user's folders of a run in memory or for storage."""
    paths = (*_MEMORY.glob(f"weighbridge-{run_id}-*"), *APART.glob(f"weighbridge-{run_id}-*"))
    return [path for path in paths if is_own_folder(path)]


class PodmanFolders(Cleanup):
    """A user's folders in memory or for storage, and the files of the user's subordinate ids in a run's data.

    All else of podman is known without it: processes by their control groups, links by their names, the packet filter
    by the note of it; mounts go with the processes.
    """

    label = "folders of podman"

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        yield from (Leftover(path.name.split("-")[1], "folder of podman", str(path)) for path in _left_of("*"))

    def remove(self, run: OrphanedRun) -> None:
        """Remove the folders, and first the files in them, which only podman can remove. OSError names the rest."""
        runtime = runtime_of_user(run.state)
        of_nobody = (
            [runtime] if runtime.exists() else []
        )  # its data have gone: by an earlier one that was interrupted
        for data in sorted(run.data.glob(f"data-{_USERS}*")) or of_nobody:
            _discard_of_user(run.id, run.state, data)
        remove_trees(*(OwnFolder.at(path) for path in _left_of(run.id)))  # also of a run whose data has gone
