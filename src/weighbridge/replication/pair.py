"""Comparisons of a run that a published study asks for: a family of their own, whatever else the run has measured."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from weighbridge.analysis.comparisons import comparison
from weighbridge.analysis.context import Context
from weighbridge.analysis.judgement import judged
from weighbridge.analysis.overload import without_retries
from weighbridge.analysis.remarks import remarks_about
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.replication.proof import PublishedRow
from weighbridge.replication.published import Compared
from weighbridge.statistics import verdicts
from weighbridge.store.run import Value

Key = tuple[str, str, str, str]
"""A metric's label and name, an environment, and what it is compared with."""


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
        context = context.with_against(against)
    row, p_value = comparison(values, context.plan, environment, against)
    if row.cost is None:
        return None
    return Asked(report, row if against == analysis.baseline else replace(row, aa=False), p_value, context)


def judged_together(family: Sequence[Asked | None]) -> list[Comparison | None]:
    """Their verdicts, in their order: exactly these are corrected together (Holm). None stays None."""
    adjusted = verdicts.adjusted([None if each is None else each.p_value for each in family])
    return [None if each is None else each.judge(p_value) for each, p_value in zip(family, adjusted, strict=True)]


def judged_rows(
    analysis: Analysis, published: Sequence[tuple[Compared, Sequence[PublishedRow]]]
) -> dict[Key, Comparison]:
    """What a run has of the published comparisons: each once, however many figures are published of it."""
    family: dict[Key, Asked | None] = {}
    for compared, found in published:
        for row in found:
            if (report := report_of(analysis, compared, row)) is not None:
                both = row.environment, row.against or analysis.baseline
                key = report.label, report.metric, *both
                family[key] = family[key] if key in family else asked(analysis, report, *both)
    judged = judged_together([*family.values()])
    return {key: each for key, each in zip(family, judged, strict=True) if each is not None}


def report_of(analysis: Analysis, compared: Compared, row: PublishedRow) -> MetricReport | None:
    """The metric of a run that a published row is about; None where the run has it not."""
    wanted = compared.measured.workload, compared.measured.metric
    here = (each for each in analysis.metrics if (each.workload, each.metric) == wanted)
    return next((each for each in here if same_level(each, compared, row)), None)


def same_level(report: MetricReport, compared: Compared, row: PublishedRow) -> bool:
    """Whether a metric was measured at the level of a published row."""
    return report.level.factors == {**compared.measured.level, **row.level}


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
