"""What the meters read in one trial, as quantities of the server, the generator and their hosts. Pure.

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

from weighbridge.model.trial import PROMETHEUS, Series

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

_HELD = ("memory_anonymous_bytes", "memory_shared_bytes")
_NETWORK = re.compile(r".+_(receive|transmit)_bytes_per_s")
_DISK = re.compile(r"disk(?:_.+)?_(read|written)_bytes_per_s")
_KIND = re.compile(r"cpu_(\w+)_share")

Readings = dict[float, float]
"""Value by the second of the trial at which it was read."""


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A quantity of a place; of a host's CPU time each kind is one of its own."""

    place: str
    what: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The mean of the readings from one second of a trial to another."""

    start: float
    end: float
    value: float


def quantities(series: Iterable[Series], hosts: Sequence[str] = ()) -> dict[Key, Readings]:
    """Give what was read of each quantity. ``hosts``: the study's names of hosts, of which variants are made."""
    found: dict[Key, Readings] = {}
    parts: dict[str, dict[str, Readings]] = {}
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
            found[key] = read
        else:
            _join(found, key, read, busiest=key.what != CPU)
    for place, mine in parts.items():
        found |= _of_a_place(place, mine)
    for key, read in [each for each in found.items() if each[0].kind in BUSY]:
        _join(found, Key(key.place, CPU), read)
    return found


@lru_cache(maxsize=4096)  # each trial has the same series
def _key_of(place: str, name: str) -> Key | None:
    """What a series is a part of; None for one of a site's own CPU time or of memory."""
    if place == PROMETHEUS:
        return Key(PROMETHEUS, name)
    if match := _NETWORK.fullmatch(name):
        return Key(place, IN if match[1] == "receive" else OUT)
    if match := _DISK.fullmatch(name):
        return Key(place, READ if match[1] == "read" else WRITTEN)
    if place.startswith(HOST) and (match := _KIND.fullmatch(name)) and match[1] in KINDS:
        return Key(place, CPU, KINDS[match[1]])
    return None


@lru_cache(maxsize=1024)
def place_of(place: str, hosts: tuple[str, ...] = ()) -> str:
    """A series' place as it is shown: roles in words; an environment's own host under its host's name."""
    if place.startswith(HOST):
        name = place.removeprefix(HOST)
        mine = [each for each in hosts if name == each or name.startswith(f"{each}-")]
        return f"{HOST}{max(mine, key=len, default=name)}"
    return PLACES.get(place, place)


def _of_a_place(place: str, mine: dict[str, Readings]) -> dict[Key, Readings]:
    """CPU and memory: what a site's programs hold (files in the cache are not theirs), a host's in use."""
    found: dict[Key, Readings] = {}
    if not place.startswith(HOST):
        for names in (("cpu_share",), ("cpu_user_share", "cpu_system_share")):
            if names[0] in mine and Key(place, CPU) not in found:
                for name in names:
                    _join(found, Key(place, CPU), mine.get(name, {}))
    held = _HELD if _HELD[0] in mine else ("memory_used_bytes",) if "memory_used_bytes" in mine else ("memory_bytes",)
    for name in held:
        if name in mine:
            _join(found, Key(place, MEMORY), mine[name])
    return found


def _join(found: dict[Key, Readings], key: Key, read: Readings, *, busiest: bool = False) -> None:
    """Add readings to what is there (or keep the larger ones), moment by moment."""
    whole = found.get(key)
    if whole is None:
        found[key] = {at: max(0.0, value) for at, value in read.items()} if busiest else dict(read)
        return
    for at, value in read.items():
        whole[at] = max(whole.get(at, 0.0), value) if busiest else whole.get(at, 0.0) + value


def about_s(key: Key, every_s: float) -> float:
    """Seconds between two readings of a quantity: what disks did is read once a second at most."""
    return max(every_s, SLOW_S) if key.what in (READ, WRITTEN) and key.place != PROMETHEUS else every_s


def stretches(read: Readings, least_s: float = 0.0, every_s: float = 0.0) -> list[Stretch]:
    """Give readings as means over the time that each is about, several of them together until `least_s` are full.

    The first one's time is that to the second or `every_s`, if that is longer, but not before the trial. What is
    shorter than SHORTEST_S is put to what follows, and left out at the end: a first level is read in the first
    milliseconds of a trial.
    """
    at = sorted(read)
    if not at:
        return []
    last = begun = max(0.0, at[0] - max(at[1] - at[0], every_s)) if len(at) > 1 else 0.0
    found: list[Stretch] = []
    total = 0.0
    for moment in at:
        total += read[moment] * (moment - last)
        last = moment
        if moment - begun >= max(least_s - 1e-3, SHORTEST_S):
            found.append(Stretch(begun, moment, total / (moment - begun)))
            begun, total = moment, 0.0
    if last - begun >= SHORTEST_S:
        found.append(Stretch(begun, last, total / (last - begun)))
    return found or [Stretch(0.0, at[-1], read[at[-1]])]


def mean(read: Readings, window: tuple[float, float], every_s: float = 0.0) -> float | None:
    """The mean of readings in a part of a trial, each as long as it lasted; None without any."""
    total = lasted = 0.0
    for each in stretches(read, every_s=every_s):
        overlap = min(each.end, window[1]) - max(each.start, window[0])
        if overlap > 0:
            total, lasted = total + each.value * overlap, lasted + overlap
    return total / lasted if lasted else None


def most(read: Readings, window: tuple[float, float]) -> float | None:
    """The largest reading in a part of a trial, or just after it; None without any."""
    after = min((at for at in read if at >= window[1]), default=math.inf)
    return max((value for at, value in read.items() if window[0] <= at <= max(window[1], after)), default=None)
