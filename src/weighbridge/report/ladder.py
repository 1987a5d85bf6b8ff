"""The ladder of a study: environments of which each adds one step to the one before, and what each step costs.

A step is a paired comparison of its own, of two environments inside the same blocks. It is never the difference of
two costs against the baseline, whose intervals would add up and whose typical values need not be from the same runs.

The steps of all the workloads' own metrics are a family of their own for Holm: asking for a ladder takes nothing from
the comparisons with the baseline. Resource use has no ladder. A step is judged like any other comparison; its noise
floor is the metric's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from weighbridge.report import family, remarks
from weighbridge.report.comparing import Key, comparison
from weighbridge.report.confounders import confounders
from weighbridge.report.content import Ladder, MetricReport, Step
from weighbridge.report.plan import Plan, changes
from weighbridge.statistics import Scale
from weighbridge.store.run import RunStore, Value


def climb(
    store: RunStore,
    values: Mapping[Key, Sequence[Value]],
    reports: Sequence[MetricReport],
    plan: Plan,
    context: remarks.Context,
) -> tuple[Ladder, ...]:
    """Give the steps of each of the workloads' own metrics, the headline metrics first; none without a ladder."""
    own = sorted((each for each in reports if not each.resource_use), key=lambda each: not each.headline)
    pairs = [(previous, name, changes(store, previous, name)) for previous, name in pairwise(plan.ladder)]
    facts = store.facts()
    contexts = {
        (previous, name): replace(
            context,
            baseline=previous,
            confounders=confounders(facts, previous, (previous, name)),
            target=None,  # the run stops on the precision of the comparisons with the baseline
        )
        for previous, name, _ in pairs
    }
    ladders, p_values = [], []
    for report in own if pairs else []:
        here = values[report.workload, report.level, report.metric]
        steps = []
        for previous, name, change in pairs:
            row, p_value = comparison(here, plan, name, previous)
            steps.append(Step(previous, change, row, _stand(report, previous, row.cost.scale if row.cost else None)))
            p_values.append(p_value)
        ladders.append(Ladder(report, tuple(steps)))
    after_holm, failing = iter(family.adjusted(p_values)), context.failing()
    judged = []
    for ladder in ladders:
        report, told = ladder.report, []
        aa = report.aa.cost if report.aa else None
        for step in ladder.steps:
            p_value = next(after_holm)
            against = contexts[step.previous, step.row.environment]
            never = against.never_equivalent(report, step.row.environment, failing)
            limit = against.hidden(report, step.row.environment)
            verdict = family.verdict(step.row.cost, p_value, aa, never_equivalent=never, hidden=limit is not None)
            row = replace(against.with_breaks(report, step.row), adjusted_p=p_value, verdict=verdict, aa=False)
            row = replace(row, hidden=limit if verdict == "hidden" else None)
            about = remarks.about(report, row, against)
            told.append(replace(step, row=replace(row, remarks=about)))
        judged.append(replace(ladder, steps=tuple(told)))
    return tuple(judged)


def _stand(report: MetricReport, environment: str, scale: Scale | None) -> float | None:
    """Where an environment stands against the baseline on a scale: its own typical ratio or difference."""
    rows = {row.environment: row.cost for row in report.comparisons}
    if environment not in rows:  # the baseline itself
        return 0.0 if scale == "difference" else 1.0
    cost = rows[environment]
    return cost.typical if cost is not None and cost.scale == scale else None
