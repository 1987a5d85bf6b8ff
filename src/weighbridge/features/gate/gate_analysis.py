"""The answer of a gate: whether all costs of a run are within their budgets (`weighbridge.analysis.limits`).

The gate passes if every comparison is within its budget by its own interval. This needs no correction: to pass
wrongly, a comparison that is above its budget must appear below it, which happens with a chance of 2.5% at most,
however many others there are (intersection-union test: Berger, Technometrics 24 (1982)). One comparison is enough to
fail, and among many some would exceed their budget by chance. A comparison therefore fails the gate only if its own
interval is above the budget and Holm's correction across the gate agrees. If a gate looked before, each look has its
share of the error (`gate_looks`, `sequential`).
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from weighbridge.analysis.comparisons import cost_unit, values_by_metric
from weighbridge.analysis.limits import Finding, Reason, judge_cost, judged_targets, lacks_ratio
from weighbridge.analysis.overload import standing_values
from weighbridge.analysis.requirement import Requirement, Target, bound_in_unit, targets_in_other_units
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.features.gate.gate_looks import Spending, looks_beside
from weighbridge.features.gate.sequential import limit_p_values
from weighbridge.model.address import ArmId, MetricId
from weighbridge.model.decisions import GateLook
from weighbridge.model.measurement import scale_of
from weighbridge.statistics import Cost, Looks, compare, error_at, looks_share, verdicts, visible_effect
from weighbridge.statistics.contrast import Paired
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import PValues
from weighbridge.store.blocks import arm_values
from weighbridge.store.run import RunStore, Value
from weighbridge.store.versions import can_continue

GateAnswer = Literal["passed", "failed", "undecided", "untrusted"]
MORE_BLOCKS: frozenset[Reason] = frozenset({"interval", "blocks", "noise", "many"})
"""Reasons that more blocks can remove."""
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
    lasting: bool = True
    """Whether the run can get more rounds."""
    is_kept_file: bool = False

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
    if finding.outcome != "undecided" or finding.reason not in MORE_BLOCKS or finding.requirement.operand != "cost":
        return None
    if row is None or report is None or row.cost is None:
        return None
    if gate.share <= 0 or report.resource_use or report.disturbed:  # the last two: because of the noise floor
        return None
    looks = analysis.plan.looks_beside_gates
    judged = sum(each.reason != "own-budget" for each in gate.findings)
    level = verdicts.ALPHA * gate.share * looks_share(looks) / judged
    effect = visible_effect(error_at(row.effects, level), row.cost.blocks, level)
    if not 0 < effect < math.inf:
        return None
    bound = bound_in_unit(finding.requirement, report)
    if row.cost.scale == "difference":
        return bound + effect
    sign = -1 if row.cost.better == "higher" else 1
    return sign * ((100 + sign * bound) * math.exp(sign * min(effect, 700.0)) - 100)


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
    every = [(budget, each) for budget in budgets for each in judged_targets(budget, analysis)]
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
    return Gate(
        findings, _answer(findings), spending.earlier, spending.spent, not_judged,
        lasting=can_continue(store), is_kept_file=store.is_kept_file,
    )  # fmt: skip


def _leaves_to_own_unit(requirement: Requirement, target: Target) -> bool:
    """Return whether a budget in percent leaves a cost to one in the metric's unit: a value was zero, which is good.

    If higher is better, zero is the worst value, and a budget in percent must not ignore it.
    """
    cost = target.row.cost if target.row is not None else None
    return lacks_ratio(requirement, target) and cost is not None and cost.better == "lower"


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
    unit = cost_unit(cost.scale, report.unit)
    return Finding(budget, target, "undecided", "own-budget", cost.penalty, unit, cost.blocks, cost.confidence)


def _test_cost(budget: Requirement, target: Target, costs: "_Costs", spending: Spending) -> TestedFinding:
    """Judge one comparison against its budget, with its p-value as if it had all of the error to spend."""
    report, row, share = target.report, target.row, spending.share(target.arm)
    if report is None or row is None or row.cost is None:
        return judge_cost(budget, target, costs.analysis, None), None
    if share <= 0:
        reason: Reason = "blocks" if row.blocks < MIN_BLOCKS_VERDICT else "spent"
        return Finding(budget, target, "undecided", reason, blocks=row.blocks), None
    cost, sides = costs.at(report, target.environment, share)
    guarded = report.aa is not None and not row.aa
    p_values = limit_p_values(sides, cost, bound_in_unit(budget, report), costs.looks, guarded=guarded)
    return judge_cost(budget, target, costs.analysis, cost), p_values.spending(share)


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
        row = next(each for each in report.comparisons if each.environment == environment)
        baseline, other = arm_values(values, (row.against, environment))
        sides = (baseline, other)
        is_difference = row.cost is not None and row.cost.scale == "difference"
        on = "difference" if is_difference else scale_of(report.metric, report.unit)
        confidence = 1 - verdicts.ALPHA * share
        return compare(*sides, better=report.better, confidence=confidence, looks=self.looks, scale=on), sides
