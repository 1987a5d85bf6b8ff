"""What a gate says of a whole run: each comparison against each of its budgets, and all of them together.

A gate passes where every comparison is within its budget, each by its own interval. That needs no correction: to pass
wrongly, one that is above its budget must be seen below it, which happens to that one in 2.5 % at most, however many
others there are (intersection-union test: Berger, Technometrics 24 (1982)). To fail, one is enough, and among many
some would seem above their budget by chance: a comparison fails the gate only where its own interval is above the
budget and Holm's correction across the gate agrees.

A gate may have looked before: each look has its share of the error (`gate_spending`, `statistics.sequential`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from weighbridge.analysis.budget import budget_targets
from weighbridge.analysis.comparisons import Key, grouped, scale
from weighbridge.analysis.gate import Finding, Reason, find
from weighbridge.analysis.gate_spending import Spending
from weighbridge.analysis.limit import Limit, Target, amount
from weighbridge.analysis.overload import standing_values
from weighbridge.analysis.plan import plan_of
from weighbridge.analysis.results import Analysis
from weighbridge.model.decisions import Comparison, GateLook
from weighbridge.statistics import Cost, compare, limit_p_value, verdicts
from weighbridge.statistics.contrast import Paired
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.store.blocks import arm_values
from weighbridge.store.run import RunStore, Value

Answer = Literal["passed", "failed", "undecided", "untrusted"]
MORE_BLOCKS: frozenset[Reason] = frozenset({"interval", "blocks", "noise", "many"})
"""Reasons for which more blocks may help."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What a gate says. ``findings``: in the order of the budgets, then of the changes."""

    findings: tuple[Finding, ...]
    answer: Answer
    earlier: tuple[GateLook, ...] = ()
    """The looks of gates at the run before this one."""
    share: float = 1.0
    """What this look spends of the error."""

    @property
    def looks(self) -> int:
        """How often a gate has looked at the run, this time too."""
        return len(self.earlier) + 1

    @property
    def open(self) -> tuple[Comparison, ...]:
        """The comparisons that more blocks may decide; none where the answer cannot change."""
        if self.answer != "undecided":
            return ()
        found = (each for each in self.findings if each.outcome == "undecided" and each.reason in MORE_BLOCKS)
        return tuple(dict.fromkeys(place for each in found if (place := place_of(each.target)) is not None))


def place_of(target: Target) -> Comparison | None:
    """Give the workload, level and environment of a comparison; None where the workload was not measured."""
    report = target.report
    return None if report is None else (report.workload, report.level, target.environment)


def looks_beside(store: RunStore) -> int:
    """Give how often a run was looked at, the looks of gates excepted, which share the error themselves."""
    plan, gates = plan_of(store), {each.blocks for each in store.gate_looks()}
    return plan.looks - sum(change.looked and change.after in gates for change in plan.changes)


Change = tuple[Finding, float | None]
"""A change against another run, judged, and its p-value of "not above the margin" (None: without a cost)."""


def judge_gate(
    budgets: Sequence[Limit], store: RunStore, analysis: Analysis, spending: Spending, changes: Sequence[Change] = ()
) -> Gate:
    """Give what a gate with these budgets says of a run. Raises LimitError as `judge`.

    ``changes`` are judged with it, as one family; ``spending``: which share of the error each may spend.
    """
    costs = _Costs(store, analysis)
    judged = [
        _judged(budget, each, costs, spending) for budget in budgets for each in budget_targets(budget, analysis)
    ]
    judged += changes
    adjusted = verdicts.adjusted([p for _, p in judged])
    findings = tuple(_among_many(finding, p, len(judged)) for (finding, _), p in zip(judged, adjusted, strict=True))
    return Gate(findings, _answer(findings), spending.earlier, spending.spent)


def _judged(budget: Limit, target: Target, costs: "_Costs", spending: Spending) -> Change:
    """One comparison against its budget, and its p-value as if it had all of the error to spend."""
    report, row, share = target.report, target.row, spending.share(place_of(target))
    if report is None or row is None or row.cost is None:
        return find(budget, target, costs.analysis, None), None
    if share <= 0:
        reason: Reason = "blocks" if row.blocks < MIN_BLOCKS_VERDICT else "spent"
        return Finding(budget, target, "undecided", reason, blocks=row.blocks), None
    cost, sides = costs.at(target, share)
    p_value = limit_p_value(sides, cost, amount(budget, report), costs.looks)
    return find(budget, target, costs.analysis, cost), min(1.0, p_value / share)


def _among_many(finding: Finding, adjusted: float | None, family: int) -> Finding:
    """A finding after Holm: among several comparisons one that is above by its own interval may be so by chance."""
    if finding.outcome != "exceeded" or family < 2 or adjusted is None or adjusted <= verdicts.ALPHA:
        return finding
    return replace(finding, outcome="undecided", reason="many")


def _answer(findings: Sequence[Finding]) -> Answer:
    outcomes = {each.outcome for each in findings}
    if "exceeded" in outcomes:  # of a session that can be trusted: in another one nothing is
        return "failed"
    if any(each.reason == "untrusted" for each in findings):
        return "untrusted"
    return "passed" if outcomes == {"kept"} else "undecided"


@dataclass(slots=True)
class _Costs:
    """The costs of a run at any confidence."""

    store: RunStore
    analysis: Analysis
    _values: Mapping[Key, Sequence[Value]] = field(init=False)
    looks: int = field(init=False)

    def __post_init__(self) -> None:
        self._values = grouped(standing_values(self.store.values(), self.analysis.trials))
        self.looks = looks_beside(self.store)

    def at(self, target: Target, share: float) -> tuple[Cost, Paired]:
        """The cost with an interval that errs in ``share`` of 5 %, and the values that it is made of."""
        report = target.report
        assert report is not None
        here = self._values[report.workload, report.level, report.metric]
        baseline, other = arm_values(here, (self.analysis.baseline, target.environment))
        on = scale(report.metric, report.unit)
        confidence = 1 - verdicts.ALPHA * share
        cost = compare(baseline, other, better=report.better, confidence=confidence, looks=self.looks, scale=on)
        return cost, (baseline, other)
