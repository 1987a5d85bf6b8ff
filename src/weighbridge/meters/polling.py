"""Idle CPUs of this machine that poll and do not halt: on a virtual machine, halting gives the CPU to a hypervisor.

That comes back with it late, sooner or later by what its other guests do: the largest noise of a measurement in which
programs wait for each other, and no environment's cost. What `weighbridge.meters.poller` kept from halting is idle
time still: whoever reads this machine's counters reads them through `Pollers.read`.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from weighbridge.cgroups import IDLE, Cgroup
from weighbridge.meters import poller
from weighbridge.meters.meter import Meter, Taken
from weighbridge.model.command import Command
from weighbridge.model.idle import CpuIdle
from weighbridge.model.trial import Series
from weighbridge.process import RUN_VARIABLE, Process

_TICKS = os.sysconf("SC_CLK_TCK")
_FOREVER_S = 1e9
_NICED, _IDLE = "cpu_nice_share", "cpu_idle_share"


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
            self._group.create().only_idle_time()
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
        """A file of this machine, /proc/stat with what polled as idle time. Raises OSError."""
        data = Path(path).read_bytes()
        return as_idle(data, round(self.polled_s() * _TICKS)) if path == "/proc/stat" else data

    def close(self) -> None:
        """End them."""
        for program in self._programs:
            program.stop()
        self._group.remove()


def as_idle(stat: bytes, ticks: int) -> bytes:
    """Give a text of /proc/stat (proc(5)) in whose first line ``ticks`` more are idle, and none niced.

    As niced the kernel counts the pollers, by what its tick happens to meet. Niced programs of others go with them.
    """
    first, newline, rest = stat.partition(b"\n")
    name, *fields = first.split() or [b""]
    if name != b"cpu" or len(fields) < 4 or not all(field.isdigit() for field in fields):
        return stat
    user, _, system, idle, *others = fields
    numbers = (user, b"0", system, b"%d" % (int(idle) + ticks), *others)
    return b" ".join((b"cpu ", *numbers)) + newline + rest


def series_as_idle(series: Iterable[Series]) -> Iterator[Series]:
    """The same of a host's readings: what they have as niced is idle time, by the kernel's ticks."""
    found = list(series)
    niced = {each.place: each for each in found if each.name == _NICED}
    for each in found:
        nice = niced.get(each.place)
        if each.name == _NICED:
            yield replace(each, values=tuple(0.0 for _ in each.values))
        elif each.name == _IDLE and nice is not None:
            more = dict(zip(nice.at_s, nice.values, strict=True))
            values = zip(each.at_s, each.values, strict=True)
            yield replace(each, values=tuple(value + more.get(at, 0.0) for at, value in values))
        else:
            yield each


class PolledMeter:
    """A meter of a host on this machine, whose CPUs poll. Implements ``Meter``."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def begin(self, sites: Mapping[str, Mapping[str, str]]) -> None:
        """Begin to read."""
        self._meter.begin(sites)

    def end(self, since: float) -> Taken:
        """Read for the last time."""
        taken = self._meter.end(since)
        return Taken(tuple(series_as_idle(taken.series)), taken.own_cpu_s)
