"""Contrasts of a run's environments on one metric: the blocks that have them all, cost, medians, p-value."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import cast

from weighbridge.analysis.plan import Plan
from weighbridge.analysis.resources import by_difference
from weighbridge.analysis.results import Comparison
from weighbridge.model.level import Level
from weighbridge.statistics import Better, Contrast, Cost, Scale, scale_of, slow_run_rate, verdicts
from weighbridge.store.blocks import arm_values
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


def per_block(values: Sequence[Value], environment: str) -> list[float]:
    """Give one value a block: of the first attempt that has one."""
    mine = sorted((v for v in values if v.environment == environment), key=lambda v: (v.block, v.attempt))
    first: dict[int, float] = {}
    for value in mine:
        first.setdefault(value.block, value.value)
    return list(first.values())


@dataclass(frozen=True, slots=True)
class ContrastCost:
    """A contrast on one metric of a run. ``values`` are those of its arms, in the blocks that have them all."""

    values: tuple[Sequence[float], ...]
    cost: Cost
    p_value: float
    """For Holm, with its family."""


def contrast_cost(
    values: Sequence[Value], contrast: Contrast, plan: Plan, confidence: float = 0.95, on: Scale | None = None
) -> ContrastCost | None:
    """Give what a contrast of environments is worth, from the values of one metric; None without a whole block.

    It is on the scale ``on``; without one on that of the metric.
    """
    sides = arm_values(values, contrast.arms)
    if not sides[0]:
        return None
    better = cast(Better, values[0].better)
    cost = contrast.cost(
        sides, better=better, confidence=confidence, equivalence=plan.equivalence, looks=plan.looks,
        scale=on or scale(values[0].metric, values[0].unit),
    )  # fmt: skip
    return ContrastCost(sides, cost, verdicts.family_p_value(contrast.effects(sides, cost.scale), plan.looks))


def comparison(
    values: Sequence[Value], plan: Plan, environment: str, against: str
) -> tuple[Comparison, float | None]:
    """Give an environment against another, still without verdict and remarks, and its p-value for Holm.

    `values` are those of one metric.
    """
    found = contrast_cost(values, Contrast.between(environment, against), plan)
    mine = per_block(values, environment)
    better = cast(Better, values[0].better)
    row = Comparison(
        environment=environment,
        aa=environment == plan.aa_arm,
        cost=found.cost if found else None,
        baseline_value=median(found.values[0]) if found else None,
        value=median(found.values[1] if found else mine) if mine else None,
        slow=slow_run_rate(mine, better=better) if mine and min(mine) >= 0 else None,
        adjusted_p=None,
        verdict="inconclusive",
        remarks=(),
    )
    return row, found.p_value if found else None
