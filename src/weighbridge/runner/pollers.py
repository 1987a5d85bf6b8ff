"""Lets idle CPUs of this machine poll instead of halting, because a halt on a virtual machine yields to a hypervisor.

The hypervisor returns the CPU late, after a delay that depends on its other guests. This is the largest noise of
workloads whose programs wait for each other, and not a cost of an environment. The time for which
`weighbridge.meters.poller` polls still counts as idle: meters read this machine's counters through `Pollers.read`.
"""

import os
import platform
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.facts.virtual_machine import virtual
from weighbridge.linux import cgroup_files, cgroups
from weighbridge.linux.cgroup_files import IDLE
from weighbridge.linux.cgroups import Cgroup
from weighbridge.linux.process import RUN_VARIABLE, Process
from weighbridge.meters import poller
from weighbridge.meters.polling import as_idle
from weighbridge.model.command import Command
from weighbridge.model.names import GroupName, RunId
from weighbridge.model.study import StudyFile

_TICKS = os.sysconf("SC_CLK_TCK")
_FOREVER_S = 1e9
_STARTED_S = 30.0
LINUX = (5, 15)
"""The first Linux version whose control groups have idle time only (cpu.idle)."""
COUNT_POLLERS = ("/proc/loadavg", "/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory")
"""Files of the kernel that count pollers like any other program.

The kernel weights the pressure of a machine by the time for which each CPU was not idle (kernel/sched/psi.c), and a
CPU that polls is never idle.
"""


def wants_polling(file: StudyFile, root: Path = Path("/")) -> bool:
    """Return whether this machine's idle CPUs must poll. ``auto``: if it is virtual, and the only machine."""
    if file.cpu_idle != "auto":
        return file.cpu_idle == "poll"
    return virtual(root) and all(host.traits.here for host in file.hosts.values())


def lacking(release: str = "", mount: Path = cgroup_files.MOUNT) -> str:
    """Return why idle CPUs of this machine cannot poll; "" if they can."""
    if os.geteuid() != 0:
        return "it needs root"
    version = re.match(r"(\d+)\.(\d+)", release or platform.release())
    if version is None or tuple(map(int, version.groups())) < LINUX:
        return f"it needs Linux {LINUX[0]}.{LINUX[1]} or later (cpu.idle of control groups)"
    for quota in (mount / "cpu/cpu.cfs_quota_us", mount / "cpu.max"):
        if quota.exists() and not quota.read_text().startswith(("-1", "max")):
            return "this machine is a container, and polling would use up its CPU limit"
    return ""


class CannotPoll(Unavailable):
    """Raised if idle CPUs cannot poll here, with the reason ``why``."""

    def __init__(self, why: str) -> None:
        super().__init__(f"idle CPUs cannot be kept awake here: {why}")


class Pollers:
    """One poller on each of some CPUs, in a control group that only gets CPU time that no other process wants."""

    def __init__(self, folder: Path, run_id: RunId, cpus: Iterable[int]) -> None:
        """Start a poller on each CPU; ``folder`` belongs to the run. Raises Unavailable."""
        if why := lacking():
            raise CannotPoll(why)
        self._programs: dict[Path, Process] = {}
        self._group = Cgroup(GroupName(run_id), top=IDLE)
        try:
            _only_idle_time(self._group.create())
            source, parent = Path(poller.__file__).read_text(), str(os.getpid())
            for cpu in cpus:
                path = folder / f"polled-{cpu}"
                path.write_bytes(bytes(8))
                groups = [str(each) for each in self._group.procs]
                argv = (sys.executable, "-I", "-S", "-c", source, str(cpu), str(path), parent, *groups)
                self._programs[path] = Process(Command(argv, _FOREVER_S), env={RUN_VARIABLE: run_id})
        except BaseException:
            self.close()
            raise

    def wait_until_polling(self) -> None:
        """Wait until each poller polls. If one does not, end all of them and raise Unavailable."""
        try:
            self._await()
        except BaseException:
            self.close()
            raise

    def _await(self) -> None:
        deadline = time.monotonic() + _STARTED_S
        for path, program in self._programs.items():
            while not _count(path):
                if program.poll() is not None:
                    raise CannotPoll(program.stop().last_words)
                if time.monotonic() > deadline:  # a CPU that is never idle needs no poller
                    raise CannotPoll(f"a CPU was busy for {_STARTED_S:g} s")
                time.sleep(0.005)

    def require(self) -> None:
        """Raise EnvironmentLost if a poller has exited, because its CPU halts since then."""
        for path, program in self._programs.items():
            if program.poll() is not None:
                completed = program.stop()
                cpu = path.name.partition("-")[2]
                raise EnvironmentLost(
                    f"the program that keeps CPU {cpu} awake exited with code {completed.returncode}"
                )

    def polled_s(self) -> float:
        """Return for how many CPU seconds the pollers ran alone so far, over all CPUs."""
        return sum(map(_count, self._programs)) / 1e9

    @property
    def pids(self) -> list[int]:
        """The process ids of the pollers."""
        return [program.pid for program in self._programs.values()]

    def read(self, path: str) -> bytes:
        """Return a file of this machine, without polling as CPU time. Raises OSError, also for `COUNT_POLLERS`."""
        if path in COUNT_POLLERS:
            raise FileNotFoundError(path)
        data = Path(path).read_bytes()
        return as_idle(data, round(self.polled_s() * _TICKS)) if path == "/proc/stat" else data

    def close(self) -> None:
        """End the pollers, and remove their control group."""
        for program in self._programs.values():
            program.stop()
        self._group.remove()
        cgroups.remove_top()


def _count(path: Path) -> int:
    return int.from_bytes(path.read_bytes(), sys.byteorder)


def _only_idle_time(group: Cgroup) -> None:
    """Make a group and its parent give way to all other processes at once (cpu.idle).

    The scheduling class SCHED_IDLE is not enough: between groups only the groups count, and each session of processes
    is a group (CONFIG_SCHED_AUTOGROUP). Raises Unavailable if it fails.
    """
    path = group.paths.get("cpu", group.paths.get("", Path("/nonexistent")))
    try:
        for each in (path.parent, path):
            (each / "cpu.idle").write_text("1")
    except OSError as error:
        raise Unavailable(f"no control group can be marked as idle ({error.filename}: {error.strerror})") from error
