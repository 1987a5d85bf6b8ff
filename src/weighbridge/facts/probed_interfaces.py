"""Finds the interfaces that carried a probe, as opposed to other traffic at the same time.

The probe is sent several times, each followed by an equally long silence, in which other traffic continues. An
interface of the path carried the complete probe each time, and more than in the silences by about the probe's size.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

from weighbridge.linux import counters

T = TypeVar("T")
Carrier = tuple[str, str]
"""The place of an interface (the name of the reader of its counters), and its name."""

WHOLE = 0.9
"""The least share of the sent bytes that an interface of the path carries, each time."""
TWICE = 2.6
"""The largest share without other traffic: lo carries both directions, with headers and answers."""
BEYOND = 0.5
"""The share of the sent bytes by which an interface carried more than in the following silence."""
MOSTLY = 0.9
"""The share of the larger half of the sendings in which it must do so; other traffic matters less in larger ones."""
QUIET = 0.1
"""The largest share that an interface carries in a silence without other traffic."""
LONGEST_S = 0.5
"""The longest silence in seconds."""


@dataclass(frozen=True, slots=True)
class Sending:
    """One sending of the probe: its bytes, and the bytes of each interface meanwhile and in an equal silence."""

    sent: int
    meanwhile: Mapping[Carrier, float]
    silent: Mapping[Carrier, float]


def carriers(sendings: Sequence[Sending], ends: Collection[str] = ()) -> list[Carrier]:
    """Return the interfaces that carried the probe, in the kernels' order; they can have carried other traffic too.

    ``ends`` are places where an interface must have carried it. If other traffic hides which one, all candidates at
    that place are returned.
    """
    interfaces, undecided = _counted_interfaces(sendings), undecided_ends(sendings, ends)
    identified = _identified_carriers(sendings)
    candidates = [each for each in interfaces if each[0] in undecided and _carried(each, sendings) is None]
    return [each for each in interfaces if each in identified or each in candidates]


def undecided_ends(sendings: Sequence[Sending], ends: Collection[str]) -> set[str]:
    """Return the ends for which it is undecided which interface carried the probe."""
    return {*ends} - {place for place, _ in _identified_carriers(sendings)}


def _identified_carriers(sendings: Sequence[Sending]) -> list[Carrier]:
    return [
        each
        for each in _counted_interfaces(sendings)
        if _carried(each, sendings) or _carried_beside_others(each, sendings)
    ]


def unsure(sendings: Sequence[Sending]) -> bool:
    """Return whether an interface carried the probe and other traffic, so that more sendings would help."""
    return any(_carried(each, sendings) is None for each in _counted_interfaces(sendings))


def _counted_interfaces(sendings: Sequence[Sending]) -> list[Carrier]:
    return list(sendings[0].meanwhile) if sendings else []


def _carried(carrier: Carrier, sendings: Sequence[Sending]) -> bool | None:
    """Return whether an interface carried the probe; None if it had other traffic, too."""
    shares = [each.meanwhile.get(carrier, 0.0) / each.sent for each in sendings]
    if min(shares) < WHOLE:
        return False
    quiet = all(each.silent.get(carrier, 0.0) <= QUIET * each.sent for each in sendings)
    return True if quiet and max(shares) <= TWICE else None


def _carried_beside_others(carrier: Carrier, sendings: Sequence[Sending]) -> bool:
    if _carried(carrier, sendings) is False:
        return False
    half = median(each.sent for each in sendings)
    beyond = [
        each.meanwhile[carrier] - each.silent.get(carrier, 0.0) >= BEYOND * each.sent
        for each in sendings
        if each.sent >= half
    ]
    return sum(beyond) >= MOSTLY * len(beyond)


@dataclass(slots=True)
class Watch:
    """Reads interfaces' counters while the probe is sent. ``readers`` return the text of /proc/net/dev, by place."""

    readers: Mapping[str, Callable[[], str]]
    sendings: list[Sending] = field(default_factory=list)
    took_s: float = 0.0
    """The seconds that the last sending took."""
    _meanwhile: Mapping[Carrier, float] = field(default_factory=dict)

    def during(self, send: Callable[[], T]) -> T:
        """Send the probe, and record the bytes of each interface meanwhile."""
        before, began = self._read(), time.monotonic()
        result = send()
        self.took_s, after = time.monotonic() - began, self._read()
        self._meanwhile = _rise(before, after)
        return result

    def silence(self, sent: int) -> None:
        """Send nothing for the same time. ``sent`` are the bytes of the probe before."""
        before, began = self._read(), time.monotonic()
        time.sleep(min(self.took_s, LONGEST_S))
        share = self.took_s / (time.monotonic() - began)
        silent = {carrier: share * carried for carrier, carried in _rise(before, self._read()).items()}
        self.sendings.append(Sending(sent, self._meanwhile, silent))

    def _read(self) -> dict[Carrier, int]:
        return {
            (place, name): numbers[0] + numbers[8]
            for place, read in self.readers.items()
            for name, numbers in counters.interfaces(read()).items()
        }


def _rise(before: Mapping[Carrier, int], after: Mapping[Carrier, int]) -> dict[Carrier, float]:
    return {carrier: float(carried - before.get(carrier, 0)) for carrier, carried in after.items()}
