"""Whether costs are above limits: exceeded, kept, or not to be told from this run.

A cost is known as its 95 % interval. Only where the whole interval is on one side of the limit is there an answer;
each comparison is judged by its own interval. What takes a verdict from a comparison (a bottleneck that hides the
cost, a cost within the noise floor, too many failed trials, an untrusted session) takes the answer too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.judgement import never_equivalent
from weighbridge.analysis.limit import Limit, Target, amount, targets
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.statistics import Cost, Interval
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import within_noise

Outcome = Literal["exceeded", "kept", "undecided"]
Reason = Literal[
    "above", "within", "interval", "blocks", "no-cost", "broke", "hidden", "no-ratio", "noise", "failed", "untrusted",
    "many", "spent", "other-unit", "durability", "path",
]  # fmt: skip
"""Why: ``above`` and ``within`` the limit; everything else is why it cannot be told.

Only a gate gives ``many``: above the limit by its own interval, but not among so many comparisons; and ``spent``:
earlier looks at the run have left nothing of the error for this one.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison against one limit. ``cost``: positive is worse, in ``unit``; None without a complete block."""

    limit: Limit
    target: Target
    outcome: Outcome
    reason: Reason
    cost: Interval | None = None
    unit: str = ""
    blocks: int = 0
    change: bool = False
    """Whether it is about the change against another run, and ``limit`` is the margin."""


def judge(limits: Sequence[Limit], analysis: Analysis) -> tuple[Finding, ...]:
    """Give every comparison that the limits are about with its outcome, in the order of the limits.

    Raises LimitError where a limit names what the run does not have, or has another unit than the cost.
    """
    return tuple(
        find(limit, target, analysis, target.row.cost if target.row else None)
        for limit in limits
        for target in targets(limit, analysis)
    )


def find(limit: Limit, target: Target, analysis: Analysis, known: Cost | None) -> Finding:
    """Give one comparison against one limit, by its cost as ``known`` at the confidence that is wanted.

    Raises LimitError where the limit has another unit than the cost.
    """
    report, row = target.report, target.row
    most = amount(limit, report) if report else limit.amount
    if report is None or row is None or known is None:
        reason: Reason = "broke" if row is not None and row.broke_instead else "no-cost"
        return Finding(limit, target, "undecided", reason)
    cost = known.worsening
    outcome, reason = compared(cost, limit.operator, most)
    if (why := _spoiled(outcome, limit, report, row, analysis)) is not None:
        outcome, reason = "undecided", why
    unit = "%" if known.scale == "ratio" else difference_unit(report.unit)
    return Finding(limit, target, outcome, reason, cost, unit, row.blocks)


def compared(cost: Interval, operator: str, most: float) -> tuple[Outcome, Reason]:
    """Give where an interval lies; a cost that is exactly the limit is above it only for ``>=``."""
    above = cost.low > most if operator == ">" else cost.low >= most
    within = cost.high <= most if operator == ">" else cost.high < most
    if above:
        return "exceeded", "above"
    return ("kept", "within") if within else ("undecided", "interval")


def unusable(outcome: Outcome, report: MetricReport, row: Comparison, analysis: Analysis) -> Reason | None:
    """Give why a comparison of a run can be held against nothing, whatever its interval; None where it can."""
    context = analysis.context
    unknown = context is not None and context.paths.missing(
        report.workload, report.level, analysis.baseline, row.environment
    )
    unlike = context is not None and never_equivalent(context, report, row.environment, ())
    selection = {remark.code for remark in row.remarks} & {"selected", "broke"}
    reasons: dict[Reason, bool] = {
        "untrusted": analysis.trust.trusted is False,
        "hidden": str(row.verdict) == "hidden",
        "blocks": row.blocks < MIN_BLOCKS_VERDICT,
        "path": unknown,
        "durability": outcome == "kept" and unlike,  # what keeps less is quick for that
        "failed": outcome == "kept" and bool(selection),  # the runs that succeeded prove no small cost
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _spoiled(
    outcome: Outcome, limit: Limit, report: MetricReport, row: Comparison, analysis: Analysis
) -> Reason | None:
    """Why a cost cannot be held against the limit, whatever its interval; None where it can."""
    cost, aa = row.cost, report.aa.cost if report.aa and not row.aa else None
    if cost is not None and cost.scale == "difference" and limit.unit == "%":
        return "no-ratio"
    if (why := unusable(outcome, report, row, analysis)) is not None:
        return why
    in_noise = outcome == "exceeded" and limit.amount >= 0 and cost is not None and within_noise(cost, aa)
    return "noise" if in_noise else None
