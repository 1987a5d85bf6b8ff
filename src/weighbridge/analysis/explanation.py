"""Why an environment costs what it does: what each of its mechanisms costs, all together, and what stays unexplained.

Every part is a contrast of logarithms (or differences) inside the same blocks, never a difference of two printed
costs. With the environment E, without a mechanism E-m, and with all of them off as "bare":

- a mechanism costs E against E-m; where it cannot be off without others, both sides are without these,
- the interaction is what all cost together beyond that: (E - bare) - sum over m (E - E-m),
- the unexplained rest is bare against the baseline.

So the parts add up only as far as what was measured does. All of them, of all headlines, are one family for Holm,
and what moved with the mechanisms another one.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from weighbridge.analysis.comparisons import Key, Unjudged, comparison, contrast_cost, judged_together
from weighbridge.analysis.context import Context
from weighbridge.analysis.plan import Plan
from weighbridge.analysis.results import (
    Comparison,
    CounterChange,
    Explanation,
    MechanismCost,
    MetricReport,
    ProofState,
)
from weighbridge.model.explained import PATH, DescribedMechanism, Proof
from weighbridge.model.stored_study import StoredStudy
from weighbridge.statistics import Contrast
from weighbridge.statistics.verdicts import PValues
from weighbridge.store.run import RunStore, Value

Off = frozenset[str]
NOTHING: Off = frozenset()


@dataclass(frozen=True, slots=True)
class _Environment:
    """An environment that is explained: its arms by what is off in them, as far as they were measured."""

    name: str
    arms: Mapping[Off, str]
    left_out: Mapping[Off, str]
    """Those that were not measured."""
    mechanisms: Sequence[DescribedMechanism]

    @property
    def switched(self) -> list[DescribedMechanism]:
        """Those mechanisms of which both sides were measured."""
        return [each for each in self.mechanisms if all(side in self.arms for side in _sides(each))]

    @property
    def bare(self) -> Off | None:
        """What is off in the arm that has all of the switched ones off; None where no arm has."""
        every = frozenset(each.kind for each in self.switched)
        return every if every and every in self.arms else None


def _sides(mechanism: DescribedMechanism) -> tuple[Off, Off]:
    """What is off on both sides of a mechanism's comparison: with it, and without it."""
    others = frozenset(mechanism.off_with)
    return others, others | {mechanism.kind}


def explanations(
    store: RunStore,
    values: Mapping[Key, Sequence[Value]],
    reports: Sequence[MetricReport],
    plan: Plan,
    context: Context,
) -> tuple[Explanation, ...]:
    """Give why each explained environment costs what it does on each headline metric, largest costs first."""
    stored = store.study()
    if stored is None or not stored.mechanisms:
        return ()
    reasons = {each.environment: each.why for each in store.left_out()}
    unjudged: list[Explanation] = []
    parts: list[Unjudged] = []
    counters: list[Unjudged] = []
    for environment in _explained(stored, plan):
        for report in (each for each in reports if each.headline):
            total = next((row for row in report.comparisons if row.environment == environment.name), None)
            if total is not None:
                unjudged.append(
                    _unjudged(environment, report, total, reports, values, plan, context, parts, counters, reasons)
                )
    judged_parts, judged_counters = _judged(parts, context), _judged(counters, context)
    complete = [_complete(each, judged_parts, judged_counters) for each in unjudged]
    return tuple(sorted(complete, key=lambda each: -_size(each.total)))


def _explained(stored: StoredStudy, plan: Plan) -> Iterator[_Environment]:
    for name in dict.fromkeys(each.environment for each in stored.mechanisms):
        if name not in plan.environments:
            continue
        mine = {
            frozenset(arm.explains.off): arm.name
            for arm in stored.arms
            if arm.explains is not None and arm.explains.environment == name
        }
        left_out = {off: arm for off, arm in mine.items() if arm not in plan.environments}
        arms = {NOTHING: name, **{off: arm for off, arm in mine.items() if off not in left_out}}
        yield _Environment(name, arms, left_out, [each for each in stored.mechanisms if each.environment == name])


def _unjudged(
    environment: _Environment,
    report: MetricReport,
    total: Comparison,
    reports: Sequence[MetricReport],
    values: Mapping[Key, Sequence[Value]],
    plan: Plan,
    context: Context,
    parts: list[Unjudged],
    counters: list[Unjudged],
    reasons: Mapping[str, str],
) -> Explanation:
    """Give an explanation whose comparisons are those of ``parts`` and ``counters``, which are judged later."""
    mine = values[report.workload, report.level, report.metric]

    def part(
        row: Comparison, against: str, tests: PValues | None, of: MetricReport, among: list[Unjudged]
    ) -> Comparison:
        among.append(Unjudged(of, against, row, tests))
        return row

    costs: list[MechanismCost] = []
    for mechanism in environment.mechanisms:
        with_it, without = (environment.arms.get(side) for side in _sides(mechanism))
        if with_it is None or without is None:
            why_not = mechanism.refused or _why_absent(environment, mechanism, reasons)
            costs.append(MechanismCost(mechanism, None, why_not=why_not))
            continue
        row, tests = comparison(mine, plan, with_it, without)
        state, told = proven(mechanism.proof, context, with_it, without)
        moved = []
        for counter in _of_cell(reports, report, mechanism.counters):
            change, its_tests = comparison(
                values[counter.workload, counter.level, counter.metric], plan, with_it, without
            )
            if change.cost is not None:
                moved.append(CounterChange(counter, part(change, without, its_tests, counter, counters)))
        costs.append(
            MechanismCost(
                mechanism, part(row, without, tests, report, parts), without, "", state, told, tuple(moved)
            )
        )  # fmt: skip
    interaction: Comparison | None = None
    unexplained: Comparison | None = None
    bare = environment.bare
    if bare is not None:
        if together := _interaction(environment, bare, mine, plan):
            interaction = part(together[0], environment.arms[bare], together[1], report, parts)
        row, tests = comparison(mine, plan, environment.arms[bare], plan.baseline)
        unexplained = part(row, plan.baseline, tests, report, parts)
    return Explanation(
        environment.name, report, total, tuple(costs), interaction, unexplained,
        environment.arms[bare] if bare is not None else "",
    )  # fmt: skip


def _why_absent(environment: _Environment, mechanism: DescribedMechanism, reasons: Mapping[str, str]) -> str:
    """Why an arm without a mechanism was not measured; "" where the run did not leave it out."""
    return reasons.get(environment.left_out.get(_sides(mechanism)[1], ""), "")


def _of_cell(
    reports: Sequence[MetricReport], report: MetricReport, counters: Sequence[str]
) -> Iterator[MetricReport]:
    for each in reports:
        if (each.workload, each.level) == (report.workload, report.level) and each.metric.startswith(tuple(counters)):
            yield each


def _interaction(
    environment: _Environment, bare: Off, values: Sequence[Value], plan: Plan
) -> tuple[Comparison, PValues | None] | None:
    """Give what all mechanisms cost together beyond the sum of the single ones; None where that is 0 by itself.

    So it is where each can be off only with those before it: the single costs are steps from arm to arm then.
    """
    weights: dict[str, float] = {environment.name: 1.0, environment.arms[bare]: -1.0}
    for mechanism in environment.switched:
        with_it, without = (environment.arms[side] for side in _sides(mechanism))
        weights[with_it] = weights.get(with_it, 0.0) - 1.0
        weights[without] = weights.get(without, 0.0) + 1.0
    weights = {arm: weight for arm, weight in weights.items() if weight}
    if not weights:
        return None
    contrast = contrast_cost(values, Contrast(tuple(weights), tuple(weights.values())), plan)
    row = Comparison(
        environment=environment.name, aa=False, cost=contrast.cost if contrast else None, baseline_value=None,
        value=None, slow=None, adjusted_p=None, verdict="inconclusive", remarks=(),
        standard_error=contrast.standard_error if contrast else None,
    )  # fmt: skip
    return row, contrast.p_values if contrast else None


# -- whether it is off ----------------------------------------------------------------------------


def proven(proof: Proof | None, context: Context, with_it: str, without: str) -> tuple[ProofState, tuple[str, str]]:
    """Give whether facts show that a mechanism is off in the arm ``without``, and what they say in both."""
    if proof is None:
        return ProofState.UNKNOWN, ("", "")
    read = partial(_of_path, context) if proof.of == PATH else partial(_of_sites, context)
    before, after = read(proof.fact, with_it), read(proof.fact, without)
    values = ", ".join(sorted(before)), ", ".join(sorted(after))
    if not before or not after:
        return ProofState.UNKNOWN, values
    fits = proof.off is None or all(re.fullmatch(proof.off, value) for value in after)
    return (ProofState.SHOWN if fits and before != after else ProofState.NOT_OFF), values


def _of_sites(context: Context, fact: str, environment: str) -> set[str]:
    """The values of a fact in all sites of an environment."""
    return {
        value
        for scope, key, value, _ in context.facts
        if key == fact and scope.partition("/")[0] == environment and value
    }


def _of_path(context: Context, fact: str, environment: str) -> set[str]:
    """The values of a field of an environment's network paths."""
    return {
        str(getattr(path, fact, ""))
        for (name, _), path in context.paths.by_environment.items()
        if name == environment
    } - {""}


# -- verdicts -------------------------------------------------------------------------------------


def _judged(parts: Sequence[Unjudged], context: Context) -> dict[int, Comparison]:
    """Give the judged row of each part, by the identity of the one that is not."""
    rows = judged_together(parts, context)
    return {id(part.row): row for part, row in zip(parts, rows, strict=True)}


def _complete(
    explanation: Explanation, parts: Mapping[int, Comparison], counters: Mapping[int, Comparison]
) -> Explanation:
    def of(row: Comparison | None) -> Comparison | None:
        return None if row is None else parts[id(row)]

    costs = [
        replace(
            each,
            row=of(each.row),
            counters=tuple(replace(moved, row=counters[id(moved.row)]) for moved in each.counters),
        )
        for each in explanation.mechanisms
    ]
    return replace(
        explanation,
        mechanisms=tuple(sorted(costs, key=lambda each: -_size(each.row))),
        interaction=of(explanation.interaction),
        unexplained=of(explanation.unexplained),
    )


def _size(row: Comparison | None) -> float:
    """How large a cost is, on the scale on which costs of one metric add up; without one -1."""
    if row is None or row.cost is None:
        return -1.0
    typical = row.cost.typical
    return abs(math.log(typical)) if row.cost.scale == "ratio" and typical > 0 else abs(typical)
