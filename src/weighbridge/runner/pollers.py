"""Idle CPUs of this machine that poll and do not halt: on a virtual machine, halting gives the CPU to a hypervisor.

That comes back with it late, sooner or later by what its other guests do: the largest noise of a measurement in which
programs wait for each other, and no environment's cost. What `weighbridge.meters.poller` kept from halting is idle
time still: whoever reads this machine's counters reads them through `Pollers.read`.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from weighbridge.cgroups import IDLE, Cgroup
from weighbridge.errors import Unavailable
from weighbridge.meters import poller
from weighbridge.meters.polling import as_idle
from weighbridge.model.command import Command
from weighbridge.model.idle import CpuIdle
from weighbridge.process import RUN_VARIABLE, Process

_TICKS = os.sysconf("SC_CLK_TCK")
_FOREVER_S = 1e9
COUNT_POLLERS = ("/proc/loadavg", "/proc/pressure/cpu")
"""Files of the kernel in which pollers cannot be told from programs that want a CPU."""


def wanted(asked: CpuIdle, cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether idle CPUs are to poll; ``auto``: where the CPUs' flags have "hypervisor", which x86 alone tells."""
    if asked != "auto":
        return asked == "poll"
    lines = cpuinfo.read_text().splitlines()
    return any(line.startswith("flags") and "hypervisor" in line.split() for line in lines)


class Pollers:
    """One poller for each of some CPUs, in a control group that has only what CPU time nobody else wants."""

    def __init__(self, folder: Path, run_id: str, cpus: Iterable[int]) -> None:
        """Start them; ``folder`` is the run's own. Unavailable where they would not give way: no root, old kernel."""
        self._files: list[Path] = []
        self._programs: list[Process] = []
        self._group = Cgroup(run_id, top=IDLE)
        try:
            _only_idle_time(self._group.create())
            source = Path(poller.__file__).read_text()
            for cpu in cpus:
                path = folder / f"polled-{cpu}"
                path.write_bytes(bytes(8))
                self._files.append(path)
                groups = [str(each) for each in self._group.procs]
                argv = (sys.executable, "-I", "-S", "-c", source, str(cpu), str(path), *groups)
                self._programs.append(Process(Command(argv, _FOREVER_S), env={RUN_VARIABLE: run_id}))
        except BaseException:
            self.close()
            raise

    def polled_s(self) -> float:
        """CPU seconds for which the pollers were alone so far, over all CPUs."""
        return sum(int.from_bytes(path.read_bytes(), sys.byteorder) for path in self._files) / 1e9

    def read(self, path: str) -> bytes:
        """A file of this machine, /proc/stat with what polled as idle time.

        Raises OSError, as where the kernel has no such file also for what counts the pollers with everybody else.
        """
        if path in COUNT_POLLERS:
            raise FileNotFoundError(path)
        data = Path(path).read_bytes()
        return as_idle(data, round(self.polled_s() * _TICKS)) if path == "/proc/stat" else data

    def close(self) -> None:
        """End them."""
        for program in self._programs:
            program.stop()
        self._group.remove()


def _only_idle_time(group: Cgroup) -> None:
    """Let a group and its parent give way to everybody else at once (cpu.idle, Linux 5.15).

    The scheduling class SCHED_IDLE is not enough: between groups only the groups count, and each session of
    processes is one (CONFIG_SCHED_AUTOGROUP). Unavailable where it cannot be.
    """
    path = group.paths.get("cpu", group.paths.get("", Path("/nonexistent")))
    try:
        for each in (path.parent, path):
            (each / "cpu.idle").write_text("1")
    except OSError as error:
        raise Unavailable(f"no control group can be made idle: {error.strerror}: {error.filename}") from error
