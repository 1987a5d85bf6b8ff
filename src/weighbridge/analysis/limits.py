"""Judges whether costs meet requirements: kept, exceeded, or undecided in this run.

A cost is an interval, and the answer is definite only if the whole interval is on one side of the bound. Anything
that prevents a verdict also prevents an answer: a bottleneck that hides the cost, resource use or few blocks within
the noise floor, too many failed trials, or an untrusted session.

`judge` judges each comparison by its own 95% interval, as a report does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from weighbridge.analysis.comparisons import cost_unit, on_differences
from weighbridge.analysis.judgement import never_equivalent
from weighbridge.analysis.requirement import Requirement, Target, bound_in_unit, targets
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.statistics import Cost, Interval
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT

GateOutcome = Literal["exceeded", "kept", "undecided"]
Reason = Literal[
    "above", "within", "interval", "blocks", "no-cost", "broke", "hidden", "no-ratio", "noise", "failed", "untrusted",
    "many", "spent", "other-unit", "durability", "path", "disturbed",
    "own-budget",
]  # fmt: skip
"""The reason for an outcome. All but ``above`` and ``within`` explain why a cost is undecided.

Only gates use four of them. ``many``: above the bound by its own interval, but not after correction for all
comparisons. ``spent``: earlier looks at the run have used up the error. ``disturbed``: a change above the bound,
while other processes took more of the machine in one of the runs. ``own-budget``: a headline metric whose cost has
another unit than the bound of the pattern that matches it.
"""
Side = tuple[MetricReport, Comparison, Analysis]
"""A comparison in one run, with its metric."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one requirement for one comparison.

    ``cost`` is in ``unit``, and positive is worse; None without a complete block. If the requirement is about the
    change since another run, it is that change.
    """

    requirement: Requirement
    target: Target
    outcome: GateOutcome
    reason: Reason
    cost: Interval | None = None
    unit: str = ""
    blocks: int = 0
    confidence: float | None = None
    """The confidence level of the interval of ``cost``, as a fraction; None without a cost."""


def judge(requirements: Sequence[Requirement], analysis: Analysis) -> tuple[Finding, ...]:
    """Return the outcome of requirements in all comparisons that they apply to, each by its 95% interval.

    Raises RequirementError if one names something that the run does not have, or has another unit than the cost.
    """
    judged = ((requirement, each) for requirement in requirements for each in judged_targets(requirement, analysis))
    return tuple(
        judge_cost(requirement, target, analysis, target.row.cost if target.row else None)
        for requirement, target in judged
    )


def judged_targets(requirement: Requirement, analysis: Analysis) -> Iterator[Target]:
    """Yield the comparisons that a requirement applies to, with costs as differences if its unit is the metric's."""
    looks = analysis.plan.looks
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
    """Return the workloads with a finding but without a complete block because their trials failed."""
    without_cost = {each.target.label: each.target.workload for each in findings if each.reason == "no-cost"}
    return [
        workload
        for label, workload in without_cost.items()
        if any(not (trial.ok or trial.broke) for trial in analysis.trials_of.get(label, ()))
    ]


def lacks_ratio(requirement: Requirement, target: Target) -> bool:
    """Return whether a requirement is in percent, but the cost is not a ratio because a value was not positive."""
    cost = target.row.cost if target.row is not None else None
    return requirement.unit == "%" and cost is not None and cost.scale == "difference"


def place_interval(interval: Interval, bound: float, *, strict: bool) -> tuple[GateOutcome, Reason]:
    """Return on which side of a bound an interval lies; a cost equal to a strict bound is above it."""
    above = interval.low >= bound if strict else interval.low > bound
    within = interval.high < bound if strict else interval.high <= bound
    if above:
        return "exceeded", "above"
    return ("kept", "within") if within else ("undecided", "interval")


def rule(
    requirement: Requirement, interval: Interval, bound: float, sides: Sequence[Side], *, in_noise: bool
) -> tuple[GateOutcome, Reason]:
    """Return the outcome of a cost, or of a change between two runs, from its interval.

    ``sides`` is the comparison in each run, which can make the outcome undecided. ``in_noise`` is whether the cost is
    within the noise floor, so that it does not count as above a bound.
    """
    outcome, reason = place_interval(interval, bound, strict=requirement.strict)
    for side in sides:
        if (why := _unusable(outcome, *side)) is not None:
            outcome, reason = "undecided", why
    if outcome == "exceeded" and requirement.bound >= 0 and in_noise:
        return "undecided", "noise"
    return outcome, reason


def _unusable(outcome: GateOutcome, report: MetricReport, row: Comparison, analysis: Analysis) -> Reason | None:
    """Return why a comparison cannot be judged, whatever its interval; None if it can."""
    unknown = analysis.paths.missing(report.cell, row.against, row.environment)
    unlike = never_equivalent(analysis.context.of(row.against), report, row.environment, ())
    selection = {remark.code for remark in row.remarks} & {"selected", "overloaded"}
    reasons: dict[Reason, bool] = {
        "untrusted": analysis.trust.trusted is False,
        "hidden": str(row.verdict) == "hidden",
        "blocks": row.blocks < MIN_BLOCKS_VERDICT,
        "path": unknown,
        "durability": outcome == "kept" and unlike,  # keeping less data is faster
        "failed": outcome == "kept" and bool(selection),  # successful runs alone prove no small cost
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def judge_cost(requirement: Requirement, target: Target, analysis: Analysis, cost: Cost | None) -> Finding:
    """Judge one comparison against one requirement, by its cost at the wanted confidence."""
    report, row = target.report, target.row
    bound = bound_in_unit(requirement, report) if report else requirement.bound
    if report is None or row is None or row.cost is None or cost is None:
        return Finding(requirement, target, "undecided", "broke" if row and row.broke_instead else "no-cost")
    outcome: GateOutcome = "undecided"
    reason: Reason = "no-ratio"
    if not lacks_ratio(requirement, target):
        sides = [(report, row, analysis)]
        outcome, reason = rule(requirement, cost.penalty, bound, sides, in_noise=report.within_noise(row))
    unit = cost_unit(cost.scale, report.unit)
    return Finding(requirement, target, outcome, reason, cost.penalty, unit, row.blocks, cost.confidence)
