"""Judges whether costs meet requirements: kept, exceeded, or undecided in this run.

A cost is an interval, and the answer is definite only if the whole interval is on one side of the bound. Anything
that prevents a verdict also prevents an answer: a bottleneck that hides the cost, resource use or few blocks within
the noise floor, too many failed trials, or an untrusted session.

`judge` judges each comparison by its own 95% interval, as a report does. `judge_gate` gives one answer for a run. The
gate passes if every comparison is within its budget by its own interval. This needs no correction: to pass wrongly, a
comparison that is above its budget must appear below it, which happens with a chance of 2.5% at most, however many
others there are (intersection-union test: Berger, Technometrics 24 (1982)). One comparison is enough to fail, and
among many some would exceed their budget by chance. A comparison therefore fails the gate only if its own interval is
above the budget and Holm's correction across the gate agrees. If a gate looked before, each look has its share of the
error (`gate_looks`, `statistics.sequential`).
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from weighbridge.analysis.comparisons import difference_unit, on_differences, values_by_metric
from weighbridge.analysis.gate_looks import Spending, looks_beside
from weighbridge.analysis.judgement import never_equivalent
from weighbridge.analysis.overload import standing_values
from weighbridge.analysis.requirement import Requirement, Target, bound_in_unit, targets, targets_in_other_units
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.model.address import ArmId, MetricId
from weighbridge.model.decisions import GateLook
from weighbridge.model.measurement import scale_of
from weighbridge.statistics import (
    Cost,
    Interval,
    Looks,
    compare,
    limit_p_values,
    looks_share,
    verdicts,
    visible_effect,
)
from weighbridge.statistics.contrast import Paired
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import PValues
from weighbridge.store.blocks import arm_values
from weighbridge.store.run import RunStore, Value

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
GateAnswer = Literal["passed", "failed", "undecided", "untrusted"]
MORE_BLOCKS: frozenset[Reason] = frozenset({"interval", "blocks", "noise", "many"})
"""Reasons that more blocks can remove."""
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


TestedFinding = tuple[Finding, PValues | float | None]
"""A finding with its p-values of "not above the bound", which include its share of the error; None without a cost."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The outcome of a gate. ``findings``: in the order of the budgets, then in other units, then of the changes."""

    findings: tuple[Finding, ...]
    answer: GateAnswer
    earlier: tuple[GateLook, ...] = ()
    """Earlier looks of gates at the run."""
    share: float = 1.0
    """The share of the error that this look spends."""
    not_judged: int = 0
    """The number of costs that patterns match but no budget judges, because their unit differs."""

    @property
    def looks(self) -> int:
        """The number of looks of gates at the run, this one included."""
        return len(self.earlier) + 1

    @property
    def open(self) -> tuple[ArmId, ...]:
        """The comparisons that more blocks can decide; none if the answer cannot change."""
        if self.answer != "undecided":
            return ()
        undecided = (each for each in self.findings if each.outcome == "undecided" and each.reason in MORE_BLOCKS)
        return tuple(dict.fromkeys(arm for each in undecided if (arm := each.target.arm) is not None))


def visible_excess(finding: Finding, gate: Gate, analysis: Analysis) -> float | None:
    """Return the smallest cost that would have exceeded its budget in four of five runs like this one.

    It is in ``unit``, and exists only for an undecided cost that more blocks can decide, not for resource use or in
    disturbed runs. Holm's correction assumes that all other findings are undecided too.
    """
    row, report = finding.target.row, finding.target.report
    if finding.outcome != "undecided" or finding.reason not in MORE_BLOCKS or finding.requirement.about != "cost":
        return None
    if row is None or report is None or row.cost is None or not row.standard_error or gate.share <= 0:
        return None
    if report.resource_use or report.disturbed:  # the noise floor prevents it, as in the report
        return None
    looks = analysis.plan.looks_beside_gates
    judged = sum(each.reason != "own-budget" for each in gate.findings)
    level = verdicts.ALPHA * gate.share * looks_share(looks) / judged
    effect = visible_effect(row.standard_error, row.cost.blocks, level)
    bound = bound_in_unit(finding.requirement, report)
    if row.cost.scale == "difference":
        return bound + effect
    if row.cost.better == "higher":
        return 100 - (100 - bound) * math.exp(-effect)
    return (100 + bound) * math.exp(min(effect, 700.0)) - 100


def judge(requirements: Sequence[Requirement], analysis: Analysis) -> tuple[Finding, ...]:
    """Return the outcome of requirements in all comparisons that they apply to, each by its 95% interval.

    Raises RequirementError if one names something that the run does not have, or has another unit than the cost.
    """
    judged = ((requirement, each) for requirement in requirements for each in _judged_by(requirement, analysis))
    return tuple(
        _judge_cost(requirement, target, analysis, target.row.cost if target.row else None)
        for requirement, target in judged
    )


def _judged_by(requirement: Requirement, analysis: Analysis) -> Iterator[Target]:
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


def judge_gate(
    budgets: Sequence[Requirement],
    store: RunStore,
    analysis: Analysis,
    spending: Spending,
    changes: Sequence[TestedFinding] = (),
) -> Gate:
    """Return the outcome of a gate with these budgets for a run. Raises RequirementError as `judge` does.

    ``changes`` belong to the same family; ``spending`` is the share of the error that each comparison can spend.
    """
    costs = _Costs(store, analysis)
    every = [(budget, each) for budget in budgets for each in _judged_by(budget, analysis)]
    in_own_unit = {each.name for budget, each in every if budget.unit != "%"}
    budgeted = [
        (budget, each)
        for budget, each in every
        if not (_leaves_to_own_unit(budget, each) and each.name in in_own_unit)
    ]
    left_out, not_judged = _in_other_units(budgets, {each.name for _, each in budgeted}, analysis)
    tested: list[TestedFinding] = [_test_cost(budget, each, costs, spending) for budget, each in budgeted]
    family = len(tested) + len(changes)
    tested += [*((each, None) for each in left_out), *changes]
    adjusted = verdicts.adjusted([p for _, p in tested])
    findings = tuple(_among_many(finding, p, family) for (finding, _), p in zip(tested, adjusted, strict=True))
    return Gate(findings, _answer(findings), spending.earlier, spending.spent, not_judged)


def _no_ratio(requirement: Requirement, target: Target) -> bool:
    """Return whether a requirement is in percent, but the cost is not a ratio because a value was not positive."""
    cost = target.row.cost if target.row is not None else None
    return requirement.unit == "%" and cost is not None and cost.scale == "difference"


def _leaves_to_own_unit(requirement: Requirement, target: Target) -> bool:
    """Return whether a budget in percent leaves a cost to one in the metric's unit: a value was zero, which is good.

    If higher is better, zero is the worst value, and a budget in percent must not ignore it.
    """
    cost = target.row.cost if target.row is not None else None
    return _no_ratio(requirement, target) and cost is not None and cost.better == "lower"


def _in_other_units(
    budgets: Sequence[Requirement], judged: Collection[str], analysis: Analysis
) -> tuple[list[Finding], int]:
    """Return findings for costs that patterns match but cannot judge because of their unit, and the number of others.

    ``judged`` has the names that some budget judges. A headline that might have become worse is a finding, so that
    the gate does not ignore it.
    """
    matched: dict[str, tuple[Requirement, Target]] = {}
    for budget in budgets:
        for target in targets_in_other_units(budget, analysis):
            if target.name not in judged:
                matched.setdefault(target.name, (budget, target))
    findings = [
        _own_budget(budget, target)
        for budget, target in matched.values()
        if target.report is not None and target.report.headline and _may_be_worse(target.row)
    ]
    return findings, len(matched) - len(findings)


def _may_be_worse(row: Comparison | None) -> bool:
    """Return whether a cost is worse or undecided: neither proven small nor a proven gain."""
    if row is None or row.cost is None:
        return True
    return not (row.verdict == "equivalent" or (row.verdict == "different" and row.cost.penalty.estimate <= 0))


def _own_budget(budget: Requirement, target: Target) -> Finding:
    """Return a finding for a headline in another unit, with the cost of the report."""
    cost, report = target.row.cost if target.row is not None else None, target.report
    if cost is None or report is None:
        return Finding(budget, target, "undecided", "own-budget")
    unit = "%" if cost.scale == "ratio" else difference_unit(report.unit)
    return Finding(budget, target, "undecided", "own-budget", cost.penalty, unit, cost.blocks, cost.confidence)


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
    unknown = analysis.paths.missing(report.cell, analysis.baseline, row.environment)
    unlike = never_equivalent(analysis.context, report, row.environment, ())
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


def _judge_cost(requirement: Requirement, target: Target, analysis: Analysis, cost: Cost | None) -> Finding:
    """Judge one comparison against one requirement, by its cost at the wanted confidence."""
    report, row = target.report, target.row
    bound = bound_in_unit(requirement, report) if report else requirement.bound
    if report is None or row is None or row.cost is None or cost is None:
        return Finding(requirement, target, "undecided", "broke" if row and row.broke_instead else "no-cost")
    outcome: GateOutcome = "undecided"
    reason: Reason = "no-ratio"
    if not _no_ratio(requirement, target):
        sides = [(report, row, analysis)]
        outcome, reason = rule(requirement, cost.penalty, bound, sides, in_noise=report.within_noise(row))
    unit = "%" if cost.scale == "ratio" else difference_unit(report.unit)
    return Finding(requirement, target, outcome, reason, cost.penalty, unit, row.blocks, cost.confidence)


def _test_cost(budget: Requirement, target: Target, costs: "_Costs", spending: Spending) -> TestedFinding:
    """Judge one comparison against its budget, with its p-value as if it had all of the error to spend."""
    report, row, share = target.report, target.row, spending.share(target.arm)
    if report is None or row is None or row.cost is None:
        return _judge_cost(budget, target, costs.analysis, None), None
    if share <= 0:
        reason: Reason = "blocks" if row.blocks < MIN_BLOCKS_VERDICT else "spent"
        return Finding(budget, target, "undecided", reason, blocks=row.blocks), None
    cost, sides = costs.at(report, target.environment, share)
    guarded = report.aa is not None and not row.aa
    p_values = limit_p_values(sides, cost, bound_in_unit(budget, report), costs.looks, guarded=guarded)
    return _judge_cost(budget, target, costs.analysis, cost), p_values.spending(share)


def _among_many(finding: Finding, adjusted: float | None, family: int) -> Finding:
    """Return a finding after Holm's correction.

    With few blocks or among several comparisons, an interval can be above the bound by chance.
    """
    if finding.outcome != "exceeded" or adjusted is None or adjusted <= verdicts.ALPHA:
        return finding
    return replace(finding, outcome="undecided", reason="many" if family > 1 else "interval")


def _answer(findings: Sequence[Finding]) -> GateAnswer:
    outcomes = {each.outcome for each in findings}
    if "exceeded" in outcomes:  # only possible in a trusted session
        return "failed"
    if any(each.reason == "untrusted" for each in findings):
        return "untrusted"
    return "passed" if outcomes == {"kept"} else "undecided"


@dataclass(slots=True)
class _Costs:
    """The costs of a run at any confidence level."""

    store: RunStore
    analysis: Analysis
    looks: Looks = field(init=False)
    _values: Mapping[MetricId, Sequence[Value]] = field(init=False)

    def __post_init__(self) -> None:
        self._values = values_by_metric(standing_values(self.store.values(), self.analysis.trials))
        self.looks = looks_beside(self.store)

    def at(self, report: MetricReport, environment: str, share: float) -> tuple[Cost, Paired]:
        """Return the cost with an interval that errs in ``share`` of 5%, and the values behind it."""
        values = self._values[report.metric_id]
        baseline, other = arm_values(values, (self.analysis.baseline, environment))
        sides = (baseline, other)
        row = next(each for each in report.comparisons if each.environment == environment)
        is_difference = row.cost is not None and row.cost.scale == "difference"
        on = "difference" if is_difference else scale_of(report.metric, report.unit)
        confidence = 1 - verdicts.ALPHA * share
        return compare(*sides, better=report.better, confidence=confidence, looks=self.looks, scale=on), sides
