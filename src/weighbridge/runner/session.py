"""Runs one session of a run: its remaining rounds, until its time is over or its comparisons are precise enough."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from weighbridge.errors import EnvironmentLost
from weighbridge.model import isolation
from weighbridge.model.decisions import length_text
from weighbridge.model.host import RunContext
from weighbridge.model.measurement import Outcome
from weighbridge.model.setup import SetupStep
from weighbridge.model.study import Study
from weighbridge.model.timing import Phase, Timing
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.model.userland import Userlands
from weighbridge.runner.continuity import layers_of_run
from weighbridge.runner.estimate import Forecast
from weighbridge.runner.forecaster import Forecaster
from weighbridge.runner.lengths import Lengths
from weighbridge.runner.pollers import Pollers
from weighbridge.runner.precision import (
    FIRST_ESTIMATE,
    BlockSchedules,
    CostEstimate,
    OutOfReach,
    Precision,
    PrecisionStatus,
    needed_s,
)
from weighbridge.runner.recorder import ENOUGH, Recorder
from weighbridge.runner.rounds import RoundWalk
from weighbridge.runner.stopper import BlockExtender, NextStep, ShortTime, Stopper
from weighbridge.runner.tracers import trace_explained
from weighbridge.runner.trial_runner import TrialRunner
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.store.extensions import note_begin, note_end
from weighbridge.store.reader import TIME_IS_OVER
from weighbridge.store.run import RunStore


class Progress(Protocol):
    """A terminal, a page or a monitoring server that shows the progress of a run."""

    def say(self, text: str) -> None:
        """Show one line about the current step."""

    def waits(self, steps: Sequence[SetupStep]) -> None:
        """Show the steps of the set-up that the run waits for. Any thread can call this."""

    def layers_known(self, layers: Mapping[str, tuple[isolation.SiteLayers, ...]]) -> None:
        """Show the environments that are inside hypervisors, before the first trial."""

    def trial_started(self, trial: Trial, finished: int, total: int, left: Forecast) -> None:
        """Show that a trial begins after ``finished`` of ``total`` trials (to the next look), with the run's end."""

    def trial_finished(self, record: TrialRecord) -> None:
        """Show a saved trial."""

    def precision_checked(self, blocks: int, statuses: Sequence[PrecisionStatus]) -> None:
        """Show the precision of each open comparison after ``blocks`` rounds."""

    def interference_noticed(self, out_of_reach: OutOfReach) -> None:
        """Show, once, that background load puts the precision target out of reach."""

    def time_known(self, trial_s: float, left: Forecast) -> None:
        """Show, once, that a trial takes ``trial_s`` seconds, and when the run ends."""

    def costs_estimated(self, blocks: int, estimates: Sequence[CostEstimate]) -> None:
        """Show the costs after ``blocks`` rounds: at most every `ESTIMATE_EVERY_S` seconds, and at the end."""


ESTIMATE_EVERY_S = 0.4
"""The least seconds between two estimates that are shown."""
ESTIMATE_SHARE = 0.02
"""The largest share of the time for estimates, and for looks at background load: reading a long run takes long."""


@dataclass(frozen=True, slots=True)
class Session:
    """One run of a study into a store."""

    study: Study
    store: RunStore
    run: RunContext
    userlands: Userlands
    progress: Progress
    volatile_facts: Callable[[], Mapping[str, str]] = dict
    """Facts about the host, taken once every site is open: an engine's firewall rules are in force then."""
    completed: Callable[[TrialRecord], TrialRecord] = lambda record: record
    """Adds the values of a monitoring server to a record before it is saved."""
    pollers: Pollers | None = None
    extender: BlockExtender | None = None
    short_time: ShortTime = "keep"
    timed: bool = True
    """Whether the study says how long its programs take; if not, each must run once before the first forecast."""
    timing: Timing = field(default_factory=Timing)

    def go(self) -> None:
        """Run the rest of the study, and close the sites. Raises EnvironmentLost, DiskFull, TrialsFailed."""
        say, facts = self.progress.say, self.volatile_facts
        with TrialRunner(
            self.study, self.store, self.run, self.userlands, say, facts, self.pollers, self.timing
        ) as runner:
            if not self.store.finished():  # the first trial fixes the set of environments
                runner.open(may_leave_out=True)
            study = runner.study
            recorder, lengths = Recorder(study, self.store, self.completed), Lengths(study, self.store)
            precision, block_schedules = Precision(study, self.store), BlockSchedules(study, self.store)
            walk = RoundWalk(study, recorder, precision, block_schedules)
            forecaster = Forecaster(walk, Stopper(precision.looks, self.short_time), lengths, self.timed)
            self.progress.layers_known(layers_of_run(self.store, [arm.name for arm in study.arms]))
            _Measuring(self, runner, recorder, walk, forecaster).go()
            trace_explained(study, runner, recorder, lengths, say)
        recorder.require_results(walk.has_result)


@dataclass(slots=True)
class _Measuring:
    session: Session
    runner: TrialRunner
    recorder: Recorder
    walk: RoundWalk
    forecaster: Forecaster
    _trial_ended: float | None = None
    _time_told: bool = False
    _others_noticed: bool = False
    _estimate_at: float = -math.inf
    """When costs are estimated again (time.monotonic)."""
    _notice_at: float = -math.inf
    """When background load is looked at again (time.monotonic)."""
    _estimated: int = 0

    def go(self) -> None:
        """Measure to the last round. More rounds begin with the first one again, whose trials are finished."""
        study, store, extender = self.session.study, self.session.store, self.session.extender
        self.forecaster.note_earlier(store)
        limit_s = self.walk.precision.repetitions.limit_s
        over_before = limit_s is not None and TIME_IS_OVER in store.info()
        if over_before and extender is None:
            self.session.progress.say("the run has used its time: add --rounds to measure more")
            return
        stopper = self.forecaster.stopper
        if limit_s is not None:
            stopper.study_ends = time.monotonic() + limit_s - store.spent_s()
        if self.forecaster.lengths.to_be_chosen:
            self._choose_lengths()
        if extender is not None:
            stopper.session_ends = time.monotonic() + extender.limit_s
        goes_on = over_before or self._measure_to_precision()
        note_end(store)
        while goes_on and extender and extender.extended(study, store):
            note_begin(store)
            self.walk.restart(Precision(self.walk.study, store))
            stopper.restart(self.walk.precision.looks)
            goes_on = self._measure_to_precision()
            note_end(store)
        with self.session.timing.phase(Phase.EVALUATION):
            self._estimate_costs(at_end=True)

    def _measure_to_precision(self) -> bool:
        """Measure until every comparison is precise enough or the time is over. Return whether more can follow."""
        stopper, progress = self.forecaster.stopper, self.session.progress
        for look in stopper.looks:
            self.walk.plan_until(look)
            step = NextStep.CONTINUE
            while step is NextStep.CONTINUE:
                with self.session.timing.phase(Phase.TRIALS):
                    self._run_all(self.walk.next_round())
                    self.runner.measure_idle()
                with self.session.timing.phase(Phase.EVALUATION):
                    self._estimate_costs()
                    self._notice_others()
                now = time.monotonic()
                step = stopper.after_round(self.walk.blocks, now)
            if step is NextStep.STOP:
                progress.say("the time is up")
                self._repeat()
                if stopper.is_late(self.walk.blocks, now):
                    self.session.store.set_info(TIME_IS_OVER, "yes")
                break
            self._repeat()
            with self.session.timing.phase(Phase.EVALUATION):
                progress.precision_checked(self.walk.blocks, self._look(stopper.study_ends - time.monotonic()))
            if not self.walk.is_open:
                break
        return stopper.may_extend(time.monotonic())

    def _look(self, left_s: float) -> list[PrecisionStatus]:
        """Compute the precision of the open comparisons, and allot the time that is left to them."""
        walk, looks = self.walk, self.forecaster.stopper.looks
        statuses = walk.precision.look(walk.blocks)
        round_s = {cell.label: self.forecaster.time.left_s(walk.one_round([cell])) for cell in walk.study.cells}
        ahead = [look for look in looks if look > walk.blocks]
        statuses = [each.with_time(walk.blocks, ahead, round_s[each.cell]) for each in statuses]
        if needed_s(statuses)[1] > left_s:
            statuses = [
                each if each.needed_s is None else replace(each, needed_s=(each.needed_s[0], math.inf))
                for each in statuses
            ]
        if ahead and left_s < math.inf:
            span = walk.blocks, ahead[0]
            return walk.block_schedules.decide(span, statuses, walk.arms, self.forecaster.time, left_s)
        further = looks[-1] - walk.blocks
        return [replace(each, expected=each.after(each.blocks + further)) for each in statuses]

    def _choose_lengths(self) -> None:
        """Run the pilot round, and use it to choose the lengths of all other trials."""
        lengths, say = self.forecaster.lengths, self.session.progress.say
        say("an uncounted pilot round sets the trial length")
        for trials in self.walk.pilot(lengths.cells):
            with self.session.timing.phase(Phase.PILOT):
                self._run_all(trials)
        for each in lengths.choose():
            say(f"trials of {length_text(each)}")
        if unknown := lengths.unknown:
            say(f"trials of {', '.join(unknown)} keep their length: a pilot trial failed")
        self.forecaster.begin_after_pilot()

    def _estimate_costs(self, *, at_end: bool = False) -> None:
        """Report the costs so far, unless they were just reported, or nothing has changed since."""
        began, done = time.monotonic(), len(self.recorder.finished)
        if (began < self._estimate_at and not at_end) or self._estimated == done:
            return
        if self.walk.blocks < FIRST_ESTIMATE:
            return
        first, self._estimated = not self._estimated, done
        if estimates := self.walk.precision.estimates():
            self.session.timing.note_estimate()
            self.session.progress.costs_estimated(self.walk.blocks, estimates)
        took_s = 0.0 if first else time.monotonic() - began  # the first estimate includes imports
        self._estimate_at = began + max(ESTIMATE_EVERY_S, took_s / ESTIMATE_SHARE)

    def _notice_others(self) -> None:
        """Report once that background load will keep the run from being precise enough.

        This reads all trials so far, so it is done as seldom as `ESTIMATE_SHARE` of the time allows.
        """
        began = time.monotonic()
        if self._others_noticed or began < self._notice_at or self.walk.blocks < MIN_BLOCKS_VERDICT:
            return
        last = self.forecaster.forecast((), time.monotonic()).last_blocks
        if (out_of_reach := self.walk.precision.out_of_reach(self.walk.blocks, last)) is not None:
            self._others_noticed = True
            polled = self.session.pollers is not None
            self.session.progress.interference_noticed(replace(out_of_reach, polled=polled))
        self._notice_at = began + (time.monotonic() - began) / ESTIMATE_SHARE

    def _run_all(self, trials: Sequence[Trial]) -> None:
        progress = self.session.progress
        for place, trial in enumerate(trials):
            abandoned = self.recorder.abandoned(trial.cell)
            if trial in self.recorder.finished or trial.environment in abandoned:
                continue
            left = self.forecaster.forecast(trials[place:], time.monotonic())
            progress.trial_started(trial, len(self.recorder.finished), self.walk.total, left)
            self._open()  # not part of the first trial's time
            began = self._trial_ended or time.monotonic()
            record = self.recorder.save(self.runner.run_one(trial, self.forecaster.lengths))
            self._trial_ended = time.monotonic()
            took_s, succeeded = self._trial_ended - began, record.outcome is Outcome.OK
            self.forecaster.time.note(trial, took_s, preparation_s=record.preparation_s, succeeded=succeeded)
            progress.trial_finished(record)
            self._tell_time(trials[place + 1 :])
            if record.outcome is Outcome.ENVIRONMENT_LOST:
                raise EnvironmentLost(
                    f"{trial.environment} was lost during {trial.workload}: {record.message}. "
                    "Finished trials are kept"
                )
            if self.recorder.gives_up(record):
                progress.say(f"{trial.workload} failed {ENOUGH} times in the same way and was given up")

    def _open(self) -> None:
        if not self.runner.is_open:
            began = time.monotonic()
            self.runner.open()
            self.forecaster.stopper.postpone(time.monotonic() - began)

    def _tell_time(self, now: Sequence[Trial]) -> None:
        """Report once the duration of a trial, and when the run ends. Raises TimeTooShort."""
        if self._time_told or not self.walk.blocks or (trial_s := self.forecaster.trial_s) is None:
            return
        self._time_told = True
        self.forecaster.require_time(self.walk.precision.repetitions.limit_s)
        self.session.progress.time_known(trial_s, self.forecaster.forecast(now, time.monotonic()))

    def _repeat(self) -> None:
        """Repeat the rounds with a failed trial, in every environment of its cell."""
        for number, labels, trials in self.walk.repeats():
            self.session.progress.say(f"repeating round {number} of {labels}")
            with self.session.timing.phase(Phase.TRIALS):
                self._run_all(trials)
