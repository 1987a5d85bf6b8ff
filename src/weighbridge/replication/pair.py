"""Comparisons of a run that a published study asks for: a family of their own, whatever else the run has measured."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from weighbridge.analysis.comparison_remarks import remarks_about
from weighbridge.analysis.comparisons import comparison
from weighbridge.analysis.context import Context
from weighbridge.analysis.judgement import judged
from weighbridge.analysis.overload import without_retries
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.statistics import verdicts
from weighbridge.store.run import Value


@dataclass(frozen=True, slots=True)
class Asked:
    """A comparison inside the blocks that both sides have, with its p-value before Holm; not judged yet."""

    report: MetricReport
    row: Comparison
    p_value: float | None
    context: Context

    def judge(self, adjusted_p: float | None) -> Comparison:
        """Its verdict by the report's own rules, and its remarks."""
        row = judged(self.report, self.row, adjusted_p, self.context, self.context.failing())
        return replace(row, remarks=remarks_about(self.report, row, self.context))


def asked(analysis: Analysis, report: MetricReport, environment: str, against: str) -> Asked | None:
    """Compare an environment with the baseline or with another one; None where no block has both."""
    values = [*_values(analysis, report)]
    if analysis.context is None or not values:
        return None
    context = analysis.context
    if against != analysis.baseline:
        context = context.between(against, environment)
    row, p_value = comparison(values, context.plan, environment, against)
    if row.cost is None:
        return None
    return Asked(report, row if against == analysis.baseline else replace(row, aa=False), p_value, context)


def judged_together(family: Sequence[Asked | None]) -> list[Comparison | None]:
    """Their verdicts, in their order: exactly these are corrected together (Holm). None stays None."""
    adjusted = verdicts.adjusted([None if each is None else each.p_value for each in family])
    return [None if each is None else each.judge(p_value) for each, p_value in zip(family, adjusted, strict=True)]


def compare_pair(analysis: Analysis, report: MetricReport, environment: str, against: str) -> Comparison | None:
    """Compare two environments alone: a family of one."""
    return judged_together([asked(analysis, report, environment, against)])[0]


def _values(analysis: Analysis, report: MetricReport) -> Iterator[Value]:
    """The metric's values, but for the repetitions of trials that broke."""
    for trial in without_retries(analysis.trials_of.get(report.label, ())):
        if report.metric in trial.values:
            yield Value(
                trial.id, trial.block, trial.attempt, trial.environment, trial.workload, trial.level, report.metric,
                report.unit, report.better, trial.values[report.metric], trial.started_at, trial.flags,
            )  # fmt: skip
