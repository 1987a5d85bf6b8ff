"""Which interfaces carried a probe, and not only what others sent at the same time.

The probe is sent several times, and after each time nothing is sent for as long: what others send goes on then. An
interface of the path carried all of the probe each time, and so much more than in the silences as was sent.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

from weighbridge.linux import counters

T = TypeVar("T")
Carrier = tuple[str, str]
"""Where an interface is (the name of who reads its counters), and its own name."""

WHOLE = 0.9
"""Share of the bytes that were sent which an interface of the path has carried at least, each time."""
TWICE = 2.6
"""Share that it has carried at most, where nobody else uses it: in both directions (lo), with headers and answers."""
BEYOND = 0.5
"""Share of them by which it carried more than in the silence after."""
MOSTLY = 0.9
"""In how many of the sendings it did so, of the larger half: the larger they are, the less is what others send."""
QUIET = 0.1
"""Share that it carries in a silence at most, where nobody else uses it."""
LONGEST_S = 0.5
"""Seconds of a silence at most."""


@dataclass(frozen=True, slots=True)
class Sending:
    """One time that the probe was sent: its bytes, and what each interface carried then, and in as long a silence."""

    sent: int
    meanwhile: Mapping[Carrier, float]
    silent: Mapping[Carrier, float]


def carriers(sendings: Sequence[Sending], ends: Collection[str] = ()) -> list[Carrier]:
    """The interfaces that carried the probe, in the kernels' order; others may have used them as well.

    ``ends``: places where one must have carried it. Where others send so much that it is not told which, all that may
    have are given there.
    """
    interfaces, untold = _counted_interfaces(sendings), untold_ends(sendings, ends)
    identified = _identified_carriers(sendings)
    may_have = [each for each in interfaces if each[0] in untold and _carried(each, sendings) is None]
    return [each for each in interfaces if each in identified or each in may_have]


def untold_ends(sendings: Sequence[Sending], ends: Collection[str]) -> set[str]:
    """Return the ends for which it is undecided which interface carried the probe."""
    return {*ends} - {place for place, _ in _identified_carriers(sendings)}


def _identified_carriers(sendings: Sequence[Sending]) -> list[Carrier]:
    return [
        each
        for each in _counted_interfaces(sendings)
        if _carried(each, sendings) or _carried_beside_others(each, sendings)
    ]


def unsure(sendings: Sequence[Sending]) -> bool:
    """Whether an interface carried all of the probe each time, and what others sent as well: more tells it better."""
    return any(_carried(each, sendings) is None for each in _counted_interfaces(sendings))


def _counted_interfaces(sendings: Sequence[Sending]) -> list[Carrier]:
    return list(sendings[0].meanwhile) if sendings else []


def _carried(carrier: Carrier, sendings: Sequence[Sending]) -> bool | None:
    """Whether an interface carried the probe; None where others used it, too."""
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
    """Reads interfaces' counters while the probe is sent. ``readers`` give the text of /proc/net/dev, by place."""

    readers: Mapping[str, Callable[[], str]]
    sendings: list[Sending] = field(default_factory=list)
    took_s: float = 0.0
    """How long it took to send the probe the last time."""
    _meanwhile: Mapping[Carrier, float] = field(default_factory=dict)

    def during(self, send: Callable[[], T]) -> T:
        """Send the probe, and record what each interface carried meanwhile."""
        before, began = self._read(), time.monotonic()
        result = send()
        self.took_s, after = time.monotonic() - began, self._read()
        self._meanwhile = _rise(before, after)
        return result

    def silence(self, sent: int) -> None:
        """Send nothing for as long. ``sent``: the bytes of the probe that came before."""
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
