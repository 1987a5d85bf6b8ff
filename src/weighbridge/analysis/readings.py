"""How often the meters read during trials, whether that is often enough, and which figures are a selection.

**A selection** is a figure that is missing if it is small. The CPU time of all sites is missing if it is below the
resolution of the counters, and the share of software interrupts if there were few ticks of either. In short trials,
only trials with large values remain, and more of them in one environment than in another. Such a figure is left out
for the whole cell.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import median

from weighbridge.analysis.plan import FASTEST_HZ, meters_hz
from weighbridge.model.address import grouped
from weighbridge.model.measurement import ALL_CPU, SOFTIRQ_SHARE, Outcome
from weighbridge.model.trial import PROMETHEUS
from weighbridge.statistics.verdicts import FAILING
from weighbridge.store.run import RunStore, Value

ENOUGH_READINGS = 5
"""The fewest readings in the measured time of a trial for a useful mean or peak."""


@dataclass(frozen=True, slots=True)
class ReadingRate:
    """Readings per second, the measured seconds of each trial, and whether a pilot block chose the trial lengths."""

    hz: float
    measured_s: Mapping[int, float]
    chosen: bool = False

    def median_s(self, trials: Sequence[int]) -> float:
        """Return the median of the trials' measured seconds; infinite without trials."""
        return median(self.measured_s[each] for each in trials) if trials else math.inf

    def enough(self, trials: Sequence[int]) -> bool:
        """Return whether the median trial has enough readings."""
        return self.median_s(trials) * self.hz >= ENOUGH_READINGS

    def enough_hz(self, trials: Sequence[int]) -> int | None:
        """Return how many readings per second would be enough; None if the meters cannot read that often."""
        seconds = self.median_s(trials)
        needed_hz = math.ceil(ENOUGH_READINGS / seconds) if seconds > 0 else math.inf
        return None if needed_hz > FASTEST_HZ else int(max(needed_hz, math.floor(self.hz) + 1))


def readings(store: RunStore) -> ReadingRate | None:
    """Return how often the meters of a run read; None if its trials have no readings over time."""
    good = [trial for trial in store.trials() if trial.outcome is Outcome.OK]
    measured = {trial.id: trial.measured_s for trial in good if trial.measured_s is not None}
    first = next(iter(measured), None)
    if first is None or all(series.place == PROMETHEUS for _, series in store.series(first)):
        return None
    return ReadingRate(meters_hz(store), measured, bool(store.lengths()))


# -- selections ---------------------------------------------------------------------------------

SELECTED = (ALL_CPU, SOFTIRQ_SHARE)
"""Prefixes of metrics that are absent if they are small."""
READ_MEANWHILE = ("memory_client_",)
"""Prefixes of metrics that depend on the moments when a meter read during the measured program."""


def without_selections(
    values: Sequence[Value], rate: ReadingRate | None, robbed: Collection[int] = ()
) -> list[Value]:
    """Return the values without figures that are missing in more than one in ten of an environment's good trials.

    A hypervisor took CPU time in ``robbed`` trials, so their figures are missing whatever their size. Figures with
    fewer than `ENOUGH_READINGS` readings in the median trial are left out too. The values of one cell stay in order.
    """
    if not any(name.startswith((*SELECTED, *READ_MEANWHILE)) for name in {value.metric for value in values}):
        return list(values)
    kept: list[Value] = []
    for of_cell in grouped(values, attrgetter("workload", "level")).values():
        counted = (value for value in of_cell if value.metric.startswith(SELECTED) and value.trial_id not in robbed)
        has = Counter((value.metric, value.environment) for value in counted)
        left_out = set()
        arms = grouped(of_cell, attrgetter("environment"))
        sides = {side: {value.trial_id for value in of_arm} for side, of_arm in arms.items()}
        read = [each for ids in sides.values() for each in ids if rate is not None and each in rate.measured_s]
        few = rate is not None and bool(read) and round(rate.median_s(read) * rate.hz) < ENOUGH_READINGS
        for metric in {value.metric for value in of_cell}:
            lacking = metric.startswith(SELECTED) and any(
                has[metric, side] < (1 - FAILING) * len(ids.difference(robbed)) for side, ids in sides.items()
            )
            seldom = metric.startswith(READ_MEANWHILE) and few
            if (lacking and any(has[metric, side] for side in sides)) or seldom:
                left_out.add(metric)
        kept += [value for value in of_cell if value.metric not in left_out]
    return kept
