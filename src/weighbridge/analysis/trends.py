"""Drift and autocorrelation of every series of a run, corrected once for all of them.

A series is an environment's values of one metric of a workload at a level, in the order in which they ran. A run has
hundreds of series: tested each by itself at 1 %, a clean run had dozens of remarks. So the tests of all series, of
drift and of autocorrelation, are one family for Holm, as the families of verdicts are: the chance that a clean run
has any remark is at most 5 %, whatever the dependence, and series of the same trials do depend on one another. (The
rate of Benjamini and Hochberg promises that only of independent series, and lets more through where one drifts.)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.level import Level
from weighbridge.statistics import Flags, flags, verdicts

SeriesKey = tuple[str, Level, str, str]
"""Workload, level, environment and metric."""


@dataclass(frozen=True, slots=True)
class SeriesTrends:
    """What looks wrong with a series; ``drifts`` and ``sticks``: after the correction for all series of the run."""

    flags: Flags
    drifts: bool
    sticks: bool
    """Whether successive values resemble one another."""


NOTHING_WRONG = SeriesTrends(Flags((), None, None), drifts=False, sticks=False)
"""Of a series without values."""


def series_of(trials: Iterable[TrialRow]) -> dict[SeriesKey, list[float]]:
    """Return every series of a run; ``trials`` are in the order in which they ran."""
    series: dict[SeriesKey, list[float]] = {}
    for trial in trials:
        for metric, value in trial.values.items():
            series.setdefault((trial.workload, trial.level, trial.environment, metric), []).append(value)
    return series


def run_trends(trials: Iterable[TrialRow]) -> Mapping[SeriesKey, SeriesTrends]:
    """Return what looks wrong with each series of a run; ``trials`` are in the order in which they ran."""
    series = {key: flags(values) for key, values in series_of(trials).items()}
    survives = surviving(series.values())
    return {key: SeriesTrends(each, next(survives), next(survives)) for key, each in series.items()}


def surviving(series: Iterable[Flags]) -> Iterator[bool]:
    """Give of each series whether its drift and whether its autocorrelation is left after Holm, one by one."""
    tests = [trend for each in series for trend in (each.drift, each.autocorrelation)]
    adjusted: Sequence[float | None] = verdicts.adjusted([None if test is None else test.p_value for test in tests])
    return (p_value is not None and p_value <= verdicts.ALPHA for p_value in adjusted)
