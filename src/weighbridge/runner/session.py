"""A session: walks the blocks of a study, saves each trial as it ends, and continues where it was interrupted."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, TrialsFailed
from weighbridge.facts.hosts import about_hosts
from weighbridge.meters.opened import meters
from weighbridge.model.measurement import Outcome
from weighbridge.model.site import RunContext, Userland
from weighbridge.model.study import Cell, Level, Study
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.runner.precision import Precision, Standing
from weighbridge.runner.signals import shield
from weighbridge.runner.sites import Sites
from weighbridge.runner.trial import run_trial
from weighbridge.store.run import RunStore
from weighbridge.study import schedule

REPEATS = 2
"""How often a block with a failed trial is run again, before the precision is looked at."""
RESULTS = (Outcome.OK, Outcome.BROKE)
"""The outcomes after which a trial is not made again."""


class Progress(Protocol):
    """Who is told how a session goes on."""

    def say(self, text: str) -> None:
        """One line about what happens now."""

    def begins(self, trial: Trial, done: int, total: int) -> None:
        """A trial begins; ``done`` of ``total`` planned trials have ended."""

    def ended(self, record: TrialRecord) -> None:
        """A trial ended and is saved."""

    def looked(self, blocks: int, standings: Sequence[Standing]) -> None:
        """After ``blocks`` blocks the precision was looked at: how far each open comparison is."""


@dataclass(slots=True)
class Session:
    """One run of a study into a store."""

    study: Study
    store: RunStore
    run: RunContext
    userland: Userland
    progress: Progress
    look_around: Callable[[], Mapping[str, str]] = dict
    """Facts about the host, taken once every site is open: an engine's firewall rules are in force then."""
    completed: Callable[[TrialRecord], TrialRecord] = lambda record: record
    """What a monitoring server has of a trial that ended is added to its record, before it is saved."""
    _finished: dict[Trial, Outcome] = field(default_factory=dict)
    _asked: dict[int, dict[tuple[str, Level], list[str]]] = field(default_factory=dict)
    _blocks: int = 0
    _sites: Sites | None = None
    _stack: ExitStack = field(default_factory=ExitStack)
    _precision: Precision = field(init=False)

    def __post_init__(self) -> None:
        self._precision = Precision(self.study, self.store)

    def go(self) -> None:
        """Run what is left of the study. The sites are closed however this ends.

        Raises EnvironmentLost, DiskFull, TrialsFailed (at the end, where a comparison has no complete block).
        """
        self._finished = self.store.finished()
        try:
            self._walk()
        finally:
            with shield():
                if self._sites is not None:
                    self.progress.say("closing every site")
                self._stack.close()
        self._judge()

    def _opened(self) -> Sites:
        """The sites, opened for the first trial: a run in which nothing is left to do opens none."""
        if self._sites is None:
            opened = self._stack.enter_context(meters(self.study.file.meters))
            self._sites = Sites(self.study, self.run, self.userland, opened)
            self._sites.open_all(self._stack)
            for place, facts in self._sites.facts().items():
                self.store.add_facts(place, facts)
            for scope, facts in about_hosts(self._sites.hosts).items():
                self.store.add_facts(scope, facts)
            self.store.add_facts("packet sizes", self._sites.sizes())
            self.store.add_facts("durability", self._sites.durabilities())
            self.store.add_facts("links", self._sites.links())
            self.store.add_facts("during", self.look_around())
        return self._sites

    def _walk(self) -> None:
        """Block after block, until every comparison is as precise as the study wants, or its maximum or budget."""
        precision, budget = self._precision, self.study.file.repetitions.budget
        begun, spent_before = time.monotonic(), self.store.spent_s()
        for look in precision.looks:
            while self._blocks < look:
                self._blocks += 1
                self._asked[self._blocks] = {_key(cell): precision.arms_of(cell) for cell in self.study.cells}
                self._run_all(self._block(self._blocks))
                if budget is not None and spent_before + time.monotonic() - begun > budget:
                    self.progress.say("the time budget is spent")
                    self._repeat()
                    return
            self._repeat()
            self.progress.looked(self._blocks, precision.look(self._blocks))
            if not any(precision.arms_of(cell) for cell in self.study.cells):
                return

    def _block(self, number: int, attempt: int = 0, cells: Iterable[Cell] | None = None) -> list[Trial]:
        asked = self._asked[number]
        trials = schedule.block(self.study, number, attempt=attempt, cells=cells)
        return [trial for trial in trials if trial.environment in asked.get((trial.workload, trial.level), ())]

    def _run_all(self, trials: Iterable[Trial]) -> None:
        for trial in trials:
            if trial in self._finished:
                continue
            self.progress.begins(trial, len(self._finished), self._planned())
            record = self._run_one(trial)
            with shield():
                record = self.completed(record)
                self.store.save(record)
                self._finished[trial] = record.outcome
            self.progress.ended(record)
            if record.outcome is Outcome.ENVIRONMENT_LOST:
                raise EnvironmentLost(
                    f"{trial.environment} was lost during {trial.workload}: {record.message}. "
                    "Every finished trial is kept; run again to continue"
                )

    def _run_one(self, trial: Trial) -> TrialRecord:
        sites = self._opened()
        arm = next(arm for arm in self.study.arms if arm.name == trial.environment)
        cell = next(c for c in self.study.cells if (c.workload, c.level) == (trial.workload, trial.level))
        try:
            stage = sites.stage(arm, cell)
        except EnvironmentLost as lost:
            raise EnvironmentLost(
                f"an environment was lost before {trial.workload} in {trial.environment}: {lost}. "
                "Every finished trial is kept; run again to continue"
            ) from lost
        return run_trial(trial, registry.workloads()[cell.kind], self.study.options(arm, cell), stage)

    def _planned(self) -> int:
        """About how many trials there will be: those asked for, and the last block again up to the next look."""
        so_far = sum(len(arms) for cells in self._asked.values() for arms in cells.values())
        last = sum(len(arms) for arms in self._asked[self._blocks].values())
        following = next(look for look in self._precision.looks if look >= self._blocks)
        return so_far + (following - self._blocks) * last

    def _repeat(self) -> None:
        """Run the blocks again in which a trial failed, in whole: every environment of that workload and level."""
        for attempt in range(1, REPEATS + 1):
            for number in self._asked:
                failed = [cell for cell in self.study.cells if not self._complete(cell, number)]
                if failed:
                    labels = ", ".join(cell.label for cell in failed)
                    self.progress.say(f"repeating block {number} of {labels}")
                    self._run_all(self._block(number, attempt, failed))

    def _complete(self, cell: Cell, number: int) -> bool:
        """Whether some attempt of this block has a good trial of every environment that it asked for."""
        return any(
            all(
                self._finished.get(Trial(number, attempt, cell.workload, cell.level, arm)) in RESULTS
                for arm in self._asked[number].get(_key(cell), ())
            )
            for attempt in range(REPEATS + 1)
        )

    def _judge(self) -> None:
        hopeless = [
            cell.label
            for cell in self.study.cells
            if not any(self._asked[number].get(_key(cell)) and self._complete(cell, number) for number in self._asked)
        ]
        if hopeless:
            raise TrialsFailed(
                f"no block of {', '.join(hopeless)} could be completed: the report lists each failed trial and why"
            )


def _key(cell: Cell) -> tuple[str, Level]:
    return cell.workload, cell.level
