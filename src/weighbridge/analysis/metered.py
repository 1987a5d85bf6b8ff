"""Readings of the meters in a run's trials, as quantities of the server, the generator and their hosts.

All charts and sentences about use over time are based on these series. No other module knows their names.

A rate is the mean of the time up to its reading (`weighbridge.meters.series`); a level is assumed to hold since the
previous reading. If a place has several network interfaces or disks, the busiest one at each moment counts. The same
bytes pass through several of them, such as a bridge and its ports, or a loop device and its disk.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from weighbridge.analysis.plan import meters_hz
from weighbridge.model.trial import PROMETHEUS, Series
from weighbridge.store.run import RunStore

PLACES = {"server": "server", "client": "generator", "solo": "program"}
"""The names of the roles' sites in reports."""
HOST = "host "
"""The prefix of places that are hosts."""

CPU, MEMORY, READ, WRITTEN, IN, OUT = "CPU", "memory", "disk read", "disk written", "network in", "network out"
QUANTITIES = (CPU, MEMORY, READ, WRITTEN, IN, OUT)
UNITS = {CPU: "CPUs", MEMORY: "B", READ: "B/s", WRITTEN: "B/s", IN: "B/s", OUT: "B/s"}
KINDS = {
    "user": "user", "nice": "user", "system": "system", "irq": "interrupts", "softirq": "interrupts",
    "iowait": "waiting for disks", "steal": "steal",
}  # fmt: skip
"""The kinds of a host's CPU time in charts; the rest is idle."""
BUSY = ("user", "system", "interrupts")
"""The kinds of time that a CPU spends working for its host."""

SLOW_S = 1.0
"""The same value as in `weighbridge.meters.sampler`."""

SHORTEST_S = 0.05
"""The shortest time that one reading covers, in seconds."""

_NAMES = (
    (re.compile(r"cpu(?:_(\w+))?_share"), CPU),
    (re.compile(r"memory(?:_(\w+))?_bytes"), MEMORY),
    (re.compile(r"disk(?:_(.+))?_read_bytes_per_s"), READ),
    (re.compile(r"disk(?:_(.+))?_written_bytes_per_s"), WRITTEN),
    (re.compile(r"(.+)_receive_bytes_per_s"), IN),
    (re.compile(r"(.+)_transmit_bytes_per_s"), OUT),
)

ValuesBySecond = dict[float, float]
"""Values by second of the trial."""


@dataclass(frozen=True, slots=True, order=True)
class QuantityId:
    """A quantity of a place; each kind of a host's CPU time is a quantity of its own."""

    place: str
    quantity: str
    kind: str = ""


@lru_cache(maxsize=4096)  # each trial has the same series
def quantity_of(name: str) -> tuple[str, str] | None:
    """Return the quantity of a series (`QUANTITIES`) and its kind, interface or disk; None for other series."""
    for pattern, what in _NAMES:
        if match := pattern.fullmatch(name):
            return what, match[1] or ""
    return None


class Metered:
    """The readings of a run by trial."""

    def __init__(self, store: RunStore) -> None:
        """Prepare to read all series of the run, which happens at the first use."""
        self._store = store
        self._hosts = hosts_of(store)
        self._every_s = 1 / meters_hz(store)
        self._windows = {trial.id: trial.window for trial in store.trials() if trial.window is not None}

    def quantities(self, trial: int) -> dict[QuantityId, ValuesBySecond]:
        """Return the readings of each quantity in a trial, by its id."""
        return quantities(self._store.series_by_trial().get(trial, ()), self._hosts)

    def about_s(self, key: QuantityId) -> float:
        """Return the seconds between two readings of a quantity."""
        return about_s(key, self._every_s)

    def used(self, trial: int) -> dict[QuantityId, float]:
        """Return each quantity as one number: the mean while the measured program ran; for memory, the maximum."""
        window = self._windows.get(trial, (0.0, math.inf))
        values = {
            key: most(read, window) if key.quantity == MEMORY else mean(read, window, self.about_s(key))
            for key, read in self.quantities(trial).items()
            if not key.kind and key.place != PROMETHEUS
        }
        return {key: value for key, value in values.items() if value is not None}


def hosts_of(store: RunStore) -> tuple[str, ...]:
    """Return the names of the study's hosts; an environment's own variants of a host appear under its name."""
    return tuple(store.study_file().hosts)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The mean of readings between two moments of a trial, in seconds."""

    start: float
    end: float
    value: float


def quantities(series: Iterable[Series], hosts: Sequence[str] = ()) -> dict[QuantityId, ValuesBySecond]:
    """Return the readings of each quantity. ``hosts`` are the names in the study, which variants are derived from."""
    by_key: dict[QuantityId, ValuesBySecond] = {}
    parts: dict[str, dict[str, ValuesBySecond]] = {}
    owners: dict[str, str] = {}  # the first of two variants of a host in a trial: both are the same machine
    for each in series:
        place = place_of(each.place, tuple(hosts))
        if owners.setdefault(place, each.place) != each.place:
            continue
        read = dict(zip(each.at_s, each.values, strict=True))
        key = _key_of(place, each.name)
        if key is None:
            parts.setdefault(place, {})[each.name] = read
        elif key.place == PROMETHEUS:
            by_key[key] = read
        else:
            _join(by_key, key, read, busiest=key.quantity != CPU)
    for place, mine in parts.items():
        by_key |= _of_a_place(place, mine)
    for key, read in [each for each in by_key.items() if each[0].kind in BUSY]:
        _join(by_key, QuantityId(key.place, CPU), read)
    return by_key


@lru_cache(maxsize=4096)  # each trial has the same series
def _key_of(place: str, name: str) -> QuantityId | None:
    """Return the quantity that a series belongs to; None for a site's own CPU time and for memory."""
    if place == PROMETHEUS:
        return QuantityId(PROMETHEUS, name)
    what, part = quantity_of(name) or ("", "")
    if what in (READ, WRITTEN, IN, OUT):
        return QuantityId(place, what)
    if what == CPU and place.startswith(HOST) and part in KINDS:
        return QuantityId(place, CPU, KINDS[part])
    return None


@lru_cache(maxsize=1024)
def place_of(place: str, hosts: tuple[str, ...] = ()) -> str:
    """Return the place of a series for display: a role in words, an environment's own host under its host's name."""
    if place.startswith(HOST):
        name = place.removeprefix(HOST)
        mine = [each for each in hosts if name == each or name.startswith(f"{each}-")]
        return f"{HOST}{max(mine, key=len, default=name)}"
    return PLACES.get(place, place)


def _of_a_place(place: str, mine: dict[str, ValuesBySecond]) -> dict[QuantityId, ValuesBySecond]:
    """Return the CPU time and memory of a place; a site's memory does not include cached files."""
    by_key: dict[QuantityId, ValuesBySecond] = {}
    kinds = {quantity_of(name): read for name, read in mine.items()}
    if not place.startswith(HOST):
        for parts in (("",), ("user", "system")):
            if (CPU, parts[0]) in kinds and QuantityId(place, CPU) not in by_key:
                for part in parts:
                    _join(by_key, QuantityId(place, CPU), kinds.get((CPU, part), {}))
    for parts in (("anonymous", "shared"), ("used",), ("",)):
        if (MEMORY, parts[0]) in kinds:
            for part in parts:
                _join(by_key, QuantityId(place, MEMORY), kinds.get((MEMORY, part), {}))
            break
    return by_key


def _join(
    by_key: dict[QuantityId, ValuesBySecond], key: QuantityId, read: ValuesBySecond, *, busiest: bool = False
) -> None:
    """Add readings to earlier readings of the same key, or keep the larger ones, for each moment."""
    total = by_key.get(key)
    if total is None:
        by_key[key] = {at: max(0.0, value) for at, value in read.items()} if busiest else dict(read)
        return
    for at, value in read.items():
        total[at] = max(total.get(at, 0.0), value) if busiest else total.get(at, 0.0) + value


def about_s(key: QuantityId, every_s: float) -> float:
    """Return the seconds between two readings of a quantity; disks are read once a second at most."""
    return max(every_s, SLOW_S) if key.quantity in (READ, WRITTEN) and key.place != PROMETHEUS else every_s


def stretches(read: ValuesBySecond, least_s: float = 0.0, every_s: float = 0.0) -> list[Stretch]:
    """Return readings as means over the time that each covers, merged until each mean covers at least `least_s`.

    The first reading covers the time to the second one, or `every_s` if that is longer, but not time before the
    trial. A stretch shorter than SHORTEST_S is merged with the next one, and dropped at the end: the first level is
    read in the first milliseconds of a trial.
    """
    at = sorted(read)
    if not at:
        return []
    last = start = max(0.0, at[0] - max(at[1] - at[0], every_s)) if len(at) > 1 else 0.0
    means: list[Stretch] = []
    total = 0.0
    for moment in at:
        total += read[moment] * (moment - last)
        last = moment
        if moment - start >= max(least_s - 1e-3, SHORTEST_S):
            means.append(Stretch(start, moment, total / (moment - start)))
            start, total = moment, 0.0
    if last - start >= SHORTEST_S:
        means.append(Stretch(start, last, total / (last - start)))
    return means or [Stretch(0.0, at[-1], read[at[-1]])]


def mean(read: ValuesBySecond, window: tuple[float, float], every_s: float = 0.0) -> float | None:
    """Return the mean of readings in a part of a trial, weighted by their duration; None without readings."""
    total = lasted = 0.0
    for each in stretches(read, every_s=every_s):
        overlap = min(each.end, window[1]) - max(each.start, window[0])
        if overlap > 0:
            total, lasted = total + each.value * overlap, lasted + overlap
    return total / lasted if lasted else None


def most(read: ValuesBySecond, window: tuple[float, float]) -> float | None:
    """Return the largest reading in a part of a trial or right after it; None without readings."""
    after = min((at for at in read if at >= window[1]), default=math.inf)
    return max((value for at, value in read.items() if window[0] <= at <= max(window[1], after)), default=None)
