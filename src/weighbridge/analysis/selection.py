"""Figures that are missing where they are small: what is there of them is a selection of the trials.

CPU time of all who worked is not told where it is below what the counters resolve, nor software interrupts' share
where there were few ticks of either. In short trials that leaves the trials with much of it, and more of them in one
environment than in another. Such a figure is left out for the whole workload and level.
"""

from collections import Counter
from collections.abc import Collection, Sequence

from weighbridge.analysis.reading_rate import ENOUGH, ReadingRate
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
    without those that meters read too seldom: fewer than `ENOUGH` times in the median trial.
    """
    trials: dict[tuple[str, str, str], set[int]] = {}
    for value in values:
        trials.setdefault((value.workload, value.level, value.environment), set()).add(value.trial_id)
    counted = [value for value in values if _starts(value, SELECTED) and value.trial_id not in robbed]
    has = Counter((*_cell(value), value.metric, value.environment) for value in counted)
    left_out: set[tuple[str, str, str]] = set()
    for workload, level, metric, _ in list(has):
        sides = [
            (len(mine.difference(robbed)), side)
            for (*cell, side), mine in trials.items()
            if cell == [workload, level]
        ]
        if any(has[workload, level, metric, side] < (1 - FAILING) * number for number, side in sides):
            left_out.add((workload, level, metric))
    for value in values:
        place = (*_cell(value), value.metric)
        if rate is None or not _starts(value, READ_MEANWHILE) or place in left_out:
            continue
        all_of_it = [each for (*cell, _), ids in trials.items() if cell == [*_cell(value)] for each in ids]
        few = rate.too_few([each for each in all_of_it if each in rate.measured_s])
        if few is not None and few.readings < ENOUGH:
            left_out.add(place)
    return [value for value in values if (*_cell(value), value.metric) not in left_out]


def _cell(value: Value) -> tuple[str, str]:
    return value.workload, value.level


def _starts(value: Value, beginnings: tuple[str, ...]) -> bool:
    return value.metric.startswith(beginnings)
