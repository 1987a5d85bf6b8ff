"""When a run ends: at an interim look, or when its time is over."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from weighbridge.model.study import Study
from weighbridge.store.extensions import extend
from weighbridge.store.run import RunStore

ShortTime = Literal["keep", "refuse", "extend"]
"""If the time is too short for a verdict: keep it, end with an error, or wait for the first interim look."""


class NextStep(StrEnum):
    """The next step of a run after a round."""

    CONTINUE = "continue"
    LOOK = "look"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class BlockExtender:
    """Asks for more rounds after the last interim look. ``limit_s``: the longest time, from the session's start."""

    limit_s: float
    total_blocks: Callable[[RunStore], int | None]
    """Returns the new total of rounds; None: no more."""

    def extended(self, study: Study, store: RunStore) -> bool:
        """Add the rounds to the run's plan; return whether there are any."""
        blocks = self.total_blocks(store)
        if blocks is not None:
            extend(store, study.file.repetitions, blocks)
        return blocks is not None


@dataclass(slots=True)
class Stopper:
    """Decides after each round whether a run continues. Times are seconds of one clock, such as time.monotonic."""

    looks: tuple[int, ...]
    """The numbers of rounds after which the costs are examined; the last one is the longest run."""
    short_time: ShortTime = "keep"
    study_ends: float = math.inf
    session_ends: float = math.inf
    """The end of the time for further rounds."""

    def postpone(self, seconds: float) -> None:
        """Exclude the time for opening the sites from the study's time."""
        self.study_ends += seconds

    def restart(self, looks: tuple[int, ...]) -> None:
        """Continue after an extension, which only the session's time limits."""
        self.looks, self.study_ends = looks, math.inf

    def after_round(self, blocks: int, now: float) -> NextStep:
        """Return what follows the round ``blocks``. A round that is running when the time is over is completed."""
        if self.is_late(blocks, now) or now > self.session_ends:
            return NextStep.STOP
        return NextStep.LOOK if blocks in self.looks else NextStep.CONTINUE

    def is_late(self, blocks: int, now: float) -> bool:
        """Return whether the study's time is over; with ``extend``, never before the first interim look."""
        return now > self.study_ends and (self.short_time != "extend" or blocks >= self.looks[0])

    def may_extend(self, now: float) -> bool:
        """Return whether there is time for further rounds."""
        return now < self.session_ends

    def left_s(self, now: float) -> float:
        """Return the seconds until the time is over, whichever ends first; infinite without a limit."""
        return min(self.study_ends, self.session_ends) - now
