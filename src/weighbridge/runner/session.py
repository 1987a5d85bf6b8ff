"""A session: walks the blocks of a study, saves each trial as it ends, and continues where it was interrupted."""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, TrialsFailed
from weighbridge.model.measurement import Outcome
from weighbridge.model.site import RunContext, Userland
from weighbridge.model.study import Cell, Study
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.runner.signals import shield
from weighbridge.runner.sites import Sites
from weighbridge.runner.trial import run_trial
from weighbridge.store.run import RunStore
from weighbridge.study import schedule

REPEATS = 2
"""How often a block with a failed trial is run again, at the end."""


class Progress(Protocol):
    """Who is told how a session goes on."""

    def say(self, text: str) -> None:
        """One line about what happens now."""

    def begins(self, trial: Trial, done: int, total: int) -> None:
        """A trial begins; ``done`` of ``total`` planned trials have ended."""

    def ended(self, record: TrialRecord) -> None:
        """A trial ended and is saved."""


@dataclass(slots=True)
class Session:
    """One run of a study into a store."""

    study: Study
    store: RunStore
    run: RunContext
    userland: Userland
    progress: Progress
    _finished: dict[Trial, Outcome] = field(default_factory=dict)
    _sites: Sites | None = None

    def go(self) -> None:
        """Run what is left of the study. The sites are closed however this ends.

        Raises EnvironmentLost, DiskFull, TrialsFailed (at the end, where a comparison has no complete block).
        """
        self._finished = self.store.finished()
        stack = ExitStack()
        try:
            self._sites = Sites(self.study, self.run, self.userland)
            self._sites.open_all(stack)
            for place, facts in self._sites.facts().items():
                self.store.add_facts(place, facts)
            for number in range(1, self.blocks + 1):
                self._run_all(schedule.block(self.study, number))
            for attempt in range(1, REPEATS + 1):
                self._repeat(attempt)
        finally:
            with shield():
                self.progress.say("closing every site")
                stack.close()
        self._judge()

    @property
    def blocks(self) -> int:
        """How many blocks are planned."""
        repetitions = self.study.file.repetitions
        return repetitions.blocks or repetitions.min

    def _run_all(self, trials: Iterable[Trial]) -> None:
        total = self.blocks * len(self.study.cells) * len(self.study.arms)
        for trial in trials:
            if trial in self._finished:
                continue
            self.progress.begins(trial, len(self._finished), total)
            record = self._run_one(trial)
            with shield():
                self.store.save(record)
                self._finished[trial] = record.outcome
            self.progress.ended(record)
            if record.outcome is Outcome.ENVIRONMENT_LOST:
                raise EnvironmentLost(
                    f"{trial.environment} was lost during {trial.workload}: {record.message}. "
                    "Every finished trial is kept; run again to continue"
                )

    def _run_one(self, trial: Trial) -> TrialRecord:
        assert self._sites is not None
        arm = next(arm for arm in self.study.arms if arm.name == trial.environment)
        cell = next(c for c in self.study.cells if (c.workload, c.level) == (trial.workload, trial.level))
        stage = self._sites.stage(arm, cell)
        return run_trial(trial, registry.workloads()[cell.kind], cell.options, stage)

    def _repeat(self, attempt: int) -> None:
        """Run the blocks again in which a trial failed, in whole: every environment of that workload and level."""
        for number in range(1, self.blocks + 1):
            failed = [cell for cell in self.study.cells if not self._complete(cell, number)]
            if failed:
                self.progress.say(f"repeating block {number} of {', '.join(cell.label for cell in failed)}")
                self._run_all(schedule.block(self.study, number, attempt=attempt, cells=failed))

    def _complete(self, cell: Cell, number: int) -> bool:
        """Whether some attempt of this block has a good trial of every environment."""
        return any(
            all(
                self._finished.get(Trial(number, attempt, cell.workload, cell.level, arm.name)) is Outcome.OK
                for arm in self.study.arms
            )
            for attempt in range(REPEATS + 1)
        )

    def _judge(self) -> None:
        hopeless = [
            cell.label
            for cell in self.study.cells
            if not any(self._complete(cell, number) for number in range(1, self.blocks + 1))
        ]
        if hopeless:
            raise TrialsFailed(
                f"no block of {', '.join(hopeless)} could be completed: the report lists each failed trial and why"
            )
