"""Contrasts of a run's environments on one metric: complete blocks, cost, medians and p-value.

`weighbridge.analysis.judgement` describes the families of comparisons whose verdicts are corrected together.

**The ladder of a study** has environments that each add one step to another, and the cost of each step. A step is its
own paired comparison of two environments within the same blocks. It is never the difference of two costs against the
baseline: their intervals would add up, and their typical values could come from different runs.

The steps of all workloads' own metrics are one family for Holm's correction, so a ladder takes nothing from the
comparisons with the baseline. Resource use has no ladder. A step is judged like any other comparison, with the
metric's noise floor.

An environment without a trial of a cell is absent there. Steps that add to it are then compared with the environment
that it adds to.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import attrgetter
from statistics import median
from typing import cast

import numpy as np

from weighbridge.analysis.context import Context
from weighbridge.analysis.judgement import holm_levels, judged, with_visible_cost
from weighbridge.analysis.plan import Comparisons, changes
from weighbridge.analysis.remarks import remarks_about
from weighbridge.analysis.results import BlockPair, Comparison, Ladder, LadderStep, MetricReport
from weighbridge.model.address import MetricId, grouped
from weighbridge.model.ladder import Rung, nearest_base
from weighbridge.model.measurement import scale_of
from weighbridge.statistics import Better, Contrast, Cost, Looks, Scale, slow_run_rate, verdicts
from weighbridge.statistics.contrast import OF_TWO
from weighbridge.statistics.ranks import signed_rank_p_value
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK
from weighbridge.statistics.verdicts import PValues
from weighbridge.store.blocks import arm_values, complete_blocks
from weighbridge.store.run import RunStore, Value


def values_by_metric(values: Iterable[Value]) -> dict[MetricId, list[Value]]:
    """Return the values by metric. Metrics and values stay in their order."""
    groups = grouped(values, attrgetter("workload", "level", "metric"))  # hashing a MetricId per value takes longer
    return {group[0].metric_id: group for group in groups.values()}


def difference_unit(unit: str) -> str:
    """Return the unit of a difference between values in `unit`; percentages differ by points."""
    return "points" if unit == "%" else unit


def cost_unit(scale: str, unit: str) -> str:
    """Return the unit of a cost on a scale, of a metric in `unit`."""
    return "%" if scale == "ratio" else difference_unit(unit)


def per_block(values: Sequence[Value], environment: str) -> list[float]:
    """Return one value per block, from the first attempt that has one."""
    mine = sorted((v for v in values if v.environment == environment), key=lambda v: (v.block, v.attempt))
    first: dict[int, float] = {}
    for value in mine:
        first.setdefault(value.block, value.value)
    return list(first.values())


@dataclass(frozen=True, slots=True)
class ContrastCost:
    """The cost of a contrast on one metric. ``values`` are the values of its arms in the complete ``blocks``."""

    blocks: tuple[int, ...]
    values: tuple[Sequence[float], ...]
    cost: Cost
    p_values: PValues
    """The p-values for Holm's correction within the family."""
    effects: tuple[float, ...]
    """The effect of each block: a sum of logarithms, or of values in the metric's unit."""


def contrast_cost(
    values: Sequence[Value], contrast: Contrast, plan: Comparisons, confidence: float = 0.95, on: Scale | None = None
) -> ContrastCost | None:
    """Return the cost of a contrast of environments from the values of one metric; None without a complete block.

    ``on`` is the scale; by default the metric's.
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
    blocks = tuple(first.block for first, *_ in complete)
    guarded = plan.aa_arm is not None
    p_values = verdicts.p_values_of(effects, cost, plan.looks, guarded=guarded)
    return ContrastCost(blocks, sides, cost, p_values, tuple(effects))


def no_cost_is_likely(values: Sequence[Value], contrast: Contrast) -> bool:
    """Return whether a signed-rank test is so far from a cost that the 99% interval cannot exclude "no cost".

    It is faster than `contrast_cost`. It is False with fewer than ten blocks, whose interval is computed differently.
    """
    sides = arm_values(values, contrast.arms)
    if len(sides[0]) < MIN_BLOCKS_SIGNED_RANK:
        return False
    usual: Scale = "ratio" if min(map(min, sides)) > 0 else "difference"
    effects = contrast.effects(sides, scale_of(values[0].metric, values[0].unit) or usual)
    return signed_rank_p_value(np.asarray(effects)) > verdicts.ALPHA


def on_differences(row: Comparison, better: Better, looks: Looks) -> Comparison:
    """Return a comparison whose cost is a difference in the metric's unit, from the same blocks.

    It stays unchanged if its cost is a difference already, or if it has none.
    """
    if row.cost is None or row.cost.scale == "difference":
        return row
    sides = ([pair.baseline for pair in row.pairs], [pair.value for pair in row.pairs])
    cost = OF_TWO.cost(sides, better=better, confidence=row.cost.confidence, looks=looks, scale="difference")
    return replace(row, cost=cost, effects=tuple(OF_TWO.effects(sides, "difference")))


def comparison(
    values: Sequence[Value], plan: Comparisons, environment: str, against: str
) -> tuple[Comparison, PValues | None]:
    """Return the comparison of two environments without verdict and remarks, with its p-values for Holm.

    `values` are the values of one metric.
    """
    contrast = contrast_cost(values, Contrast.between(environment, against), plan)
    theirs, mine = (per_block(values, name) for name in (against, environment))
    better = cast(Better, values[0].better)
    row = Comparison(
        environment=environment,
        against=against,
        aa=environment == plan.aa_arm,
        cost=contrast.cost if contrast else None,
        baseline_value=median(contrast.values[0] if contrast else theirs) if theirs else None,
        value=median(contrast.values[1] if contrast else mine) if mine else None,
        slow=slow_run_rate(mine, better=better) if mine and min(mine) >= 0 else None,
        adjusted_p=None,
        verdict="inconclusive",
        remarks=(),
        effects=contrast.effects if contrast else (),
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
        environment=environment, against=against, aa=environment == plan.aa_arm, cost=None,
        baseline_value=None, value=median(mine) if mine else None, slow=None,
        adjusted_p=None, verdict="inconclusive", remarks=(),
        pairs=tuple(BlockPair(one.block, one.value, other.value) for one, other in complete),
    )  # fmt: skip
    return row, None


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A comparison to be judged with its family."""

    report: MetricReport
    row: Comparison
    p_values: PValues | None


def judged_together(family: Sequence[Unjudged], context: Context) -> list[Comparison]:
    """Return the comparisons of a family with verdicts and remarks, in their order."""
    after, failing = verdicts.adjusted([each.p_values for each in family]), context.failing()
    rows = []
    for each, p_value, level in zip(family, after, holm_levels(after), strict=True):
        against = context.with_against(each.row.against)
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
    """Return the steps on each of the workloads' own metrics, headline metrics first; empty without a ladder."""
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
            steps.append(LadderStep(changes_between(previous, name), row, start))
            family.append(Unjudged(report, row, tests))
        if steps:
            ladders.append(Ladder(report, tuple(steps)))
    rows = iter(judged_together(family, context))
    return tuple(
        replace(ladder, steps=tuple(replace(step, row=next(rows)) for step in ladder.steps)) for ladder in ladders
    )


def _pairs(ladder: Sequence[Rung], present: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs to compare, (against, environment), if only the environments in `present` were measured."""
    for name in (rung.name for rung in ladder if rung.name in present):
        base = nearest_base(ladder, name, present)
        if base is not None:
            yield base, name


def _stand(report: MetricReport, environment: str, scale: Scale | None) -> float | None:
    """Return an environment's typical ratio to the baseline, or its difference, on a scale."""
    rows = {row.environment: row.cost for row in report.comparisons}
    if environment not in rows:  # the baseline itself
        return 0.0 if scale == "difference" else 1.0
    cost = rows[environment]
    return cost.typical if cost is not None and cost.scale == scale else None
