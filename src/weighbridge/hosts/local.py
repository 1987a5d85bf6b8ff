"""This machine: the changes that a run makes to it, and folders on its disk for the data of sites and engines."""

import contextlib
import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock

from weighbridge.errors import Unavailable
from weighbridge.linux import cgroup_files, cpus, network, process
from weighbridge.linux.cgroups import Cgroup
from weighbridge.linux.delegation import tree
from weighbridge.linux.deletion import OwnFolder, remove_tree
from weighbridge.linux.folders import unmount_below
from weighbridge.linux.kernel_files import read_here
from weighbridge.linux.namespaces import namespaces_of
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import HERE, Capabilities, Group, Host, RunContext
from weighbridge.model.isolation import Layers
from weighbridge.model.names import GroupName, RunId, SafeName
from weighbridge.model.userland import Userland


class SinglePurpose:
    """The single purpose that a host is changed for; a testbed host can be copied instead."""

    def __init__(self, whose: str) -> None:
        self._whose = whose
        self._purpose = ""
        self._taking = Lock()

    def take(self, purpose: str) -> None:
        """Reserve the host for ``purpose``. Raises Unavailable if it has another one."""
        with self._taking:
            if self._purpose not in ("", purpose):
                raise Unavailable(
                    f"{self._whose} cannot be changed for both '{self._purpose}' and '{purpose}' in one study: use "
                    "hosts of kind testbed, or write two studies"
                )
            self._purpose = purpose


class LocalHost:
    """This machine. Every process that it starts has the run's id in its environment. Implements ``Host``."""

    this_machine = True
    python = sys.executable
    interface = ""
    cpuset: str | None = None
    layers: Layers = ()

    def __init__(self, run_id: RunId, name: str = "local", address: str = "127.0.0.1") -> None:
        self.name = name
        self.machine = HERE
        self.network = (HERE, "/proc/self/net/dev")
        self.address = address
        self.root = os.geteuid() == 0
        self.variables = {process.RUN_VARIABLE: run_id}
        """The variables of everything that it starts, in addition to our own."""
        self._run_id = run_id
        self._claim = SinglePurpose(f"host {name}")

    @property
    def capabilities(self) -> Capabilities:
        """Return the host's capabilities: disks for guests are used where they were built."""
        return Capabilities(guest_disk=self.program)

    def run(self, command: Command) -> Completed:
        return process.run(command, env=self.variables)

    def start(self, command: Command, *, hold: bool = False) -> process.Process:
        return process.Process(command, env=self.variables, hold=hold)

    def talk(self, command: Command) -> tuple[process.Process, process.SocketStream]:
        return process.talk(command, env=self.variables)

    def program(self, program: Path) -> str:
        """Return the path where a program was built."""
        return str(program)

    def read(self, path: str) -> bytes:
        return read_here(path)

    def namespaces(self) -> Mapping[str, int]:
        """Return the numbers of our own process's namespaces, by kind."""
        return namespaces_of(Path("/proc/self"))

    def meters_of(self, pid: int) -> Mapping[str, float]:
        return cgroup_files.meters_of(self.read, pid)

    def scope_of(self, pid: int) -> Mapping[str, str]:
        return cgroup_files.scope_of(self.read, pid)

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to a process group. Raises PermissionError if it belongs to another user."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)

    def group(self, name: str) -> Group:
        """Make the control group ``weighbridge/RUN/NAME``, without root in a separate scope. Raises Unavailable."""
        return Cgroup(GroupName(self._run_id).below(name), mount=tree(self._run_id)).create()

    def cpus_online(self) -> list[int]:
        return cpus.cpus_online()

    def free_ports(self, taken: Collection[int] = ()) -> int:
        return network.free_port(taken)

    def userland(self, userland: Userland) -> Path:
        """Return the userland's root folder, as it was built."""
        return userland.root

    def data_folder(self, run: RunContext, name: SafeName) -> AbstractContextManager[Path]:
        return data_folder_here(run, name)

    def dedicated_host(self, purpose: str) -> Host:
        """Return this machine itself; Unavailable if it is changed for another purpose."""
        self._claim.take(purpose)
        return self

    def facts(self) -> Mapping[str, str]:
        """Return no facts: the fingerprint of the run covers this machine."""
        return {}


@contextmanager
def data_folder_here(run: RunContext, name: SafeName) -> Iterator[Path]:
    """Make a data folder next to those of engines, where ``weighbridge clean`` looks, and remove it at the end."""
    own_folder = OwnFolder.of(run.cache / "engines", run.id, f"data-{name}")
    folder = own_folder.path
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        unmount_below(own_folder)
        with contextlib.suppress(OSError):  # the end of the run tries again, and reports failures
            remove_tree(own_folder)
        for above in (folder.parent, folder.parent.parent):
            with contextlib.suppress(OSError):
                above.rmdir()


def remove_engine_folder(data: OwnFolder) -> None:
    """Remove an engine's folder. If its host has just ended, its mounts disappear a moment later."""
    for _ in range(50):
        try:
            remove_tree(data)
            break
        except OSError:
            time.sleep(0.1)
    for folder in data.path.parents[:2]:
        with contextlib.suppress(OSError):
            folder.rmdir()
