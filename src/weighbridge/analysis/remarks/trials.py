"""Remarks about an environment's values and trials: outliers, drift, overload and failures."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from weighbridge.analysis.context import Context
from weighbridge.analysis.overload import Breakage
from weighbridge.analysis.remarks.rules import (
    AboutEnvironment,
    ArmTrials,
    ArmValues,
    about_trials,
    about_values,
    on_top,
)
from weighbridge.analysis.results import Remark
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import failing


@dataclass(frozen=True, slots=True)
class Outliers(AboutEnvironment):
    """The number of runs that are far from the others."""

    code = "outliers"
    outliers: int
    runs: int


@about_values(10)
def _outliers(values: ArmValues) -> Iterator[Remark]:
    if outliers := values.trends.flags.outliers:
        yield Outliers(values.environment, len(outliers), len(values.values))


@dataclass(frozen=True, slots=True)
class Drift(AboutEnvironment):
    """The values rise or fall during the session (Kendall's tau)."""

    code = "drift"
    tau: float


@about_values(20)
def _drift(values: ArmValues) -> Iterator[Remark]:
    drift = values.trends.flags.drift
    if drift is not None and values.trends.drifts:
        yield Drift(values.environment, drift.statistic)


@dataclass(frozen=True, slots=True)
class Autocorrelation(AboutEnvironment):
    """Successive runs resemble each other."""

    code = "autocorrelation"


@about_values(30)
def _autocorrelation(values: ArmValues) -> Iterator[Remark]:
    if values.trends.sticks:
        yield Autocorrelation(values.environment)


@dataclass(frozen=True, slots=True)
class BrokeUnderLoad(AboutEnvironment):
    """The trials broke under their load."""

    code = "overloaded"
    overloaded: Breakage


@about_trials(10)
def _broke_under_load(arm: ArmTrials) -> Iterator[Remark]:
    if arm.broke is not None:
        yield BrokeUnderLoad(arm.environment, arm.broke)


@dataclass(frozen=True, slots=True)
class FailedTrials(AboutEnvironment):
    """The number of ``trials`` without a measurement; ``outcomes`` are ordered by frequency."""

    code = "failed"
    trials: int
    outcomes: tuple[tuple[str, int], ...]


@about_trials(20)
def _failed_trials(arm: ArmTrials) -> Iterator[Remark]:
    outcomes = Counter(trial.outcome for trial in arm.trials if not (trial.ok or trial.broke))
    if outcomes:
        yield FailedTrials(arm.environment, len(arm.trials), tuple(outcomes.most_common()))


@dataclass(frozen=True, slots=True)
class Selected(AboutEnvironment):
    """Too many trials failed, so the cost is based on a selection of them."""

    code = "selected"


@about_trials(30)
def _selected(arm: ArmTrials) -> Iterator[Remark]:
    if failing([trial.ok for trial in arm.trials if not trial.broke]):
        yield Selected(arm.environment)


FIXED_TIME_SPREAD, FIXED_TIME_S = 0.005, 0.5
"""The largest spread between the shortest and longest trial, as a share, and the shortest time of the program."""


WHOLE_SECONDS_SPREAD, BEYOND_WHOLE_S = 0.02, 0.15
"""The largest spread between the shortest and the median trial, and the largest excess over whole seconds."""


@dataclass(frozen=True, slots=True)
class FixedTime(Remark):
    """A program took the same time in most trials (``seconds``), so its time seems to be fixed and shows no cost."""

    code = "fixed-time"
    label: str
    seconds: float


@on_top(10)
def _fixed_time(context: Context) -> Iterator[Remark]:
    """Yield programs of the user whose headline is their time, if it seems to be fixed in every environment."""
    written = context.study.workloads if context.study is not None else {}
    for cell in context.cells:
        options = written.get(cell.workload, {})
        if options.get("kind") != "command" or options.get("metrics") or options.get("adapter"):
            continue
        trials = [trial for trial in context.of_cell(cell) if trial.ok and "time" in trial.values]
        times = [trial.values["time"] for trial in trials]
        enough = len(times) >= MIN_BLOCKS_VERDICT and len({trial.environment for trial in trials}) > 1
        if enough and min(times) >= FIXED_TIME_S and _seem_fixed(times):
            yield FixedTime(cell.label, min(times))


def _seem_fixed(times: Sequence[float]) -> bool:
    """Return whether trials took nearly the same time.

    On a busy machine, half of the trials are enough if the time is close to whole seconds.
    """
    least = min(times)
    whole = least >= 1 and least % 1 <= BEYOND_WHOLE_S and median(times) <= (1 + WHOLE_SECONDS_SPREAD) * least
    return whole or max(times) <= (1 + FIXED_TIME_SPREAD) * least
