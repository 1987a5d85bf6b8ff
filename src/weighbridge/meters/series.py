"""Turns readings into series: counters become rates, and levels stay. Pure."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from weighbridge.linux import counters
from weighbridge.linux.counters import Numbers
from weighbridge.linux.process_files import disk_use, trees
from weighbridge.meters.readings import Readings
from weighbridge.model.trial import Series

APART_S = 0.05
"""The kernel counts the CPU time of a host in hundredths of a second, and a rate needs several of them."""
_PARSERS: dict[str, Callable[[str], Numbers]] = {
    "meminfo": counters.meminfo,
    "net": counters.network,
    "diskstats": counters.disks,
    "loadavg": counters.loadavg,
    **{f"pressure.{what}": partial(counters.pressure, what=what) for what in ("cpu", "memory", "io")},
    "cpuacct.usage": counters.cpuacct,
    "cpu.stat": counters.cpu_stat,
    "memory.usage_in_bytes": counters.memory_now,
    "memory.current": counters.memory_now,
    "memory.stat": counters.memory_stat,
    "pids.current": counters.pids,
}


def series(readings: Readings, offset_s: float = 0.0) -> tuple[Series, ...]:
    """Return every series of known files in the readings. ``offset_s`` is the time of the first reading.

    A rate has the time of the end of its interval. A trial that ends soon after a reading adds no rate. A counter
    that decreases (corrected idle time, a new interface) gives no rate there. An interface or disk that was never
    used in the trial has no series. ``sar -d`` also leaves out such disks.
    """
    all_series: list[Series] = []
    at = [moment + offset_s for moment in readings.at]
    for label, texts in readings.texts.items():
        place, _, what = label.partition("/")
        numbers = _numbers(what, texts, readings)
        all_series += _levels(place, at, numbers)
        all_series += _rates(place, at, numbers)
    return tuple(all_series)


def _numbers(what: str, texts: Sequence[str | None], readings: Readings) -> list[Numbers | None]:
    if what == "processes":
        return trees(texts, readings.ticks, readings.page)
    if what == "cgroup.procs":
        return disk_use(texts)
    parser = partial(counters.cpu, ticks=readings.ticks) if what == "stat" else _PARSERS.get(what)
    if parser is None:
        return []
    parsed = {text: parser(text) for text in set(texts) if text is not None}  # most texts do not change
    return [None if text is None else parsed[text] for text in texts]


def _levels(place: str, at: Sequence[float], numbers: Sequence[Numbers | None]) -> list[Series]:
    points: dict[str, list[tuple[float, float]]] = {}
    for moment, each in zip(map(_exact, at), numbers, strict=False):
        for name, value in each.levels.items() if each else ():
            points.setdefault(name, []).append((moment, value))
    return [_series(place, name, values) for name, values in points.items()]


def _rates(place: str, at: Sequence[float], numbers: Sequence[Numbers | None]) -> list[Series]:
    read = [(moment, each.counters) for moment, each in zip(at, numbers, strict=False) if each and each.counters]
    distinct = {id(each): each for _, each in read}.values()
    used = {"", *map(counters.device, {name for each in distinct for name, value in each.items() if value})}
    names = dict.fromkeys(itertools.chain.from_iterable(distinct))
    in_all = set(names).intersection(*distinct)
    intervals = _intervals(read)
    rates = (
        (name, _growth(name, intervals if name in in_all else _intervals([each for each in read if name in each[1]])))
        for name in names
        if counters.device(name) in used
    )
    return [_series(place, name, points) for name, points in rates if points]


Interval = tuple[float, float, Mapping[str, float], Mapping[str, float]]
"""The end of an interval, its seconds, and the counters at its start and at its end."""


def _intervals(read: Sequence[tuple[float, Mapping[str, float]]]) -> list[Interval]:
    """Return the intervals between readings, without readings that follow another one too soon."""
    apart: list[tuple[float, Mapping[str, float]]] = []
    for each in read:
        if not apart or each[0] - apart[-1][0] >= APART_S:
            apart.append(each)
    return [(_exact(end), end - start, was, now) for (start, was), (end, now) in itertools.pairwise(apart)]


def _exact(moment: float) -> float:
    """Return a time to 0.1 ms, because more digits have no meaning."""
    return round(moment, 4)


def _growth(name: str, intervals: Sequence[Interval]) -> list[tuple[float, float]]:
    """Return a counter's growth per second in each interval, by the interval's end."""
    return [
        (end, (now[name] - was[name]) / seconds) for end, seconds, was, now in intervals if now[name] >= was[name]
    ]


def _series(place: str, name: str, points: Sequence[tuple[float, float]]) -> Series:
    """Return a series with values to eight digits, because more digits have no meaning."""
    times = tuple([moment for moment, _ in points])
    return Series(place, name, times, tuple([float(f"{value:.8g}") if value else 0.0 for _, value in points]))
