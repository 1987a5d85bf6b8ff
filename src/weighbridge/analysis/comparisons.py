"""Contrasts of a run's environments on one metric: the blocks that have them all, cost, medians, p-value.

**Families** are comparisons whose verdicts are corrected together (Holm), so that none is a chance among many.

A headline answers the question that a study asks; its percentiles and deviations, and what it cost, answer further
ones. In one family a headline would be demoted by what is only said beside it. So there are three, of the comparisons
with the baseline: the headlines of all workloads and levels, their further metrics, and resource use. The steps of a
ladder are a fourth. In each the chance of any false "different" is at most 5 %: of a whole report it can be more,
which the page says.

**The ladder of a study**: environments of which each adds one step to another, and what each step costs.

A step is a paired comparison of its own, of two environments inside the same blocks. It is never the difference of
two costs against the baseline, whose intervals would add up and whose typical values need not be from the same runs.

The steps of all the workloads' own metrics are a family of their own for Holm: asking for a ladder takes nothing from
the comparisons with the baseline. Resource use has no ladder. A step is judged like any other comparison; its noise
floor is the metric's.

An environment that has no trial of a workload and level is absent there: the steps that add to it are against what it
itself adds to.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import median
from typing import cast

import numpy as np

from weighbridge.analysis.context import Context
from weighbridge.analysis.judgement import holm_levels, judged, with_visible_cost
from weighbridge.analysis.plan import Comparisons, changes
from weighbridge.analysis.remarks import remarks_about
from weighbridge.analysis.results import BlockPair, Comparison, Ladder, LadderStep, MetricReport
from weighbridge.model.address import MetricId, grouped
from weighbridge.model.measurement import scale_of
from weighbridge.model.study import Rung, nearest_base
from weighbridge.statistics import Better, Contrast, Cost, Looks, Scale, slow_run_rate, verdicts
from weighbridge.statistics.contrast import OF_TWO
from weighbridge.statistics.verdicts import PValues
from weighbridge.store.blocks import complete_blocks
from weighbridge.store.run import RunStore, Value


def values_by_metric(values: Iterable[Value]) -> dict[MetricId, list[Value]]:
    """Return the values by metric. Metrics and values stay in their order."""
    return grouped(values, lambda value: value.metric_id)


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
    """A contrast on one metric of a run. ``values`` are those of its arms, in the ``blocks`` that have them all."""

    blocks: tuple[int, ...]
    values: tuple[Sequence[float], ...]
    cost: Cost
    p_values: PValues
    """For Holm, with its family."""
    standard_error: float | None
    """That of the mean of the blocks' effects: of logarithms, or in the metric's unit; None of a single block."""


def contrast_cost(
    values: Sequence[Value], contrast: Contrast, plan: Comparisons, confidence: float = 0.95, on: Scale | None = None
) -> ContrastCost | None:
    """Give what a contrast of environments is worth, from the values of one metric; None without a whole block.

    It is on the scale ``on``; without one on that of the metric.
    """
    complete = complete_blocks(values, contrast.arms)
    if not complete:
        return None
    sides = tuple([each.value for each in arm] for arm in zip(*complete, strict=True))
    better = cast(Better, values[0].better)
    cost = contrast.cost(
        sides, better=better, confidence=confidence, equivalence=plan.equivalence, looks=plan.looks,
        scale=on or scale_of(values[0].metric, values[0].unit),
    )  # fmt: skip
    effects = contrast.effects(sides, cost.scale)
    error = float(np.std(effects, ddof=1)) / math.sqrt(len(effects)) if len(effects) > 1 else None
    blocks = tuple(first.block for first, *_ in complete)
    guarded = plan.aa_arm is not None
    p_values = verdicts.p_values_of(effects, cost, plan.looks, guarded=guarded)
    return ContrastCost(blocks, sides, cost, p_values, error)


def on_differences(row: Comparison, better: Better, looks: Looks) -> Comparison:
    """Give a comparison with its cost as a difference in the metric's unit, from the same blocks; else as it is."""
    if row.cost is None or row.cost.scale == "difference":
        return row
    sides = ([pair.baseline for pair in row.pairs], [pair.value for pair in row.pairs])
    cost = OF_TWO.cost(sides, better=better, confidence=row.cost.confidence, looks=looks, scale="difference")
    effects = OF_TWO.effects(sides, "difference")
    error = float(np.std(effects, ddof=1)) / math.sqrt(len(effects)) if len(effects) > 1 else None
    return replace(row, cost=cost, standard_error=error)


def comparison(
    values: Sequence[Value], plan: Comparisons, environment: str, against: str
) -> tuple[Comparison, PValues | None]:
    """Give an environment against another, still without verdict and remarks, and its p-values for Holm.

    `values` are those of one metric.
    """
    contrast = contrast_cost(values, Contrast.between(environment, against), plan)
    mine = per_block(values, environment)
    better = cast(Better, values[0].better)
    row = Comparison(
        environment=environment,
        aa=environment == plan.aa_arm,
        cost=contrast.cost if contrast else None,
        baseline_value=median(contrast.values[0]) if contrast else None,
        value=median(contrast.values[1] if contrast else mine) if mine else None,
        slow=slow_run_rate(mine, better=better) if mine and min(mine) >= 0 else None,
        adjusted_p=None,
        verdict="inconclusive",
        remarks=(),
        standard_error=contrast.standard_error if contrast else None,
        pairs=tuple(map(BlockPair, contrast.blocks, *contrast.values)) if contrast else (),
    )
    return row, contrast.p_values if contrast else None


def without_cost(
    values: Sequence[Value], plan: Comparisons, environment: str, against: str
) -> tuple[Comparison, None]:
    """Return what `comparison` does, but only the values of both sides: a cost takes much longer."""
    complete = complete_blocks(values, (against, environment))
    mine = [each.value for each in values if each.environment == environment]
    row = Comparison(
        environment=environment, aa=environment == plan.aa_arm, cost=None, baseline_value=None,
        value=median(mine) if mine else None, slow=None,
        adjusted_p=None, verdict="inconclusive", remarks=(),
        pairs=tuple(BlockPair(one.block, one.value, other.value) for one, other in complete),
    )  # fmt: skip
    return row, None


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A comparison with another environment than the baseline, ``against``, that is judged with its whole family."""

    report: MetricReport
    against: str
    row: Comparison
    p_values: PValues | None


def judged_together(family: Sequence[Unjudged], context: Context) -> list[Comparison]:
    """Give the comparisons of a family with verdicts and remarks, in their order."""
    after, failing = verdicts.adjusted([each.p_values for each in family]), context.failing()
    rows = []
    for each, p_value, level in zip(family, after, holm_levels(after), strict=True):
        against = context.with_against(each.against)
        row = judged(each.report, replace(each.row, aa=False), p_value, against, failing)
        row = with_visible_cost(each.report, row, level, against)
        rows.append(replace(row, remarks=remarks_about(each.report, row, against)))
    return rows


# -- the ladder ---------------------------------------------------------------------------------


def analyse_ladder(
    store: RunStore,
    values: Mapping[MetricId, Sequence[Value]],
    reports: Sequence[MetricReport],
    plan: Comparisons,
    context: Context,
) -> tuple[Ladder, ...]:
    """Give the steps of each of the workloads' own metrics, the headline metrics first; none without a ladder."""
    own = sorted((each for each in reports if not each.resource_use), key=lambda each: not each.headline)
    changes_between = cache(partial(changes, store))
    ladders: list[Ladder] = []
    family: list[Unjudged] = []
    for report in own if plan.ladder else []:
        metric_values = values[report.metric_id]
        present = {trial.environment for trial in context.of_cell(report.cell)}
        steps = []
        for previous, name in _pairs(plan.ladder, present):
            row, tests = comparison(metric_values, plan, name, previous)
            start = _stand(report, previous, row.cost.scale if row.cost else None)
            steps.append(LadderStep(previous, changes_between(previous, name), row, start))
            family.append(Unjudged(report, previous, row, tests))
        if steps:
            ladders.append(Ladder(report, tuple(steps)))
    rows = iter(judged_together(family, context))
    return tuple(
        replace(ladder, steps=tuple(replace(step, row=next(rows)) for step in ladder.steps)) for ladder in ladders
    )


def _pairs(ladder: Sequence[Rung], present: Collection[str]) -> Iterator[tuple[str, str]]:
    """What is compared where only the environments that are `present` were measured: (against, environment)."""
    for name in (rung.name for rung in ladder if rung.name in present):
        base = nearest_base(ladder, name, present)
        if base is not None:
            yield base, name


def _stand(report: MetricReport, environment: str, scale: Scale | None) -> float | None:
    """Where an environment stands against the baseline on a scale: its own typical ratio or difference."""
    rows = {row.environment: row.cost for row in report.comparisons}
    if environment not in rows:  # the baseline itself
        return 0.0 if scale == "difference" else 1.0
    cost = rows[environment]
    return cost.typical if cost is not None and cost.scale == scale else None
