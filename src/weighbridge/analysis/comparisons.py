"""One environment against another on one metric: pairs of the same blocks, cost, medians, p-value."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import cast

from weighbridge.analysis.plan import Plan
from weighbridge.analysis.resources import by_difference
from weighbridge.analysis.results import Comparison
from weighbridge.model.level import Level
from weighbridge.statistics import Better, Scale, compare, scale_of, slow_run_rate, verdicts
from weighbridge.store.pairs import pairs
from weighbridge.store.run import Value

Key = tuple[str, Level, str]
"""Workload, level and metric."""


def grouped(values: Iterable[Value]) -> dict[Key, list[Value]]:
    """Give the values of each workload, level and metric, in the order in which these first appeared."""
    found: dict[Key, list[Value]] = {}
    for value in values:
        found.setdefault((value.workload, value.level, value.metric), []).append(value)
    return found


def scale(metric: str, unit: str) -> Scale | None:
    """Give the scale on which a metric has to be compared; None where its values decide."""
    return "difference" if by_difference(metric) else scale_of(unit)


def difference_unit(unit: str) -> str:
    """Give the unit of a difference of values in `unit`: percentages differ by points."""
    return "points" if unit == "%" else unit


def paired(values: Sequence[Value], baseline: str, environment: str) -> verdicts.Paired:
    """Give the values of both sides, block by block."""
    found = pairs(values, baseline, environment)
    return [pair.baseline.value for pair in found], [pair.other.value for pair in found]


def per_block(values: Sequence[Value], environment: str) -> list[float]:
    """Give one value a block: of the first attempt that has one."""
    mine = sorted((v for v in values if v.environment == environment), key=lambda v: (v.block, v.attempt))
    first: dict[int, float] = {}
    for value in mine:
        first.setdefault(value.block, value.value)
    return list(first.values())


def comparison(
    values: Sequence[Value], plan: Plan, environment: str, against: str
) -> tuple[Comparison, float | None]:
    """Give an environment against another, still without verdict and remarks, and its p-value for Holm.

    `values` are those of one metric.
    """
    better = cast(Better, values[0].better)
    sides = paired(values, against, environment)
    mine = per_block(values, environment)
    cost, p_value = None, None
    if sides[0]:
        on = scale(values[0].metric, values[0].unit)
        cost = compare(*sides, better=better, equivalence=plan.equivalence, looks=plan.looks, scale=on)
        p_value = verdicts.family_p_value(sides, cost, plan.looks)
    made = Comparison(
        environment=environment,
        aa=environment == plan.aa_arm,
        cost=cost,
        baseline_value=median(sides[0]) if sides[0] else None,
        value=median(sides[1] or mine) if mine else None,
        slow=slow_run_rate(mine, better=better) if mine and min(mine) >= 0 else None,
        adjusted_p=None,
        verdict="inconclusive",
        remarks=(),
    )
    return made, p_value
