"""Forecasts when a run ends, from the time that its trials have taken."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from weighbridge.errors import TimeTooShort
from weighbridge.model.measurement import Outcome
from weighbridge.model.trial import Trial, preparation_s
from weighbridge.runner.estimate import Forecast, TimeLeft, clock, forecast
from weighbridge.runner.lengths import PILOT, Lengths
from weighbridge.runner.rounds import RoundWalk
from weighbridge.runner.stopper import Stopper
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.store.pace import pause_s
from weighbridge.store.run import RunStore


@dataclass(slots=True)
class Forecaster:
    """Forecasts the end of the run of a `RoundWalk` from the durations of its trials."""

    walk: RoundWalk
    stopper: Stopper
    lengths: Lengths
    timed: bool
    """Whether the study says how long its programs take; if not, each must run once before the first forecast."""
    time: TimeLeft = field(init=False)

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget the pace, because the lengths of trials have changed."""
        self.time = TimeLeft(self.walk.study, self.lengths.trial_s)

    def begin_after_pilot(self) -> None:
        """Forget the pace of the pilot round, but not that it has prepared the data."""
        self.forget()
        self.time.prepared(self.lengths.cells)

    def note_earlier(self, store: RunStore) -> None:
        """Note the pace of earlier sessions. The sites of this session are new, so it must prepare all data again."""
        rows = [each for each in store.trials() if each.block != PILOT]
        pause, took_s = pause_s(rows), store.preparations_s()
        for each in rows:
            trial = Trial(each.block, each.attempt, each.workload, each.level, each.environment)
            prepared_s = preparation_s(took_s.get(each.id, 0.0), each.duration_s, each.measured_s)
            succeeded = each.outcome is Outcome.OK
            self.time.note(
                trial, each.duration_s + pause, preparation_s=prepared_s, succeeded=succeeded, earlier=True
            )

    @property
    def trial_s(self) -> float | None:
        """Mean seconds of a trial; None before every cell has succeeded once."""
        cells = self.walk.study.cells
        total_s = self.time.first_s(cell.id for cell in cells)
        return None if total_s is None else total_s / len(cells)

    def forecast(self, now: Sequence[Trial], at: float) -> Forecast:
        """Return when the run ends if the trials ``now`` are left of its current round. ``at`` is the time."""
        walk, looks = self.walk, self.stopper.looks
        planned, round_s = walk.last_planned, self.time.left_s(walk.one_round())
        rest_s = self.time.left_s(Counter(trial.arm for trial in now))
        left_s, limit_s = self.time.left_s(walk.remaining(now)), self.stopper.left_s(at)
        if not self.timed and self.trial_s is None:
            left_s = rest_s = math.inf
        ahead = [look for look in looks if look >= planned] or [planned]
        seconds = [(look, left_s + (look - planned) * round_s) for look in ahead]
        if self.stopper.short_time == "extend" and ahead[0] == looks[0] and seconds[0][1] > limit_s:
            seconds, limit_s = seconds[:1], math.inf  # the run ends at that look, however late it is
        return forecast(walk.blocks, seconds, limit_s, round_s, rest_s)

    def require_time(self, limit_s: float | None) -> None:
        """Raise TimeTooShort if the time is too short for a verdict, and the study refuses to run then."""
        if limit_s is None or self.stopper.short_time != "refuse" or self.walk.blocks > 1:
            return
        trials = self.walk.one_round()
        needed_s = MIN_BLOCKS_VERDICT * self.time.left_s(trials)
        if needed_s > limit_s:
            raise TimeTooShort(
                f"a verdict needs {MIN_BLOCKS_VERDICT} rounds of {trials.total()} trials, which take "
                f"{clock(needed_s)}, but 'within' is {clock(limit_s)}: raise it"
            )
