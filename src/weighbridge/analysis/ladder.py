"""The ladder of a study: environments of which each adds one step to another, and what each step costs.

A step is a paired comparison of its own, of two environments inside the same blocks. It is never the difference of
two costs against the baseline, whose intervals would add up and whose typical values need not be from the same runs.

The steps of all the workloads' own metrics are a family of their own for Holm: asking for a ladder takes nothing from
the comparisons with the baseline. Resource use has no ladder. A step is judged like any other comparison; its noise
floor is the metric's.

An environment that has no trial of a workload and level is absent there: the steps that add to it are against what it
itself adds to.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from weighbridge.analysis.comparisons import Key, comparison
from weighbridge.analysis.context import Context
from weighbridge.analysis.judgement import judged
from weighbridge.analysis.plan import Plan, changes
from weighbridge.analysis.remarks import remarks_about
from weighbridge.analysis.results import Ladder, MetricReport, Step
from weighbridge.model.level import Level
from weighbridge.model.study import Rung, nearest_base
from weighbridge.statistics import Scale, verdicts
from weighbridge.store.run import RunStore, Value


def analyse_ladder(
    store: RunStore,
    values: Mapping[Key, Sequence[Value]],
    reports: Sequence[MetricReport],
    plan: Plan,
    context: Context,
) -> tuple[Ladder, ...]:
    """Give the steps of each of the workloads' own metrics, the headline metrics first; none without a ladder."""
    own = sorted((each for each in reports if not each.resource_use), key=lambda each: not each.headline)
    present: dict[tuple[str, Level], set[str]] = {}
    for trial in context.trials:
        present.setdefault((trial.workload, trial.level), set()).add(trial.environment)
    said = cache(partial(changes, store))
    ladders, p_values = [], []
    for report in own if plan.ladder else []:
        here = values[report.workload, report.level, report.metric]
        steps = []
        for previous, name in _pairs(plan.ladder, present.get((report.workload, report.level), set())):
            row, p_value = comparison(here, plan, name, previous)
            start = _stand(report, previous, row.cost.scale if row.cost else None)
            steps.append(Step(previous, said(previous, name), row, start))
            p_values.append(p_value)
        if steps:
            ladders.append(Ladder(report, tuple(steps)))
    after_holm, failing = iter(verdicts.adjusted(p_values)), context.failing()
    found = []
    for ladder in ladders:
        report, told = ladder.report, []
        for step in ladder.steps:
            against = context.with_against(step.previous)
            row = judged(report, replace(step.row, aa=False), next(after_holm), against, failing)
            told.append(replace(step, row=replace(row, remarks=remarks_about(report, row, against))))
        found.append(replace(ladder, steps=tuple(told)))
    return tuple(found)


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
