"""Two environments of a run against each other, neither of which is its baseline."""

from collections.abc import Iterator
from dataclasses import replace

from weighbridge.analysis.comparison_remarks import remarks_about
from weighbridge.analysis.comparisons import comparison
from weighbridge.analysis.judgement import judged
from weighbridge.analysis.overload import without_retries
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.store.run import Value


def compare_pair(analysis: Analysis, report: MetricReport, environment: str, against: str) -> Comparison | None:
    """Compare two environments inside the blocks that both have; None where there is none.

    Judged by the report's own rules, like a step of its ladder, but each pair alone: it is part of no family of the
    report, and nothing is corrected for how many there are.
    """
    values = [*_values(analysis, report)]
    if analysis.context is None or not values:
        return None
    context = analysis.context.between(against, environment)
    row, p_value = comparison(values, context.plan, environment, against)
    if row.cost is None:
        return None
    row = judged(report, replace(row, aa=False), p_value, context, context.failing())
    return replace(row, remarks=remarks_about(report, row, context))


def _values(analysis: Analysis, report: MetricReport) -> Iterator[Value]:
    """The metric's values, but for the repetitions of trials that broke."""
    for trial in without_retries(analysis.trials_of.get(report.label, ())):
        if report.metric in trial.values:
            yield Value(
                trial.id, trial.block, trial.attempt, trial.environment, trial.workload, trial.level, report.metric,
                report.unit, report.better, trial.values[report.metric], trial.started_at, trial.flags,
            )  # fmt: skip
