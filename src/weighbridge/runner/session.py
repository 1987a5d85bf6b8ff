"""A session: walks the blocks of a study, saves each trial as it ends, and continues where it was interrupted."""

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Protocol

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, TimeTooShort, TrialsFailed, Unavailable
from weighbridge.meters.machines import IdleLevels
from weighbridge.meters.opened import meters
from weighbridge.model import isolation
from weighbridge.model.address import ArmId, CellId
from weighbridge.model.decisions import left_out_text, length_text
from weighbridge.model.explained import NOTHING, all_off
from weighbridge.model.host import HERE, RunContext
from weighbridge.model.measurement import Outcome
from weighbridge.model.study import Cell, Study
from weighbridge.model.traced import Trace, TracedItem
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.model.userland import Userlands
from weighbridge.runner.continuity import layers_of_run
from weighbridge.runner.estimate import Forecast, TimeLeft, clock, forecast, meter_hz
from weighbridge.runner.lengths import PILOT, Lengths
from weighbridge.runner.notes import note_sites
from weighbridge.runner.pollers import Pollers
from weighbridge.runner.precision import (
    FIRST_ESTIMATE,
    Allotments,
    Estimate,
    OutOfReach,
    Precision,
    Standing,
    needed_s,
)
from weighbridge.runner.preflight import left_out_line
from weighbridge.runner.signals import shield
from weighbridge.runner.sites import Sites
from weighbridge.runner.tracers import trace
from weighbridge.runner.trial import run_trial
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.store.extensions import extend, note_begin, note_end
from weighbridge.store.pace import pause_s
from weighbridge.store.reader import LEFT_OUT, TIME_IS_OVER
from weighbridge.store.run import METERS_HZ, RunStore
from weighbridge.store.traces import has_traces, write_traces
from weighbridge.study import schedule

ENOUGH = 3
"""Identical failures without a success between them after which no further trial is made."""
_FIGURES = re.compile(r"((?:code|signal|status|error|errno) \d+)|\d+", re.IGNORECASE)
"""Those that name a failure, and all others."""
RESULTS = (Outcome.OK, Outcome.BROKE)
"""The outcomes after which a trial is not made again."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a trial ended; alike are those whose messages differ in figures alone."""

    outcome: Outcome
    message: str = field(compare=False)
    words: str

    @classmethod
    def of(cls, outcome: Outcome, message: str) -> "Ending":
        """Return it without the figures of its message: a time, a process, a line that could not be read."""
        return cls(outcome, message, _FIGURES.sub(lambda found: found[1] or "0", message))


@dataclass(frozen=True, slots=True)
class Repeated:
    """How something failed every time."""

    outcome: Outcome
    message: str
    times: int


@dataclass(slots=True)
class RepeatedFailures:
    """What became of the trials of each workload, level and environment, and which of these are given up."""

    study: Study
    _endings: dict[CellId, dict[str, Counter[Ending]]] = field(default_factory=dict)
    _attempts: dict[CellId, set[tuple[int, int]]] = field(default_factory=dict)

    def note(self, trial: Trial, outcome: Outcome, message: str) -> None:
        """Note how a trial ended. A lost environment says nothing of what it was to measure."""
        if outcome is not Outcome.ENVIRONMENT_LOST:
            by_environment = self._endings.setdefault(trial.cell, {})
            by_environment.setdefault(trial.environment, Counter())[Ending.of(outcome, message)] += 1
            self._attempts.setdefault(trial.cell, set()).add((trial.block, trial.attempt))

    def given_up(self, cell: CellId) -> Mapping[str, Repeated]:
        """The environments in which a workload is not tried again at a level.

        It is all of them where every one failed alike, in more than one block (what disturbs the machine for a minute
        fails them alike, too), where the baseline is among them, and where nothing is left to compare with it.
        """
        by_environment = self._endings.get(cell, {})
        repeats = {name: repeated for name, endings in by_environment.items() if (repeated := _repeated(endings))}
        arms = {arm.name: arm.aa_of for arm in self.study.arms}
        compared = [arm.name for arm in self.study.arms if arm.own and arm.name != self.study.file.baseline]
        again = len(self._attempts.get(cell, ())) > 1
        alike = _repeated(sum(by_environment.values(), Counter())) if again else None
        of_all = alike or repeats.get(self.study.file.baseline)
        if of_all is None and compared and all(name in repeats for name in compared):
            of_all = repeats[compared[0]]
        return dict.fromkeys(arms, of_all) | repeats if of_all is not None else repeats


def _repeated(endings: Counter[Ending]) -> Repeated | None:
    if len(endings) != 1 or endings.total() < ENOUGH:
        return None
    (ending,) = endings
    return None if ending.outcome in RESULTS else Repeated(ending.outcome, ending.message, endings.total())


def require_results(study: Study, failures: RepeatedFailures, has_result: Callable[[Cell], bool]) -> None:
    """Raise TrialsFailed where a workload at a level was given up, or has no complete block (``has_result``)."""
    failed_labels: dict[str, list[str]] = {}
    hopeless = []
    for cell in study.cells:
        given_up = failures.given_up(cell.id)
        if given_up:
            same, where = next(iter(given_up.values())), ", ".join(given_up)
            failure = f"failed {same.times} times in the same way in {where} ({same.outcome}: {same.message})"
            failed_labels.setdefault(failure, []).append(cell.label)
        elif not has_result(cell):
            hopeless.append(cell.label)
    sentences = [f"{', '.join(labels)} {failure} and was given up" for failure, labels in failed_labels.items()]
    if hopeless:
        sentences.append(f"no round of {', '.join(hopeless)} could be completed")
    if sentences:
        raise TrialsFailed(f"{'; '.join(sentences)}. The report lists each failed trial with its reason")


class Progress(Protocol):
    """A terminal, a page, a monitoring server; each is told everything."""

    def say(self, text: str) -> None:
        """One line about what happens now."""

    def step(self, text: str) -> None:
        """What is done now, as one of many like it: nothing that a log needs."""

    def layers_known(self, layers: Mapping[str, tuple[isolation.SiteLayers, ...]]) -> None:
        """Before the first trial: the environments that are in hypervisors, and in which."""

    def trial_started(self, trial: Trial, finished: int, total: int, left: Forecast) -> None:
        """A trial begins; ``finished`` of ``total`` planned ones have ended; ``left``: when the run ends.

        Where it may be precise enough before its last block, ``total`` counts the trials up to the next look.
        """

    def trial_finished(self, record: TrialRecord) -> None:
        """A trial ended and is saved."""

    def precision_checked(self, blocks: int, standings: Sequence[Standing]) -> None:
        """After ``blocks`` blocks the precision was looked at: how far each open comparison is."""

    def others_noticed(self, out_of_reach: OutOfReach) -> None:
        """Others take so much of the machine that the precision asked for is out of reach; told once."""

    def time_known(self, trial_s: float, left: Forecast) -> None:
        """A trial takes ``trial_s`` seconds, so that the run ends as ``left`` says; told once."""

    def costs_estimated(self, blocks: int, estimates: Sequence[Estimate]) -> None:
        """After ``blocks`` blocks costs were estimated; at most every `ESTIMATE_EVERY_S` seconds, and at the end."""


@dataclass(frozen=True, slots=True)
class BlockExtender:
    """How a run goes on after its last planned look. ``limit_s``: how long, from the begin of the session."""

    limit_s: float
    total_blocks: Callable[[RunStore], int | None]
    """Returns how many blocks the run is to have in all; None: no more."""

    def extended(self, study: Study, store: RunStore) -> bool:
        """Add the blocks that are asked for to the run's plan; return whether there are any."""
        blocks = self.total_blocks(store)
        if blocks is not None:
            extend(store, study.file.repetitions, blocks)
        return blocks is not None


ESTIMATE_EVERY_S = 0.4
"""Seconds between two estimates that are shown, at least."""
ESTIMATE_SHARE = 0.02
"""The share of the time that estimates take at most: reading all values of a long run takes longer and longer."""
ShortTime = Literal["keep", "refuse", "extend"]
"""The time is kept whatever it gives; the run ends with an error; or the first look is waited for."""
REPEATS = 2
"""How often a block with a failed trial is run again, before the precision is looked at."""


@dataclass(slots=True)
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
    """What a monitoring server has of a trial that ended is added to its record, before it is saved."""
    pollers: Pollers | None = None
    """What keeps this machine's idle CPUs from halting."""
    extender: BlockExtender | None = None
    """Asks for more blocks once all looks are done."""
    short_time: ShortTime = "keep"
    """What is done where the first trials show that the study's time is too short for a verdict."""
    timed: bool = True
    """Whether the study says how long its programs take; else nothing is forecast before each has run."""
    _finished: dict[Trial, Outcome] = field(default_factory=dict)
    _planned_arms: dict[int, dict[CellId, list[str]]] = field(default_factory=dict)
    _blocks: int = 0
    _sites: Sites | None = None
    _opening_s: float = 0.0
    _ends: float = math.inf
    """When the time for the trials is over, without what the opening of sites took (time.monotonic)."""
    _trial_ended: float = 0.0
    """When the last trial ended (time.monotonic); 0 before the first."""
    _others_noticed: bool = False
    _time_told: bool = False
    _estimate_at: float = -math.inf
    """When costs are estimated again (time.monotonic)."""
    _estimated: int = 0
    """How many trials had finished at the last estimate."""
    _idle: IdleLevels = field(default_factory=lambda: IdleLevels({}))
    _stack: ExitStack = field(default_factory=ExitStack)
    _precision: Precision = field(init=False)
    _failures: RepeatedFailures = field(init=False)
    _time: TimeLeft = field(init=False)
    _lengths: Lengths = field(init=False)
    _allotments: Allotments = field(init=False)

    def __post_init__(self) -> None:
        self._plan()

    def _plan(self) -> None:
        self._precision = Precision(self.study, self.store)
        self._failures = RepeatedFailures(self.study)
        self._lengths = Lengths(self.study, self.store)
        self._time = TimeLeft(self.study, self._lengths.trial_s)
        self._allotments = Allotments(self.study, self.store)

    def go(self) -> None:
        """Run what is left of the study. The sites are closed however this ends.

        Raises EnvironmentLost, DiskFull, TrialsFailed (at the end, where a comparison has no complete block).
        """
        self._finished = self.store.finished()
        for trial, (outcome, message) in self.store.endings().items():
            self._failures.note(trial, outcome, message)
        self._note_pace()
        try:
            if not self._finished:  # before the first trial it is decided what the run measures
                self._opened()
            self.progress.layers_known(layers_of_run(self.store, [arm.name for arm in self.study.arms]))
            self._walk()
            self._trace()
        finally:
            with shield():
                if self._sites is not None:
                    self.progress.say("cleaning up")
                self._stack.close()
        require_results(self.study, self._failures, self._has_result)

    def _trace(self) -> None:
        """Run each explained environment, and the one without its mechanisms, once more under the study's tracer.

        These trials are not saved: what a tracer watches is slower. A session that opened no sites traces nothing,
        and says so where none did before.
        """
        tracer = self.study.file.trace
        if tracer is None or (self._sites is None and has_traces(self.store.directory)):
            return
        if self._sites is None:
            why_not = "all rounds had been measured before the run was continued: start a new run of the study"
        else:
            why_not = "" if HERE in self._sites.readers() else "its programs run on other machines"
        traces = []
        for environment, arm, cell in traced_trials(self.study):
            if arm in self._failures.given_up(cell.id):
                continue
            self.progress.say(f"tracing {cell.label} in {arm} with {tracer} (not counted)")
            seen: tuple[tuple[TracedItem, ...], int] = (), 0
            failure = why_not
            if not failure:
                try:
                    work = partial(self._run_traced, Trial(PILOT, 0, cell.workload, cell.level, arm))
                    seen = trace(tracer, self.run, work, self.pollers.pids if self.pollers else ())
                except (Unavailable, TrialsFailed, EnvironmentLost) as error:  # what was measured is complete
                    failure = str(error)
            items, total = seen
            traces.append(
                Trace(
                    environment=environment, arm=arm, workload=cell.label, tracer=tracer, items=items, total=total,
                    failure=failure,
                )
            )  # fmt: skip
        for why in dict.fromkeys(each.failure for each in traces if each.failure):
            self.progress.say(f"not traced: {why}")
        if traces:
            self.progress.say(f"traced: {write_traces(self.store.directory, traces)}")

    def _run_traced(self, trial: Trial) -> None:
        """Run a trial of which nothing is kept. Raises TrialsFailed, EnvironmentLost: of its environment alone."""
        record = self._run_one(trial)
        if record.outcome is Outcome.ENVIRONMENT_LOST:
            raise EnvironmentLost(f"{trial.environment} was lost during the trace: {record.message}")
        if record.outcome not in RESULTS:
            raise TrialsFailed(f"{trial.environment} failed during the trace: {record.message}")

    def _note_pace(self) -> None:
        """Note how long the trials of earlier sessions took: a run that goes on knows its pace from the begin."""
        rows = [each for each in self.store.trials() if each.block != PILOT]
        pause = pause_s(rows)
        for each in rows:
            trial = Trial(each.block, each.attempt, each.workload, each.level, each.environment)
            self._time.note(trial, each.duration_s + pause, succeeded=each.outcome is Outcome.OK)

    def _opened(self) -> Sites:
        """The sites, opened for the first trial: a run in which nothing is left to do opens none."""
        if self._sites is None:
            note_begin(self.store)
            started_at = time.monotonic()
            hz = meter_hz(self.study)
            self.store.set_info(METERS_HZ, repr(hz))
            polled = self.pollers is not None
            opened = self._stack.enter_context(meters(self.study.file.meters, hz, polled=polled))
            self._sites = Sites(
                self.study, self.run, self.userlands, opened, self.pollers, may_leave_out=not self._finished
            )
            self._sites.open_all(self._stack)
            self._stack.callback(self._sites.finishing.run, self.store, self.progress.say)  # first of all at the end
            self._leave_out(self._sites)
            served = any("server" in registry.workloads()[cell.kind].roles(cell.options) for cell in self.study.cells)
            if self.study.file.meters.source != "off" and served:
                self._idle = IdleLevels(self._sites.readers(), lambda facts: self.store.add_facts("idle", facts))
                self._idle.look()
            note_sites(self.store, self.study, self._sites)
            self.store.add_facts("during", self.volatile_facts())
            self._opening_s += time.monotonic() - started_at
        return self._sites

    def _leave_out(self, sites: Sites) -> None:
        """Measure without the environments that could not be opened, and keep and tell why."""
        if sites.left_out:
            self.study = sites.study
            self._plan()
            self.store.set_info(LEFT_OUT, left_out_text([*self.store.left_out(), *sites.left_out]))
            for each in sites.left_out:
                self.progress.say(left_out_line(each))

    def _walk(self) -> None:
        """Walk through the blocks; where more are wanted again from the first one, whose trials are finished."""
        limit_s = self._precision.repetitions.limit_s
        over_before = limit_s is not None and TIME_IS_OVER in self.store.info()
        if over_before and self.extender is None:
            self.progress.say("the run has used its time: add --rounds to measure more")
            return
        self._opening_s = 0.0
        ends = math.inf if limit_s is None else time.monotonic() + limit_s - self.store.spent_s()
        self._ends = ends
        if self._lengths.to_be_chosen:
            self._choose_lengths()
        over = math.inf if self.extender is None else time.monotonic() + self.extender.limit_s
        goes_on = over_before or self._walk_to_precision(ends, over)
        note_end(self.store)
        while goes_on and self.extender and self.extender.extended(self.study, self.store):
            note_begin(self.store)
            self._precision = Precision(self.study, self.store)
            self._blocks, self._planned_arms, self._ends = 0, {}, over
            goes_on = self._walk_to_precision(math.inf, over)
            note_end(self.store)
        self._estimate_costs(at_end=True)

    def _walk_to_precision(self, ends: float, over: float) -> bool:
        """Walk until all is precise enough or the study's time ``ends``; whether the session's is not ``over``."""
        for look in self._precision.looks:
            self._ask(look)
            while self._blocks < look:
                self._blocks += 1
                self._run_all(self._block(self._blocks))
                self._look_at_idle_machines()
                self._estimate_costs()
                self._notice_others()
                late = time.monotonic() > ends + self._opening_s
                late &= self.short_time != "extend" or self._blocks >= self._precision.looks[0]
                if late or time.monotonic() > over:
                    self.progress.say("the time is up")
                    self._repeat()
                    if late:
                        self.store.set_info(TIME_IS_OVER, "yes")
                    return time.monotonic() < over
            self._repeat()
            self.progress.precision_checked(self._blocks, self._look(ends + self._opening_s - time.monotonic()))
            if not any(self._arms(cell) for cell in self.study.cells):
                break
        return time.monotonic() < over

    def _ask(self, look: int) -> None:
        """Decide which environments the blocks up to a look measure, by workload and level."""
        for number in range(self._blocks + 1, look + 1):
            taking_part = [cell for cell in self.study.cells if self._allotments.includes(cell, number)]
            self._planned_arms[number] = {cell.id: self._arms(cell) for cell in taking_part}

    def _look(self, left_s: float) -> list[Standing]:
        """Look at the precision, and share the time that is left. Gives where it stands and what to expect."""
        standings = self._precision.look(self._blocks)
        block_s = {cell.label: self._time.left_s(self._one_block([cell])) for cell in self.study.cells}
        ahead = [look for look in self._precision.looks if look > self._blocks]
        standings = [each.with_time(self._blocks, ahead, block_s[each.cell]) for each in standings]
        if needed_s(standings)[1] > left_s:
            standings = [
                each if each.needed_s is None else replace(each, needed_s=(each.needed_s[0], math.inf))
                for each in standings
            ]
        following = next((look for look in self._precision.looks if look > self._blocks), None)
        if following is not None and left_s < math.inf:
            return self._allotments.decide((self._blocks, following), standings, self._arms, self._time, left_s)
        last = self._precision.looks[-1]
        return [replace(each, expected=each.after(each.blocks + last - self._blocks)) for each in standings]

    def _choose_lengths(self) -> None:
        """Run the pilot block, and choose by it how long the trials of all others are."""
        self._planned_arms[PILOT] = {cell.id: self._arms(cell) for cell in self._lengths.cells}
        self.progress.say("an uncounted pilot round sets the trial length")
        self._run_all(self._block(PILOT))
        del self._planned_arms[PILOT]
        for each in self._lengths.choose():
            self.progress.say(f"trials of {length_text(each)}")
        if unknown := self._lengths.unknown:
            self.progress.say(f"trials of {', '.join(unknown)} keep their length: a pilot trial failed")
        self._time = TimeLeft(self.study, self._lengths.trial_s)

    def _look_at_idle_machines(self) -> None:
        if self._sites is not None and self._idle.readers and self._idle.due:
            self._sites.rest()
            self._idle.look()

    def _estimate_costs(self, *, at_end: bool = False) -> None:
        """Tell what costs are so far, unless that was told just now; ``at_end`` unless nothing has changed since."""
        began = time.monotonic()
        if (began < self._estimate_at and not at_end) or self._estimated == len(self._finished):
            return
        if self._blocks < FIRST_ESTIMATE:
            return
        first, self._estimated = not self._estimated, len(self._finished)
        if estimates := self._precision.estimates():
            self.progress.costs_estimated(self._blocks, estimates)
        took_s = 0.0 if first else time.monotonic() - began  # the first one imports what it needs
        self._estimate_at = began + max(ESTIMATE_EVERY_S, took_s / ESTIMATE_SHARE)

    def _tell_time(self, now: Sequence[Trial]) -> None:
        """Tell, once, how long a trial takes, and when the run ends.

        Raises TimeTooShort where the study's time is too short for a verdict, and that refuses it.
        """
        first_s = self._time.first_s(cell.id for cell in self.study.cells)
        if self._time_told or first_s is None or not self._blocks:
            return
        self._time_told = True
        self._require_time()
        self.progress.time_known(first_s / len(self.study.cells), self._forecast(now))

    def _require_time(self) -> None:
        """Raise TimeTooShort where the study's time is too short for a verdict, and that refuses it."""
        limit_s = self._precision.repetitions.limit_s
        if limit_s is None or self.short_time != "refuse" or self._blocks > 1:
            return
        block = self._one_block()
        needed_s = MIN_BLOCKS_VERDICT * self._time.left_s(block)
        if needed_s > limit_s:
            raise TimeTooShort(
                f"a verdict needs {MIN_BLOCKS_VERDICT} rounds of {block.total()} trials, which take "
                f"{clock(needed_s)}, but 'within' is {clock(limit_s)}: raise it"
            )

    def _notice_others(self) -> None:
        """Tell, once, that others take so much that the run will not be precise enough at its end."""
        if self._others_noticed:
            return
        last = self._forecast(()).last_blocks
        if (out_of_reach := self._precision.out_of_reach(self._blocks, last)) is not None:
            self._others_noticed = True
            self.progress.others_noticed(replace(out_of_reach, polled=self.pollers is not None))

    def _arms(self, cell: Cell) -> list[str]:
        """The environments that the next block measures for a workload and level."""
        given_up = self._failures.given_up(cell.id)
        return [arm for arm in self._precision.arms_of(cell) if arm not in given_up]

    def _block(self, number: int, attempt: int = 0, cells: Iterable[Cell] | None = None) -> list[Trial]:
        planned = self._planned_arms[number]
        trials = schedule.block(self.study, number, attempt=attempt, cells=cells)
        return [trial for trial in trials if trial.environment in planned.get(trial.cell, ())]

    def _run_all(self, trials: Sequence[Trial]) -> None:
        for place, trial in enumerate(trials):
            if trial in self._finished or trial.environment in self._failures.given_up(trial.cell):
                continue
            left = self._forecast(trials[place:])
            self.progress.trial_started(trial, len(self._finished), self._planned(), left)
            self._opened()  # not part of the first trial's time
            began = self._trial_ended or time.monotonic()
            record = self._run_one(trial)
            with shield():
                record = self.completed(record)
                self.store.save(record)
                self._finished[trial] = record.outcome
            self._trial_ended = time.monotonic()
            self._time.note(trial, self._trial_ended - began, succeeded=record.outcome is Outcome.OK)
            self.progress.trial_finished(record)
            self._tell_time(trials[place + 1 :])
            if record.outcome is Outcome.ENVIRONMENT_LOST:
                raise EnvironmentLost(
                    f"{trial.environment} was lost during {trial.workload}: {record.message}. "
                    "Finished trials are kept"
                )
            before = self._failures.given_up(trial.cell)
            self._failures.note(trial, record.outcome, record.message)
            if len(self._failures.given_up(trial.cell)) > len(before):
                self.progress.say(f"{trial.workload} failed {ENOUGH} times in the same way and was given up")

    def _run_one(self, trial: Trial) -> TrialRecord:
        arm = next(arm for arm in self.study.arms if arm.name == trial.environment)
        cell = next(c for c in self.study.cells if c.id == trial.cell)
        try:
            if self.pollers is not None:
                self.pollers.require()
            stage = replace(self._opened().stage(arm, cell), idle=self._idle.levels)
        except EnvironmentLost as lost:
            message = f"an environment was lost before {trial.workload} in {trial.environment}: {lost}"
            raise EnvironmentLost(f"{message}. Finished trials are kept") from lost
        return run_trial(trial, registry.workloads()[cell.kind], self._lengths.options(arm, cell), stage)

    def _remaining(self, now: Iterable[Trial]) -> Counter[ArmId]:
        """How many trials are still to be made of each workload, level and environment, up to the next look.

        Of those that are run ``now``, repeated ones count beside the plan's.
        """
        counts = Counter(trial.arm for trial in now if trial.attempt)
        for number in range(self._blocks, max(self._planned_arms) + 1):
            for cell, arms in self._planned_arms[number].items():
                for arm in set(arms) - self._failures.given_up(cell).keys():
                    counts[ArmId(cell, arm)] += Trial(number, 0, cell.workload, cell.level, arm) not in self._finished
        return counts

    def _forecast(self, now: Sequence[Trial]) -> Forecast:
        """When the run ends of whose current block the trials ``now`` are left."""
        planned, block_s = max(self._planned_arms), self._time.left_s(self._one_block())
        rest_s = self._time.left_s(Counter(trial.arm for trial in now))
        left_s, limit_s = self._time.left_s(self._remaining(now)), self._ends + self._opening_s - time.monotonic()
        if not self.timed and self._time.first_s(cell.id for cell in self.study.cells) is None:
            left_s = rest_s = math.inf
        ahead = [look for look in self._precision.looks if look >= planned] or [planned]
        looks = [(look, left_s + (look - planned) * block_s) for look in ahead]
        if self.short_time == "extend" and ahead[0] == self._precision.looks[0] and looks[0][1] > limit_s:
            looks, limit_s = looks[:1], math.inf  # it ends there, however late that is
        return forecast(self._blocks, looks, limit_s, block_s, rest_s)

    def _one_block(self, cells: Iterable[Cell] | None = None) -> Counter[ArmId]:
        """How many trials the next block has of each workload, level and environment, or of these ``cells``."""
        every = self.study.cells if cells is None else cells
        return Counter(ArmId(cell.id, arm) for cell in every for arm in self._arms(cell))

    def _planned(self) -> int:
        """How many trials there will be up to the next look."""
        return sum(len(arms) for cells in self._planned_arms.values() for arms in cells.values())

    def _repeat(self) -> None:
        """Run the blocks again in which a trial failed, in whole: every environment of that workload and level."""
        for attempt in range(1, REPEATS + 1):
            for number in [each for each in self._planned_arms if each <= self._blocks]:
                failed = [cell for cell in self.study.cells if not self._complete(cell, number)]
                if failed:
                    labels = ", ".join(cell.label for cell in failed)
                    self.progress.say(f"repeating round {number} of {labels}")
                    self._run_all(self._block(number, attempt, failed))

    def _complete(self, cell: Cell, number: int) -> bool:
        """Whether some attempt of this block has a good trial of every environment that it asked for.

        Those that are given up do not count.
        """
        given_up = self._failures.given_up(cell.id)
        arms = [arm for arm in self._planned_arms[number].get(cell.id, ()) if arm not in given_up]
        return any(
            all(self._finished.get(Trial(number, attempt, cell.workload, cell.level, arm)) in RESULTS for arm in arms)
            for attempt in range(REPEATS + 1)
        )

    def _has_result(self, cell: Cell) -> bool:
        """Whether a block of a workload and level was completed."""
        return any(
            self._planned_arms[number].get(cell.id) and self._complete(cell, number) for number in self._planned_arms
        )


def traced_trials(study: Study) -> Iterator[tuple[str, str, Cell]]:
    """Give what is traced: an explained environment, the arm of it (itself, all mechanisms off), the workload."""
    there = {arm.name for arm in study.arms}
    for environment in dict.fromkeys(each.environment for each in study.mechanisms if each.environment in there):
        arms = study.arms_by_off(environment)
        every = all_off([each for each in study.mechanisms if each.environment == environment], arms)
        for cell in study.cells:
            for off in dict.fromkeys((NOTHING, NOTHING if every is None else every)):
                yield environment, arms[off], cell
