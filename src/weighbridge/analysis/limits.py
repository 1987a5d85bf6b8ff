"""Whether costs keep what is required of them: kept, exceeded, or not to be told from this run.

A cost is known as its interval. Only where the whole interval is on one side of the bound is there an answer. What
takes a verdict from a comparison (a bottleneck that hides the cost, resource use or few blocks within the noise
floor, too many failed trials, an untrusted session) takes the answer too.

`judge` asks each comparison by its own 95 % interval, as a report does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from weighbridge.analysis.comparisons import cost_unit, on_differences
from weighbridge.analysis.judgement import never_equivalent
from weighbridge.analysis.requirement import Requirement, Target, bound_in_unit, targets
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.statistics import Cost, Interval, Looks
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT

GateOutcome = Literal["exceeded", "kept", "undecided"]
Reason = Literal[
    "above", "within", "interval", "blocks", "no-cost", "broke", "hidden", "no-ratio", "noise", "failed", "untrusted",
    "many", "spent", "other-unit", "durability", "path", "disturbed",
    "own-budget",
]  # fmt: skip
"""Why: ``above`` and ``within`` the bound; everything else is why it cannot be told.

Only a gate gives ``many``: above the bound by its own interval, but not among so many comparisons; ``spent``: earlier
looks at the run have left nothing of the error for this one; and ``disturbed``, of a change above the bound: others
took more of the machine in one of the runs; and ``own-budget``, of a headline whose cost is in another unit than the
bound of the pattern that matches it.
"""
Side = tuple[MetricReport, Comparison, Analysis]
"""A comparison in one of the runs that it was made in, with its metric."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one requirement for one comparison.

    ``cost``: positive is worse, in ``unit``; None without a complete block. Where the requirement is about a change
    since another run it is that change.
    """

    requirement: Requirement
    target: Target
    outcome: GateOutcome
    reason: Reason
    cost: Interval | None = None
    unit: str = ""
    blocks: int = 0
    confidence: float | None = None
    """That of the interval of ``cost``, as a fraction; None without a cost."""


def judge(requirements: Sequence[Requirement], analysis: Analysis) -> tuple[Finding, ...]:
    """Return what requirements come to in every comparison that they are about, each by its 95 % interval.

    Raises RequirementError where one names what the run does not have, or has another unit than the cost.
    """
    judged = ((requirement, each) for requirement in requirements for each in judged_targets(requirement, analysis))
    return tuple(
        judge_cost(requirement, target, analysis, target.row.cost if target.row else None)
        for requirement, target in judged
    )


def judged_targets(requirement: Requirement, analysis: Analysis) -> Iterator[Target]:
    """What a requirement is about; where it is written in a metric's own unit, the costs are differences in that."""
    looks = Looks() if analysis.context is None else analysis.context.plan.looks
    for target in targets(requirement, analysis):
        report, row = target.report, target.row
        if requirement.unit == "%" or report is None or row is None or row.cost is None:
            yield target
            continue
        bound_in_unit(requirement, report)  # raises what is wrong
        rows = {each.environment: on_differences(each, report.better, looks) for each in (row, *report.comparisons)}
        report = replace(report, comparisons=tuple(rows[each.environment] for each in report.comparisons))
        yield replace(target, report=report, row=rows[row.environment])


def failed_workloads(findings: Sequence[Finding], analysis: Analysis) -> list[str]:
    """Return the workloads that a finding is about without a complete block, as their trials failed."""
    without_cost = {each.target.label: each.target.workload for each in findings if each.reason == "no-cost"}
    return [
        workload
        for label, workload in without_cost.items()
        if any(not (trial.ok or trial.broke) for trial in analysis.trials_of.get(label, ()))
    ]


def lacks_ratio(requirement: Requirement, target: Target) -> bool:
    """Whether a requirement is in percent, and the cost is none of a ratio: a value was zero or negative."""
    cost = target.row.cost if target.row is not None else None
    return requirement.unit == "%" and cost is not None and cost.scale == "difference"


def place_interval(interval: Interval, bound: float, *, strict: bool) -> tuple[GateOutcome, Reason]:
    """Return where an interval lies; a cost that is exactly the bound is above it only where that is strict."""
    above = interval.low >= bound if strict else interval.low > bound
    within = interval.high < bound if strict else interval.high <= bound
    if above:
        return "exceeded", "above"
    return ("kept", "within") if within else ("undecided", "interval")


def rule(
    requirement: Requirement, interval: Interval, bound: float, sides: Sequence[Side], *, in_noise: bool
) -> tuple[GateOutcome, Reason]:
    """Return what a cost, or a change between two runs, comes to whose interval is known.

    ``sides``: the comparison in each run, which may take the answer away; ``in_noise``: no larger than the noise
    floor, so that it does not count as above a bound.
    """
    outcome, reason = place_interval(interval, bound, strict=requirement.strict)
    for side in sides:
        if (why := _unusable(outcome, *side)) is not None:
            outcome, reason = "undecided", why
    if outcome == "exceeded" and requirement.bound >= 0 and in_noise:
        return "undecided", "noise"
    return outcome, reason


def _unusable(outcome: GateOutcome, report: MetricReport, row: Comparison, analysis: Analysis) -> Reason | None:
    """Why a comparison of a run can be held against nothing, whatever its interval; None where it can."""
    context = analysis.context
    unknown = context is not None and context.paths.missing(report.cell, analysis.baseline, row.environment)
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


def judge_cost(requirement: Requirement, target: Target, analysis: Analysis, cost: Cost | None) -> Finding:
    """One comparison against one requirement, by its cost at the confidence that is wanted."""
    report, row = target.report, target.row
    bound = bound_in_unit(requirement, report) if report else requirement.bound
    if report is None or row is None or row.cost is None or cost is None:
        return Finding(requirement, target, "undecided", "broke" if row and row.broke_instead else "no-cost")
    outcome: GateOutcome = "undecided"
    reason: Reason = "no-ratio"
    if not lacks_ratio(requirement, target):
        sides = [(report, row, analysis)]
        outcome, reason = rule(requirement, cost.worsening, bound, sides, in_noise=report.within_noise(row))
    unit = cost_unit(cost.scale, report.unit)
    return Finding(requirement, target, outcome, reason, cost.worsening, unit, row.blocks, cost.confidence)
