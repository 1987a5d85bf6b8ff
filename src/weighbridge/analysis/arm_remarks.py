"""What is to be known of one environment's own values and trials."""

from collections import Counter
from collections.abc import Sequence

from weighbridge.analysis.condition_remarks import Unresolved
from weighbridge.analysis.flag_counts import flagged_trials
from weighbridge.analysis.overload import Broke
from weighbridge.analysis.remarks import (
    Autocorrelation,
    BrokeUnderLoad,
    Drift,
    FailedTrials,
    Outliers,
    Remark,
    Selected,
)
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.statistics import flags
from weighbridge.statistics.verdicts import failing

MEMORY_PER_SITE = "memory_per_site"
"""The growth of all of the machine's used memory with each site: no site uses less than nothing."""


def about_series(metric: str, environment: str, trials: Sequence[TrialRow]) -> list[Remark]:
    """Give what is remarkable about an environment's values of a metric, in the order in which they ran."""
    series = [trial.values[metric] for trial in trials if metric in trial.values]
    seen = flags(series)
    found: list[Remark] = []
    if seen.outliers:
        found.append(Outliers(environment, len(seen.outliers), len(series)))
    if seen.drift is not None and seen.drift.flagged:
        found.append(Drift(environment, seen.drift.statistic))
    if seen.autocorrelation is not None and seen.autocorrelation.flagged:
        found.append(Autocorrelation(environment))
    impossible = sum(value <= 0 for value in series) if metric == MEMORY_PER_SITE else 0
    if impossible:
        found.append(Unresolved(environment, impossible, len(series)))
    return found


def about_trials(environment: str, trials: Sequence[TrialRow], broke: Broke | None) -> list[Remark]:
    """Give how many of an environment's trials broke, failed, or were flagged."""
    found: list[Remark] = [] if broke is None else [BrokeUnderLoad(environment, broke)]
    others = [trial for trial in trials if not trial.broke]
    failed = Counter(trial.outcome for trial in others if not trial.ok)
    if failed:
        found.append(FailedTrials(environment, len(trials), tuple(failed.most_common())))
    if failing([trial.ok for trial in others]):
        found.append(Selected(environment))
    return [*found, *flagged_trials(environment, trials)]
