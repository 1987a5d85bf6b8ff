"""The comparisons of two versions in a run of ``weigh --base``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from weighbridge.analysis.remarks.rules import AboutEnvironment
from weighbridge.analysis.results import Analysis, MetricReport, Remark
from weighbridge.model.stored_study import pairs_of_versions


def version_pairs(analysis: Analysis) -> Mapping[str, str]:
    """Return for each environment with the head its environment with the base; nothing for any other run."""
    others = [name for name in analysis.environments if name != analysis.aa_arm]
    return pairs_of_versions(analysis.study, others)


def between_versions(analysis: Analysis) -> Analysis:
    """Return the analysis of two versions with only their comparisons: in each environment, the head with the base.

    A comparison natively is one with the baseline; the others are steps of the ladder. Any other analysis stays as it
    is.
    """
    pairs = version_pairs(analysis)
    if not pairs or {*analysis.others} <= {*pairs}:
        return analysis
    steps = {
        each.report.metric_id: [step.row for step in each.steps if pairs.get(step.row.environment) == step.previous]
        for each in analysis.ladder
    }

    def only(report: MetricReport) -> MetricReport:
        native = [row for row in report.comparisons if pairs.get(row.environment) == analysis.baseline]
        further = [row for row in steps.get(report.metric_id, ()) if pairs[row.environment] != analysis.baseline]
        return replace(report, comparisons=(*native, *further, *filter(None, (report.aa,))))

    return replace(
        analysis,
        others=tuple(name for name in analysis.others if name in pairs),
        metrics=tuple(map(only, analysis.metrics)),
        ladder=(),
        confounders=tuple(_of_pairs(analysis.confounders, pairs, analysis.baseline)),
    )


def _of_pairs(confounders: Sequence[Remark], pairs: Mapping[str, str], baseline: str) -> Iterator[Remark]:
    """Yield the differences between two versions, without those that both have in an environment."""
    for each in confounders:
        base = pairs.get(each.subject, "")
        shared = isinstance(each, AboutEnvironment) and base and replace(each, environment=base) in confounders
        if not shared and each.subject not in {*pairs.values()} - {baseline}:
            yield each
