"""Explains the cost of an environment: the cost of each mechanism, of all together, and the unexplained rest.

Every part is a contrast of logarithms (or differences) within the same blocks, never a difference of two printed
costs. `weighbridge.model.explained` defines the arms of each contrast. The unexplained rest is the arm with all
mechanisms off against the baseline. The parts therefore add up only if the measurements do. All parts of all
headlines are one family for Holm's correction, and the counters of mechanisms are another.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from weighbridge.analysis.comparisons import Unjudged, comparison, contrast_cost, judged_together
from weighbridge.analysis.context import Context
from weighbridge.analysis.plan import Comparisons
from weighbridge.analysis.results import (
    Comparison,
    CounterChange,
    Explanation,
    MechanismCost,
    MechanismPair,
    MetricReport,
    ProofState,
)
from weighbridge.model.address import MetricId
from weighbridge.model.explained import (
    MOST_CROSSED,
    PATH,
    PLACEBO,
    DescribedMechanism,
    Off,
    Proof,
    Weights,
    all_off,
    cost_together,
    pair_costs,
    placebo_cost,
    sides,
    single_cost,
)
from weighbridge.model.stored_study import StoredStudy
from weighbridge.statistics import Contrast
from weighbridge.store.run import RunStore, Value


@dataclass(frozen=True, slots=True)
class _Environment:
    """An environment to explain: its measured arms by the mechanisms that are off in them."""

    name: str
    arms: Mapping[Off, str]
    mechanisms: Sequence[DescribedMechanism]
    why_not: Mapping[str, str]
    """The reason why a mechanism was not switched, by its kind; "" if the run does not say."""
    proofs: Mapping[str, "_Proven"]
    """The proofs of switched mechanisms, by kind."""
    rules: Mapping[str, tuple[str, str]]
    """The number of packet filter rules that a probe matched with each mechanism and without it; "" if unknown."""

    @property
    def all_off_arm(self) -> str:
        """The arm with all switched mechanisms off; "" if there is none."""
        every = all_off(self.mechanisms, self.arms)
        return "" if every is None else self.arms[every]

    @property
    def placebo_arm(self) -> str:
        """The arm that switches nothing; "" if there is none."""
        return self.arms.get(frozenset({PLACEBO}), "")

    def without(self, mechanism: DescribedMechanism) -> str:
        """Return the first arm without a mechanism that has a counterpart with the mechanism; "" if there is none."""
        return next((self.arms[off] for _, off in sides(mechanism, self.arms)), "")


_Proven = tuple[ProofState, tuple[str, str]]
"""Whether facts show that a mechanism is off, and the values of the facts with it and without it."""
_Part = tuple[Literal["mechanism", "pair", "together", "rest", "placebo"], *tuple[str, ...]]
"""A part of a cost, with the kinds of its mechanisms."""
_Judged = Mapping[tuple[str, MetricId, _Part], Comparison]
"""Comparisons by environment, metric and part."""


def explanations(
    store: RunStore,
    values: Mapping[MetricId, Sequence[Value]],
    reports: Sequence[MetricReport],
    plan: Comparisons,
    context: Context,
) -> tuple[Explanation, ...]:
    """Return the parts of each explained environment's cost on each headline metric, largest costs first."""
    stored = store.study()
    if stored is None or not stored.mechanisms:
        return ()
    reasons = {each.environment: each.why for each in store.left_out()}
    explained = [
        (environment, report, total)
        for environment in _explained(stored, plan, context, reasons)
        for report in (each for each in reports if each.headline)
        for total in report.comparisons
        if total.environment == environment.name
    ]
    parts: dict[tuple[str, MetricId, _Part], Unjudged] = {}
    counters: dict[tuple[str, MetricId, _Part], Unjudged] = {}
    for environment, report, _ in explained:
        compared = partial(_compared, environment, values, plan)
        for part, weights, against in _parts(environment, plan):
            parts[environment.name, report.metric_id, part] = compared(report, weights, against)
        for mechanism, weights, counter in _counters(environment, report, reports):
            moved = compared(counter, weights, environment.without(mechanism))
            if moved.row.cost is not None:
                counters[environment.name, counter.metric_id, ("mechanism", mechanism.kind)] = moved
    judged = dict(zip(parts, judged_together([*parts.values()], context), strict=True))
    moved_with = dict(zip(counters, judged_together([*counters.values()], context), strict=True))
    complete = [_explanation(*each, judged, moved_with, reports) for each in explained]
    return tuple(sorted(complete, key=lambda each: -_size(each.total)))


def second_pass(explanation: Explanation) -> tuple[str, ...]:
    """Return the mechanisms to switch in every combination, the largest first, at most `MOST_CROSSED`.

    These are the mechanisms that show a cost of their own. If fewer than two do and an interaction is proven, these
    are all switched mechanisms, because one of two with the same effect hides the other. Empty if there are not two.
    """
    switched = [each for each in explanation.mechanisms if each.row is not None]
    shown = [each for each in switched if each.row is not None and each.row.verdict == "different"]
    together = explanation.interaction
    if len(shown) < 2 and together is not None and together.verdict == "different":
        shown = switched
    if len(shown) < 2 or explanation.crossed:
        return ()
    return tuple(each.mechanism.kind for each in shown[:MOST_CROSSED])


def _explained(
    stored: StoredStudy, plan: Comparisons, context: Context, reasons: Mapping[str, str]
) -> Iterator[_Environment]:
    for name in dict.fromkeys(each.environment for each in stored.mechanisms):
        if name not in plan.environments:
            continue
        every = {frozenset[str](): name} | {
            frozenset(arm.explains.off): arm.name
            for arm in stored.arms
            if arm.explains is not None and arm.explains.environment == name
        }
        arms = {off: arm for off, arm in every.items() if arm in plan.environments}
        mechanisms = [each for each in stored.mechanisms if each.environment == name]
        alone = {each.kind: every.get(frozenset({*each.off_with, each.kind}), "") for each in mechanisms}
        yield _Environment(
            name, arms, mechanisms,
            why_not={each.kind: each.refused or reasons.get(alone[each.kind], "") for each in mechanisms},
            proofs={each.kind: _proven_everywhere(each, arms, context) for each in mechanisms},
            rules={each.kind: _rules_matched(each, arms, context) for each in mechanisms},
        )  # fmt: skip


def _parts(environment: _Environment, plan: Comparisons) -> Iterator[tuple[_Part, Mapping[str, float], str]]:
    """Yield the parts of a cost that can be measured, as weights of arms, with the arm that each is compared with."""
    mechanisms, arms, all_off_arm = environment.mechanisms, environment.arms, environment.all_off_arm
    for each in mechanisms:
        if weights := _named(environment, single_cost(each, arms)):
            yield ("mechanism", each.kind), weights, environment.without(each)
    for one, other, of_pair in pair_costs(mechanisms, arms):
        yield ("pair", one.kind, other.kind), _named(environment, of_pair), environment.without(other)
    if all_off_arm:
        if weights := _named(environment, cost_together(mechanisms, arms)):
            yield ("together",), weights, all_off_arm
        yield ("rest",), {all_off_arm: 1.0, plan.baseline: -1.0}, plan.baseline
    if weights := _named(environment, placebo_cost(arms)):
        yield ("placebo",), weights, environment.placebo_arm


def _named(environment: _Environment, weights: Weights) -> Mapping[str, float]:
    return {environment.arms[off]: weight for off, weight in weights.items()}


def _counters(
    environment: _Environment, report: MetricReport, reports: Sequence[MetricReport]
) -> Iterator[tuple[DescribedMechanism, Mapping[str, float], MetricReport]]:
    """Yield each switched mechanism with the weights of its arms and each metric that shows its work."""
    for mechanism in environment.mechanisms:
        if weights := _named(environment, single_cost(mechanism, environment.arms)):
            for counter in _of_cell(reports, report, mechanism.counters):
                yield mechanism, weights, counter


def _of_cell(
    reports: Sequence[MetricReport], report: MetricReport, counters: Sequence[str]
) -> Iterator[MetricReport]:
    for each in reports:
        if each.cell == report.cell and each.metric.startswith(tuple(counters)):
            yield each


def _compared(
    environment: _Environment,
    values: Mapping[MetricId, Sequence[Value]],
    plan: Comparisons,
    report: MetricReport,
    weights: Mapping[str, float],
    against: str,
) -> Unjudged:
    """Return a contrast of arms on one metric; for two arms, with the values of both."""
    mine = values[report.metric_id]
    if len(weights) == 2 and weights.get(against) == -1:
        (arm,) = weights.keys() - {against}
        row, tests = comparison(mine, plan, arm, against)
        return Unjudged(report, row, tests)
    contrast = contrast_cost(mine, Contrast(tuple(weights), tuple(weights.values())), plan)
    row = Comparison(
        environment=environment.name, against=against, aa=False, cost=contrast.cost if contrast else None,
        baseline_value=None, value=None, slow=None, adjusted_p=None, verdict="inconclusive", remarks=(),
        effects=contrast.effects if contrast else (),
    )  # fmt: skip
    return Unjudged(report, row, contrast.p_values if contrast else None)


def _explanation(
    environment: _Environment,
    report: MetricReport,
    total: Comparison,
    parts: _Judged,
    counters: _Judged,
    reports: Sequence[MetricReport],
) -> Explanation:
    """Return an explanation from judged parts, the largest first."""

    def part(*which: str) -> Comparison | None:
        return parts.get((environment.name, report.metric_id, which))  # type: ignore[arg-type]

    def moved(mechanism: DescribedMechanism) -> Iterator[CounterChange]:
        for counter in _of_cell(reports, report, mechanism.counters):
            row = counters.get((environment.name, counter.metric_id, ("mechanism", mechanism.kind)))
            if row is not None:
                yield CounterChange(counter, row)

    costs = []
    for each in environment.mechanisms:
        if (row := part("mechanism", each.kind)) is None:
            costs.append(MechanismCost(each, None, why_not=environment.why_not[each.kind]))
        else:
            state, facts = environment.proofs[each.kind]
            costs.append(
                MechanismCost(
                    each, row, environment.without(each), "", state, facts, (*moved(each),),
                    environment.rules[each.kind],
                )
            )  # fmt: skip
    pairs = [
        MechanismPair(one, other, row)
        for one, other, _ in pair_costs(environment.mechanisms, environment.arms)
        if (row := part("pair", one.kind, other.kind)) is not None
    ]
    return Explanation(
        environment.name, report, total,
        mechanisms=tuple(sorted(costs, key=lambda each: -_size(each.row))),
        pairs=tuple(sorted(pairs, key=lambda each: -_size(each.row))),
        interaction=part("together"), unexplained=part("rest"), unexplained_arm=environment.all_off_arm,
        crossed=any(each.crossed for each in environment.mechanisms),
        placebo=part("placebo"), placebo_arm=environment.placebo_arm,
    )  # fmt: skip


def _size(row: Comparison | None) -> float:
    """Return the size of a cost, on a scale that lets costs of one metric add up; -1 without a cost."""
    if row is None or row.cost is None:
        return -1.0
    typical = row.cost.typical
    return abs(math.log(typical)) if row.cost.scale == "ratio" and typical > 0 else abs(typical)


# -- whether it is off ----------------------------------------------------------------------------


def _proven_everywhere(mechanism: DescribedMechanism, arms: Mapping[Off, str], context: Context) -> _Proven:
    """Return the weakest proof that a mechanism is off, over all arms without it."""
    shown = [
        proven(mechanism.proof, context, arms[with_it], arms[without]) for with_it, without in sides(mechanism, arms)
    ]
    least = (ProofState.NOT_OFF, ProofState.UNKNOWN, ProofState.SHOWN)
    return min(shown, key=lambda each: least.index(each[0]), default=(ProofState.UNKNOWN, ("", "")))


def proven(proof: Proof | None, context: Context, with_it: str, without: str) -> tuple[ProofState, tuple[str, str]]:
    """Return whether facts show that a mechanism is off in the arm ``without``, and their values in both arms."""
    if proof is None:
        return ProofState.UNKNOWN, ("", "")
    read = partial(_of_path, context) if proof.of == PATH else partial(_of_sites, context)
    before, after = read(proof.fact, with_it), read(proof.fact, without)
    values = ", ".join(sorted(before)), ", ".join(sorted(after))
    if not before or not after:
        return ProofState.UNKNOWN, values
    fits = proof.off is None or all(re.fullmatch(proof.off, value) for value in after)
    return (ProofState.SHOWN if fits and before != after else ProofState.NOT_OFF), values


def _rules_matched(mechanism: DescribedMechanism, arms: Mapping[Off, str], context: Context) -> tuple[str, str]:
    """Return the number of packet filter rules that a probe matched with a mechanism and without it."""
    pairs = sides(mechanism, arms)
    with_it, without = (
        set().union(*(_of_path(context, "rules", arms[pair[side]]) for pair in pairs)) for side in (0, 1)
    )
    return ", ".join(sorted(with_it, key=int)), ", ".join(sorted(without, key=int))


def _of_sites(context: Context, fact: str, environment: str) -> set[str]:
    """Return the values of a fact in all sites of an environment."""
    return {
        value
        for scope, key, value, _ in context.facts
        if key == fact and scope.partition("/")[0] == environment and value
    }


def _of_path(context: Context, fact: str, environment: str) -> set[str]:
    """Return the values of a field in an environment's network paths."""
    paths = (path for (name, _), path in context.paths.by_environment.items() if name == environment)
    values = (getattr(path, fact, None) for path in paths)
    return {str(value) for value in values if value not in (None, "")}
