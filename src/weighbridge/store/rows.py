"""Converts records to the rows of their tables, and back."""

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from weighbridge.model.address import ArmId, CellId, MetricId
from weighbridge.model.flag import OF_MEASURED_TIME, Flag
from weighbridge.model.ladder import Rung
from weighbridge.model.level import Level
from weighbridge.model.measurement import Outcome
from weighbridge.model.trial import TrialRecord
from weighbridge.store.flags import flags_json

if TYPE_CHECKING:
    from weighbridge.model.study import Arm, Cell


_encoded = json.JSONEncoder(separators=(",", ":")).encode


class StoredTrial(NamedTuple):
    """One trial that ended. Times are seconds; ``started_at`` is seconds since the epoch."""

    id: int
    block: int
    attempt: int
    workload: str
    level: Level
    environment: str
    outcome: Outcome
    message: str
    started_at: float
    duration_s: float
    measured_s: float | None
    """Seconds of the measurement; None if the trial was not measured, which the file stores as 0."""
    flags: tuple[Flag, ...]
    measured_from_s: float | None
    """Seconds into the trial when the measured program began; None if it did not, or in older runs."""

    @property
    def cell(self) -> CellId:
        """Return the workload and level as one key."""
        return CellId(self.workload, self.level)

    @property
    def arm(self) -> ArmId:
        """Return the workload, level and environment as one key."""
        return ArmId(self.cell, self.environment)

    @property
    def window(self) -> tuple[float, float] | None:
        """Return the time in which the measured program ran, in seconds of the trial."""
        start, lasted_s = self.measured_from_s, self.measured_s
        return None if start is None or lasted_s is None else (start, start + lasted_s)

    def not_measured(self) -> "StoredTrial":
        """Return the trial as not measured, without the flags that older runs computed for a time of 0."""
        return self._replace(measured_s=None, flags=tuple(f for f in self.flags if f.code not in OF_MEASURED_TIME))


class StoredProcess(NamedTuple):
    """One process of a trial; ``stdout`` and ``stderr`` are paths in the run."""

    trial: int
    role: str
    argv: list[str]
    returncode: int
    duration_s: float
    stdout: str
    stderr: str


class StoredSample(NamedTuple):
    """One number that a meter measured for a complete trial."""

    trial: int
    site: str
    name: str
    value: float


class Value(NamedTuple):
    """One measurement with the trial and the arm that it belongs to."""

    trial_id: int
    block: int
    attempt: int
    environment: str
    workload: str
    level: Level
    metric: str
    unit: str
    better: str
    value: float
    started_at: float
    flags: tuple[Flag, ...]

    @property
    def cell(self) -> CellId:
        """Return the workload and level as one key."""
        return CellId(self.workload, self.level)

    @property
    def metric_id(self) -> MetricId:
        """Return the workload, level and metric as one key."""
        return MetricId(self.cell, self.metric)


def ladder_text(ladder: Sequence[Rung]) -> str:
    """Return a ladder as it is stored: a JSON list of names and bases."""
    return json.dumps(ladder)


def rungs_of(text: str) -> tuple[Rung, ...]:
    """Return the ladder stored as ``text``. In older runs it has only names, each based on the one before."""
    rungs: list[Rung] = []
    for entry in json.loads(text):
        before = rungs[-1].name if rungs else None
        rungs.append(Rung(entry, before) if isinstance(entry, str) else Rung(*entry))
    return tuple(rungs)


def arm_row(position: int, arm: "Arm") -> Sequence[object]:
    """Return the row of an environment."""
    return arm.name, position, arm.kind, arm.options.model_dump_json(), arm.aa_of


class CellRow(NamedTuple):
    """A workload at a level, with its options as data."""

    workload: str
    level: Level
    kind: str
    options: dict[str, object]

    @property
    def id(self) -> CellId:
        """Return the workload and level as one key."""
        return CellId(self.workload, self.level)


class PilotTrial(NamedTuple):
    """The measurements of a successful trial of the pilot block, by metric, with its seconds and those of its
    warm-up.

    ``duration_s`` excludes preparation for all trials of its environment. ``throttled_s`` is the longest time for
    which a site had exhausted its CPU limit; None if not metered.
    """

    workload: str
    level: Level
    environment: str
    duration_s: float
    warm_up_s: float
    throttled_s: float | None
    values: Mapping[str, float]

    @property
    def arm(self) -> ArmId:
        """Return the workload, level and environment as one key."""
        return ArmId(CellId(self.workload, self.level), self.environment)


def cell_row(position: int, cell: "Cell") -> Sequence[object]:
    """Return the row of a workload at a level."""
    return cell.workload, cell.level.text, position, cell.kind, cell.options.model_dump_json(), cell.label


def trial_row(record: TrialRecord) -> Sequence[object]:
    """Return a row for a trial, without its id."""
    trial = record.trial
    return (
        trial.block, trial.attempt, trial.workload, trial.level.text, trial.environment, str(record.outcome),
        record.message, record.started_at, record.duration_s, record.measured_s or 0.0, flags_json(record.flags),
        record.measured_from_s,
    )  # fmt: skip


def series_rows(number: int, record: TrialRecord) -> Iterator[Sequence[object]]:
    """Return the rows for the series of a trial."""
    times = functools.cache(_numbers)  # many series have the same times
    for one_series in record.series:
        yield number, one_series.place, one_series.name, times(one_series.at_s), _numbers(one_series.values)


def _numbers(values: Sequence[float]) -> str:
    """Return JSON without spaces or trailing ".0", which halves the size."""
    return _encoded([int(value) if float(value).is_integer() else value for value in values])
