"""What the meters read in the trials of a run, as quantities of the server, the generator and their hosts.

Everything that is drawn or told of use over time is made of these series, and nobody else knows their names.

A rate stands at the end of the time that it is a mean of (`weighbridge.meters.series`); a level is taken to have held
since the reading before it. Of several network interfaces or disks of a place the busiest at each moment counts: the
same bytes pass several of them (a bridge and its ports, a loop device and the disk below it).
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
"""Roles as the report calls their sites here."""
HOST = "host "
"""How the places of a host's own series begin."""

CPU, MEMORY, READ, WRITTEN, IN, OUT = "CPU", "memory", "disk read", "disk written", "network in", "network out"
QUANTITIES = (CPU, MEMORY, READ, WRITTEN, IN, OUT)
UNITS = {CPU: "CPUs", MEMORY: "B", READ: "B/s", WRITTEN: "B/s", IN: "B/s", OUT: "B/s"}
KINDS = {
    "user": "user", "nice": "user", "system": "system", "irq": "interrupts", "softirq": "interrupts",
    "iowait": "waiting for disks", "steal": "steal",
}  # fmt: skip
"""Kinds of a host's CPU time as they are drawn; idle is what is left."""
BUSY = ("user", "system", "interrupts")
"""Those in which a CPU of the host works for it."""

SLOW_S = 1.0
"""As `weighbridge.meters.sampler` has it."""

SHORTEST_S = 0.05
"""The shortest time that a reading of its own is about, in seconds."""

_NAMES = (
    (re.compile(r"cpu(?:_(\w+))?_share"), CPU),
    (re.compile(r"memory(?:_(\w+))?_bytes"), MEMORY),
    (re.compile(r"disk(?:_(.+))?_read_bytes_per_s"), READ),
    (re.compile(r"disk(?:_(.+))?_written_bytes_per_s"), WRITTEN),
    (re.compile(r"(.+)_receive_bytes_per_s"), IN),
    (re.compile(r"(.+)_transmit_bytes_per_s"), OUT),
)

ValuesBySecond = dict[float, float]
"""Value by the second of the trial at which it was read."""


@dataclass(frozen=True, slots=True, order=True)
class QuantityId:
    """A quantity of a place; of a host's CPU time each kind is one of its own."""

    place: str
    quantity: str
    kind: str = ""


@lru_cache(maxsize=4096)  # each trial has the same series
def quantity_of(name: str) -> tuple[str, str] | None:
    """What a series is of by its name (`QUANTITIES`), and of which kind, interface or disk; None for any other."""
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
        """What was read in a trial (its id) of each quantity."""
        return quantities(self._store.series_by_trial().get(trial, ()), self._hosts)

    def about_s(self, key: QuantityId) -> float:
        """Seconds between two readings of a quantity."""
        return about_s(key, self._every_s)

    def used(self, trial: int) -> dict[QuantityId, float]:
        """Each quantity as one number: means over the time of the measured program, of memory the most."""
        window = self._windows.get(trial, (0.0, math.inf))
        values = {
            key: most(read, window) if key.quantity == MEMORY else mean(read, window, self.about_s(key))
            for key, read in self.quantities(trial).items()
            if not key.kind and key.place != PROMETHEUS
        }
        return {key: value for key, value in values.items() if value is not None}


def hosts_of(store: RunStore) -> tuple[str, ...]:
    """The names of the study's hosts: an environment's own variants of them are shown under these."""
    return tuple(store.study_file().hosts)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The mean of the readings from one second of a trial to another."""

    start: float
    end: float
    value: float


def quantities(series: Iterable[Series], hosts: Sequence[str] = ()) -> dict[QuantityId, ValuesBySecond]:
    """Give what was read of each quantity. ``hosts``: the study's names of hosts, of which variants are made."""
    by_key: dict[QuantityId, ValuesBySecond] = {}
    parts: dict[str, dict[str, ValuesBySecond]] = {}
    owners: dict[str, str] = {}  # of two variants of one host in a trial, the first: it is one machine
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
    """What a series is a part of; None for one of a site's own CPU time or of memory."""
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
    """A series' place as it is shown: roles in words; an environment's own host under its host's name."""
    if place.startswith(HOST):
        name = place.removeprefix(HOST)
        mine = [each for each in hosts if name == each or name.startswith(f"{each}-")]
        return f"{HOST}{max(mine, key=len, default=name)}"
    return PLACES.get(place, place)


def _of_a_place(place: str, mine: dict[str, ValuesBySecond]) -> dict[QuantityId, ValuesBySecond]:
    """CPU and memory: what a site's programs hold (files in the cache are not theirs), a host's in use."""
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
    """Add readings to those of the same key (or keep the larger ones), moment by moment."""
    total = by_key.get(key)
    if total is None:
        by_key[key] = {at: max(0.0, value) for at, value in read.items()} if busiest else dict(read)
        return
    for at, value in read.items():
        total[at] = max(total.get(at, 0.0), value) if busiest else total.get(at, 0.0) + value


def about_s(key: QuantityId, every_s: float) -> float:
    """Seconds between two readings of a quantity: what disks did is read once a second at most."""
    return max(every_s, SLOW_S) if key.quantity in (READ, WRITTEN) and key.place != PROMETHEUS else every_s


def stretches(read: ValuesBySecond, least_s: float = 0.0, every_s: float = 0.0) -> list[Stretch]:
    """Give readings as means over the time that each is about, several of them together until `least_s` are full.

    The first one's time is that to the second or `every_s`, if that is longer, but not before the trial. What is
    shorter than SHORTEST_S is put to what follows, and left out at the end: a first level is read in the first
    milliseconds of a trial.
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
    """The mean of readings in a part of a trial, each as long as it lasted; None without any."""
    total = lasted = 0.0
    for each in stretches(read, every_s=every_s):
        overlap = min(each.end, window[1]) - max(each.start, window[0])
        if overlap > 0:
            total, lasted = total + each.value * overlap, lasted + overlap
    return total / lasted if lasted else None


def most(read: ValuesBySecond, window: tuple[float, float]) -> float | None:
    """The largest reading in a part of a trial, or just after it; None without any."""
    after = min((at for at in read if at >= window[1]), default=math.inf)
    return max((value for at, value in read.items() if window[0] <= at <= max(window[1], after)), default=None)
