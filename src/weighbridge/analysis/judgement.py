"""The verdict of a comparison: the same rules whatever is compared with what."""

from collections.abc import Collection
from dataclasses import replace

from weighbridge.analysis.bottleneck import Bottleneck, shared_limit
from weighbridge.analysis.context import Context
from weighbridge.analysis.resources import negligible
from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.model.level import Level
from weighbridge.statistics import verdicts


def judged(
    report: MetricReport,
    row: Comparison,
    p_value: float | None,
    context: Context,
    failing: Collection[tuple[str, Level, str]],
) -> Comparison:
    """Return a comparison of a metric, with the context's baseline, with its verdict; without remarks.

    ``p_value`` is the one after Holm, ``failing`` what `Context.failing` gives.
    """
    aa = report.aa.cost if report.aa is not None and not row.aa else None
    never = never_equivalent(context, report, row.environment, failing)
    unknown = context.paths.missing(report.workload, report.level, context.baseline, row.environment)
    nothing = row.cost is not None and negligible(report.metric, row.cost.typical)
    limit = _hiding_limit(context, report, row.environment)
    verdict = verdicts.verdict(
        row.cost, p_value, aa, never_equivalent=never or unknown, never_different=nothing or unknown,
        hidden=limit is not None,
    )  # fmt: skip
    broke, baseline_broke = (
        context.broken.get((report.workload, report.level, name)) for name in (row.environment, context.baseline)
    )
    return replace(
        row,
        adjusted_p=p_value,
        verdict=verdict,
        broke=broke,
        baseline_broke=baseline_broke,
        hidden=limit if verdict == "hidden" else None,
    )


def never_equivalent(
    context: Context, report: MetricReport, environment: str, failing: Collection[tuple[str, Level, str]]
) -> bool:
    """Whether one of the two sides is among the `failing`, or they do not keep alike what they acknowledged."""
    sides = context.baseline, environment
    one, other = (context.durability.get(f"{name}/{report.label}", "") for name in sides)
    return one != other or any((report.workload, report.level, name) in failing for name in sides)


def _hiding_limit(context: Context, report: MetricReport, environment: str) -> Bottleneck | None:
    """What hides a difference between an environment and the baseline; nothing hides resource use."""
    if report.resource_use:
        return None
    baseline, other = (
        context.limits.get((report.workload, report.level, name), ()) for name in (context.baseline, environment)
    )
    return shared_limit(baseline, other, report.unit)
