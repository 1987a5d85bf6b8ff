"""How fast a run goes; every forecast of durations uses this."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Protocol

BREAK_S = 60.0
"""Seconds between two trials from which the run was resumed later, so that the pause does not count."""


class Timed(Protocol):
    """A trial that ended, with its begin and its duration."""

    @property
    def started_at(self) -> float:
        """Return its begin, in seconds since the epoch."""

    @property
    def duration_s(self) -> float:
        """Return its duration in seconds."""


def pause_s(trials: Iterable[Timed]) -> float:
    """Return the mean seconds between the end of a trial and the begin of the next; 0 with fewer than two trials.

    Saving, estimates and the display need this time: a fifth of the run's time with a program of 25 ms.
    """
    ordered = sorted(trials, key=lambda each: each.started_at)
    pauses = [later.started_at - each.started_at - each.duration_s for each, later in pairwise(ordered)]
    within = [max(0.0, each) for each in pauses if each < BREAK_S]
    return sum(within) / len(within) if within else 0.0
