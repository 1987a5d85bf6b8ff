"""The state of a run while it goes on: noted between trials, by a few assignments, and copied when it is read."""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from weighbridge.model.isolation import SiteLayers
from weighbridge.model.measurement import Measurement, Outcome
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.runner.estimate import Forecast
from weighbridge.runner.precision import Estimate, OutOfReach, Standing

Where = tuple[str, str, str]
"""A workload, its level as people read it (``clients=50``; empty where nothing is swept) and an environment."""


def where(trial: Trial) -> Where:
    """Return the workload, level and environment that a trial measures."""
    return trial.workload, trial.level.label, trial.environment


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The run at one moment. Times are seconds since the epoch; what there is not yet is None or empty."""

    begun_at: float
    finished: int = 0
    planned: int = 0
    block: int = 0
    current: Trial | None = None
    current_began_at: float = 0.0
    outcomes: Mapping[Outcome, int] = field(default_factory=dict)
    last: TrialRecord | None = None
    lasted: Mapping[Where, tuple[float, float | None]] = field(default_factory=dict)
    """Duration and measured seconds of the last trial of each."""
    measurements: Mapping[tuple[Where, str], Measurement] = field(default_factory=dict)
    """The last ones of each, by metric."""
    layers: Mapping[str, tuple[SiteLayers, ...]] = field(default_factory=dict)
    """The hypervisors of the environments that are in some."""
    looked_after: int = 0
    standings: Mapping[tuple[str, str], Standing] = field(default_factory=dict)
    """By cell and environment, as they were when they were last looked at."""


class Live:
    """Notes how a session goes on. Implements ``Progress`` of the session; ``now`` may be asked by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes = Counter(dict.fromkeys(Outcome, 0))
        self._lasted: dict[Where, tuple[float, float | None]] = {}
        self._measurements: dict[tuple[Where, str], Measurement] = {}
        self._standings: dict[tuple[str, str], Standing] = {}
        self._moment = Snapshot(time.time())
        self._copied: Snapshot | None = None

    def now(self) -> Snapshot:
        """The run at this moment: the same object until something is noted."""
        with self._lock:
            if self._copied is None:
                self._copied = replace(
                    self._moment,
                    outcomes=dict(self._outcomes),
                    lasted=dict(self._lasted),
                    measurements=dict(self._measurements),
                    standings=dict(self._standings),
                )
            return self._copied

    def say(self, text: str) -> None:
        """Words are for people: nothing is noted."""

    def step(self, text: str) -> None:
        """Words are for people: nothing is noted."""

    def layers_known(self, layers: Mapping[str, tuple[SiteLayers, ...]]) -> None:
        """Note in which hypervisors environments are."""
        with self._lock:
            self._copied = None
            self._moment = replace(self._moment, layers=dict(layers))

    def trial_started(self, trial: Trial, finished: int, total: int, left: Forecast) -> None:
        """Note which trial runs, and how many there are."""
        with self._lock:
            self._copied = None
            self._moment = replace(
                self._moment, current=trial, current_began_at=time.time(), block=trial.block, finished=finished,
                planned=max(total, finished),
            )  # fmt: skip

    def trial_finished(self, record: TrialRecord) -> None:
        """Note a finished trial, without its programs' outputs."""
        at = where(record.trial)
        with self._lock:
            self._copied = None
            finished = self._moment.finished + 1
            self._moment = replace(
                self._moment, current=None, finished=finished, planned=max(self._moment.planned, finished),
                last=replace(record, roles=(), histograms={}),
            )  # fmt: skip
            self._outcomes[record.outcome] += 1
            self._lasted[at] = record.duration_s, record.measured_s
            for each in record.measurements:
                self._measurements[at, each.metric.name] = each

    def precision_checked(self, blocks: int, standings: Sequence[Standing]) -> None:
        """Note how precise each comparison is."""
        with self._lock:
            self._copied = None
            self._moment = replace(self._moment, looked_after=blocks)
            self._standings.update({(each.cell, each.environment): each for each in standings})

    def others_noticed(self, out_of_reach: OutOfReach) -> None:
        """No figure of others is served here: the machine's own exporters have them."""

    def time_known(self, trial_s: float, left: Forecast) -> None:
        """Every trial's time is served, and what is left."""

    def costs_estimated(self, blocks: int, estimates: Sequence[Estimate]) -> None:
        """Whoever watches figures compares them: costs are the report's."""
