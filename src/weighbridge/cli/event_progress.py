"""The progress of a run as events, for ``--progress json``."""

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from weighbridge.analysis.run_result import finite
from weighbridge.cli.events import BeginEvent, CostSoFar, ProgressEvent, StepEvent, WarningEvent, emit
from weighbridge.cli.progress import RunDisplay, interference_text, setup_words, trial_problem
from weighbridge.model.isolation import SiteLayers
from weighbridge.model.measurement import Outcome
from weighbridge.model.setup import SetupStep
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.report.export.json import penalty
from weighbridge.runner.estimate import Forecast
from weighbridge.runner.precision import CostEstimate, OutOfReach, PrecisionStatus
from weighbridge.secret_values import redacted

EVERY_S = 10.0
"""The least seconds between two states of the measurement, and between two steps of the set-up."""


class EventProgress:
    """Writes the progress of a session as events. Implements `RunDisplay`."""

    def __init__(self, directory: Path | None) -> None:
        self._round = self._trials = self._planned = 0
        self._left: Forecast | None = None
        self._estimates: Sequence[CostEstimate] = ()
        self._state_at = -math.inf
        self._step_at = time.monotonic()
        self._last_look = 0
        """Rounds at the last interim look. A continued run passes its earlier looks again, which write nothing."""
        emit(BeginEvent(directory=None if directory is None else str(directory)))

    def say(self, text: str) -> None:
        """Write a step."""
        self._step_at = time.monotonic()
        emit(StepEvent(text=redacted(text)))

    def waits(self, steps: Sequence[SetupStep]) -> None:
        """Write the steps of the set-up after a time without a step."""
        if time.monotonic() - self._step_at >= EVERY_S:
            self.say(setup_words(steps))

    def layers_known(self, layers: Mapping[str, tuple[SiteLayers, ...]]) -> None:
        """Ignore the hypervisors, which are in the result."""

    def trial_started(self, trial: Trial, finished: int, total: int, left: Forecast) -> None:
        """Note the state, and write it if it is due."""
        self._round, self._trials, self._planned, self._left = trial.block, finished, max(total, finished + 1), left
        if time.monotonic() - self._state_at >= EVERY_S:
            self._write_state()

    def trial_finished(self, record: TrialRecord) -> None:
        """Count a trial, and write a warning if it failed or was overloaded."""
        self._trials += 1
        if record.outcome is not Outcome.OK:
            broke = record.outcome is Outcome.BROKE
            code: Literal["failed-trial", "overloaded"] = "overloaded" if broke else "failed-trial"
            emit(WarningEvent(code=code, text=redacted(trial_problem(record))))

    def precision_checked(self, blocks: int, statuses: Sequence[PrecisionStatus]) -> None:
        """Write the state at a new interim look."""
        is_new, self._last_look = self._planned > 0 and blocks > self._last_look, max(blocks, self._last_look)
        if is_new:
            self._write_state()

    def interference_noticed(self, out_of_reach: OutOfReach) -> None:
        """Write that background load puts the precision target out of reach."""
        emit(WarningEvent(code="disturbed", text=redacted(interference_text(out_of_reach))))

    def time_known(self, trial_s: float, left: Forecast) -> None:
        """Write the state, which now has the time until the end."""
        self._left = left
        self._write_state()

    def costs_estimated(self, blocks: int, estimates: Sequence[CostEstimate]) -> None:
        """Note the costs so far for the next state."""
        self._estimates = estimates

    def close(self) -> None:
        """Write nothing more: the result follows on standard output."""

    def _write_state(self) -> None:
        self._state_at = time.monotonic()
        left = self._left
        emit(
            ProgressEvent(
                round=self._round,
                trials=self._trials,
                trials_planned=max(self._planned, self._trials),
                left_s=None if left is None or left.last_s == math.inf else round(left.last_s, 1),
                at_most=left is not None and left.at_most,
                costs=tuple(map(_cost_so_far, self._estimates)),
            )
        )


def event_progress(directory: Path | None) -> RunDisplay:
    """Return what writes the progress of a run in this directory."""
    return EventProgress(directory)


def _cost_so_far(estimate: CostEstimate) -> CostSoFar:
    cost = penalty(estimate.cost, estimate.metric.unit)
    if estimate.few:
        cost |= {"cost_low": None, "cost_high": None}
    return CostSoFar(
        **cost,
        environment=estimate.environment,
        workload=estimate.cell,
        metric=estimate.metric.name,
        rounds=estimate.cost.blocks,
        target=estimate.target,
        half_width=None if estimate.few else finite(estimate.half_width),
    )
