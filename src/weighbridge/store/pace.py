"""How fast a run goes. Whatever says how long more of it takes goes by this."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Protocol

BREAK_S = 60.0
"""Seconds between two trials from which somebody went on with the run later: no part of its pace."""


class Timed(Protocol):
    """A trial that ended: when it began, in seconds since the epoch, and how long it took."""

    @property
    def started_at(self) -> float:
        """When it began."""

    @property
    def duration_s(self) -> float:
        """How long it took."""


def pause_s(trials: Iterable[Timed]) -> float:
    """Return the mean of the seconds between the end of a trial and the begin of the next: 0 of fewer than two.

    Saving, estimates and what is drawn take them. Of a program of 25 ms they were a fifth of the run's time.
    """
    ordered = sorted(trials, key=lambda each: each.started_at)
    pauses = [later.started_at - each.started_at - each.duration_s for each, later in pairwise(ordered)]
    within = [max(0.0, each) for each in pauses if each < BREAK_S]
    return sum(within) / len(within) if within else 0.0
