"""Figures that are missing where they are small: what is there of them is a selection of the trials.

CPU time of all who worked is not told where it is below what the counters resolve, nor software interrupts' share
where there were few ticks of either. In short trials that leaves the trials with much of it, and more of them in one
environment than in another. Such a figure is left out for the whole workload and level.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from weighbridge.analysis.reading_rate import ENOUGH_READINGS, ReadingRate
from weighbridge.model.level import Level
from weighbridge.statistics.verdicts import FAILING
from weighbridge.store.run import Value

SELECTED = ("cpu_all_per_", "softirq_share")
"""How the names of metrics begin that are absent where they are small."""
READ_MEANWHILE = ("memory_client_",)
"""How the names of metrics begin that are what a meter happened to read while the measured program ran."""


def without_selections(
    values: Sequence[Value], rate: ReadingRate | None, robbed: Collection[int] = ()
) -> list[Value]:
    """Return the values without figures that more than one in ten of an environment's good trials lack.

    ``robbed``: trials from which a hypervisor took CPU time. They lack them for that, whatever their size. Likewise
    without those that meters read too seldom: fewer than `ENOUGH_READINGS` times in the median trial.
    """
    trials: dict[tuple[str, Level], dict[str, set[int]]] = {}
    metrics: dict[tuple[str, Level], set[str]] = {}
    for value in values:
        trials.setdefault(_cell(value), {}).setdefault(value.environment, set()).add(value.trial_id)
        metrics.setdefault(_cell(value), set()).add(value.metric)
    counted = [value for value in values if value.metric.startswith(SELECTED) and value.trial_id not in robbed]
    has = Counter((*_cell(value), value.metric, value.environment) for value in counted)
    left_out: set[tuple[str, Level, str]] = set()
    for cell, sides in trials.items():
        read = [each for ids in sides.values() for each in ids if rate is not None and each in rate.measured_s]
        few = rate is not None and bool(read) and round(rate.median_s(read) * rate.hz) < ENOUGH_READINGS
        for metric in metrics[cell]:
            lacking = metric.startswith(SELECTED) and any(
                has[*cell, metric, side] < (1 - FAILING) * len(ids.difference(robbed)) for side, ids in sides.items()
            )
            seldom = metric.startswith(READ_MEANWHILE) and few
            if (lacking and any(has[*cell, metric, side] for side in sides)) or seldom:
                left_out.add((*cell, metric))
    return [value for value in values if (*_cell(value), value.metric) not in left_out]


def _cell(value: Value) -> tuple[str, Level]:
    return value.workload, value.level
