"""The verdict of a comparison: the same rules whatever is compared with what."""

from collections.abc import Collection
from dataclasses import replace

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
    """Give a comparison of a metric, with the context's baseline, with its verdict; without remarks.

    ``p_value`` is the one after Holm, ``failing`` what `Context.failing` gives.
    """
    aa = report.aa.cost if report.aa is not None and not row.aa else None
    never = context.never_equivalent(report, row.environment, failing)
    unknown = context.paths.missing(report.workload, report.level, context.baseline, row.environment)
    nothing = row.cost is not None and negligible(report.metric, row.cost.typical)
    limit = context.hidden(report, row.environment)
    verdict = verdicts.verdict(
        row.cost, p_value, aa, never_equivalent=never or unknown, never_different=nothing or unknown,
        hidden=limit is not None,
    )  # fmt: skip
    found = replace(context.with_breaks(report, row), adjusted_p=p_value, verdict=verdict)
    return replace(found, hidden=limit if verdict == "hidden" else None)
