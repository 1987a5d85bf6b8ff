"""The state of a running run: updated between trials with a few assignments, and copied when it is read."""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from weighbridge.model.isolation import SiteLayers
from weighbridge.model.measurement import Measurement, Outcome
from weighbridge.model.setup import SetupStep
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.runner.estimate import Forecast
from weighbridge.runner.precision import CostEstimate, OutOfReach, PrecisionStatus

Where = tuple[str, str, str]
"""A workload, its level (``clients=50``; empty if nothing is swept) and an environment."""


def where(trial: Trial) -> Where:
    """Return the workload, level and environment that a trial measures."""
    return trial.workload, trial.level.label, trial.environment


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a run at one moment. Times are seconds since the epoch; values not known yet are None or empty."""

    begun_at: float
    finished: int = 0
    planned: int = 0
    block: int = 0
    current: Trial | None = None
    current_began_at: float = 0.0
    outcomes: Mapping[Outcome, int] = field(default_factory=dict)
    last: TrialRecord | None = None
    lasted: Mapping[Where, tuple[float, float | None]] = field(default_factory=dict)
    """Duration and measured seconds of the last trial, by place."""
    measurements: Mapping[tuple[Where, str], Measurement] = field(default_factory=dict)
    """The last measurements, by place and metric."""
    layers: Mapping[str, tuple[SiteLayers, ...]] = field(default_factory=dict)
    """The hypervisors of environments in virtual machines."""
    looked_after: int = 0
    statuses: Mapping[tuple[str, str], PrecisionStatus] = field(default_factory=dict)
    """The precision at the last interim look, by cell and environment."""


class Live:
    """Records the progress of a session. Implements ``Progress`` of the session; any thread can call ``now``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes = Counter(dict.fromkeys(Outcome, 0))
        self._lasted: dict[Where, tuple[float, float | None]] = {}
        self._measurements: dict[tuple[Where, str], Measurement] = {}
        self._statuses: dict[tuple[str, str], PrecisionStatus] = {}
        self._moment = Snapshot(time.time())
        self._copied: Snapshot | None = None

    def now(self) -> Snapshot:
        """Return the current state; the same object until the state changes."""
        with self._lock:
            if self._copied is None:
                self._copied = replace(
                    self._moment,
                    outcomes=dict(self._outcomes),
                    lasted=dict(self._lasted),
                    measurements=dict(self._measurements),
                    statuses=dict(self._statuses),
                )
            return self._copied

    def say(self, text: str) -> None:
        """Ignore text, which is for the terminal."""

    def waits(self, steps: Sequence[SetupStep]) -> None:
        """Ignore the steps of the set-up."""

    def layers_known(self, layers: Mapping[str, tuple[SiteLayers, ...]]) -> None:
        """Record the hypervisors of environments."""
        with self._lock:
            self._copied = None
            self._moment = replace(self._moment, layers=dict(layers))

    def trial_started(self, trial: Trial, finished: int, total: int, left: Forecast) -> None:
        """Record the running trial and the number of trials."""
        with self._lock:
            self._copied = None
            self._moment = replace(
                self._moment, current=trial, current_began_at=time.time(), block=trial.block, finished=finished,
                planned=max(total, finished),
            )  # fmt: skip

    def trial_finished(self, record: TrialRecord) -> None:
        """Record a finished trial, without the output of its programs."""
        place = where(record.trial)
        with self._lock:
            self._copied = None
            finished = self._moment.finished + 1
            self._moment = replace(
                self._moment, current=None, finished=finished, planned=max(self._moment.planned, finished),
                last=replace(record, roles=(), histograms={}),
            )  # fmt: skip
            self._outcomes[record.outcome] += 1
            self._lasted[place] = record.duration_s, record.measured_s
            for measurement in record.measurements:
                self._measurements[place, measurement.metric.name] = measurement

    def precision_checked(self, blocks: int, statuses: Sequence[PrecisionStatus]) -> None:
        """Record the precision of each comparison."""
        with self._lock:
            self._copied = None
            self._moment = replace(self._moment, looked_after=blocks)
            self._statuses.update({(each.cell, each.environment): each for each in statuses})

    def interference_noticed(self, out_of_reach: OutOfReach) -> None:
        """Ignore the load of other programs, which the machine's own exporters serve."""

    def time_known(self, trial_s: float, left: Forecast) -> None:
        """Ignore the forecast: the durations of trials are served."""

    def costs_estimated(self, blocks: int, estimates: Sequence[CostEstimate]) -> None:
        """Ignore the costs, which are in the report."""
