"""Counts the CPU time of the pollers (`weighbridge.meters.poller`) as idle time in all readings."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from weighbridge.linux.counters import cpu_ticks
from weighbridge.meters.meter import NO_SAMPLERS, Meter, MeterReadings, Samplers
from weighbridge.model.trial import Series

_NICED, _IDLE = "cpu_nice_share", "cpu_idle_share"
_LEFT_OUT = ("load1", "pressure_", "cpu_iowait_share")
"""The beginnings of the names of series in which pollers look like other programs.

Pressures are weighted by the time in which each CPU was not idle, and a CPU with a program to run never waits for a
disk."""


def as_idle(stat: bytes, ticks: int) -> bytes:
    """Return a text of /proc/stat (proc(5)) whose first line has ``ticks`` more idle ticks and no niced ticks.

    The kernel counts pollers as niced, with an error of its ticks. Other niced programs are lost with them.
    """
    first, newline, rest = stat.partition(b"\n")
    kinds = cpu_ticks((first + newline).decode("latin-1"))
    if "idle" not in kinds:
        return stat
    numbers = kinds | {"nice": 0, "idle": kinds["idle"] + ticks}
    return b"cpu  " + " ".join(map(str, numbers.values())).encode() + newline + rest


def series_as_idle(series: Iterable[Series]) -> Iterator[Series]:
    """Return a host's series with niced CPU time counted as idle time, by the kernel's ticks.

    Series that include the pollers are left out: load, pressure, CPUs that wait for disks.
    """
    readings = [each for each in series if not each.name.startswith(_LEFT_OUT)]
    niced = {each.place: each for each in readings if each.name == _NICED}
    for each in readings:
        nice = niced.get(each.place)
        if each.name == _NICED:
            yield replace(each, values=tuple(0.0 for _ in each.values))
        elif each.name == _IDLE and nice is not None:
            niced_values = dict(zip(nice.at_s, nice.values, strict=True))
            values = zip(each.at_s, each.values, strict=True)
            yield replace(each, values=tuple(value + niced_values.get(at, 0.0) for at, value in values))
        else:
            yield each


class PolledMeter:
    """A meter of a host on this machine, whose CPUs poll. Implements ``Meter``."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def begin(self, sites: Mapping[str, Mapping[str, str]], samplers: Samplers = NO_SAMPLERS) -> None:
        """Begin to read the host's counters."""
        self._meter.begin(sites, samplers)

    def end(self, since: float) -> MeterReadings:
        """Read for the last time, and return the series as if the pollers had not run."""
        readings = self._meter.end(since)
        return MeterReadings(tuple(series_as_idle(readings.series)), readings.own_cpu_s)
