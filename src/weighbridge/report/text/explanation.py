"""Why an environment costs what it does, in a sentence and in rows. Shared by the terminal and the page."""

from collections.abc import Iterator
from dataclasses import dataclass

from weighbridge.analysis.explanation import second_pass
from weighbridge.analysis.results import Analysis, Comparison, Explanation, MechanismCost, ProofState
from weighbridge.model.explained import DescribedMechanism
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import TOO_FEW
from weighbridge.report.text.matrix import why_undecided
from weighbridge.report.text.metric_names import metric_phrase, metric_words
from weighbridge.report.text.summary import change
from weighbridge.report.text.verdicts import comparison_verdict, cost_text, open_text

INTRODUCTION = (
    "Each mechanism was switched off in an environment of its own, in the same blocks. So its cost is measured, and"
    " so are what all cost together beyond that and what stays when all are off: none is what others leave. Holm's"
    " correction treats all of them as one family."
)
CROSSED = (
    " Where mechanisms were switched in every combination, each one's cost is its mean over all combinations of the"
    " others. A pair's is what the one costs more beside the other than without it."
)
HEADS = ("mechanism", "switched", "cost", "verdict", "what moved with it", "to change it")
TOGETHER = "together, beyond each alone (interaction)"
UNEXPLAINED = "unexplained: all of these off"
BEYOND = "all together, beyond these"
STAYED = "what stayed on: these off"
NEXT = "weighbridge explain RUN"
"""The command that tells which mechanisms interact."""
_LONGEST = 40
"""Characters of a fact that are shown."""
_MOST = 4
"""Mechanisms that a sentence names."""


@dataclass(frozen=True, slots=True)
class ExplanationRow:
    """A row of the table. ``shown_as`` is what its colour goes by; "" where it has no cost."""

    what: str
    switched: str
    cost: str
    verdict: str
    moved: str
    remedy: str
    shown_as: str
    source: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """What stands under `HEADS`."""
        return self.what, self.switched, self.cost, self.verdict, self.moved, self.remedy


def explanation_introduction(analysis: Analysis) -> str:
    """Return what stands before all explanations of a run."""
    return INTRODUCTION + (CROSSED if any(each.crossed for each in analysis.explanations) else "")


def explanation_sentence(analysis: Analysis, explanation: Explanation) -> str:
    """Return one sentence: the cost, its causes with intervals, and what is unexplained; or why none is given."""
    report, total = explanation.report, explanation.total
    name, baseline = display_name(explanation.environment), display_name(analysis.baseline)
    named = [each for each in explanation.mechanisms if each.row is not None and each.row.verdict == "different"]
    causes = [f"{each.mechanism.title} {_figure(each.row, report.unit)}" for each in named[:_MOST] if each.row]
    further = len(named) - len(causes)
    listed = ", ".join(causes) + (f" and {further} more" if further else "")
    if total.verdict != "different":
        if total.verdict == "hidden":
            return (
                f"{name}: a limit that both sides met hides its cost in {metric_phrase(report)}: it is not explained"
            )
        if total.verdict == "equivalent":
            figure = _figure(total, report.unit)
            return f"{name}: its cost in {metric_phrase(report)} does not matter ({figure}): it is not explained"
        begin = f"{name}: a cost in {metric_phrase(report)} is not proven, so it is not explained"
        if total.few:
            return f"{begin}: {TOO_FEW}"
        proven = f"of its mechanisms {listed} is proven all the same" if listed else ""
        return "; ".join(filter(None, (f"{begin} ({_figure(total, report.unit)})", open_text(report, total), proven)))
    begin = f"{name} {change(report, total, analysis.baseline)}"
    undecided = [
        each.mechanism.title for each in explanation.mechanisms if each.row is not None and not each.row.decided
    ]
    parts = (
        listed or "no mechanism shows a cost",
        *([f"undecided: {', '.join(undecided[:_MOST])}"] if undecided else []),
        *_pairs(explanation),
        *_rest(explanation, baseline),
    )
    return f"{begin}: {'; '.join(parts)}"


def _figure(row: Comparison, unit: str) -> str:
    return cost_text(row, unit)


def _pairs(explanation: Explanation) -> Iterator[str]:
    """Which mechanisms cost more, or less, beside another one."""
    shown = [each for each in explanation.pairs if each.row.verdict == "different"]
    for each in shown[:_MOST]:
        yield f"{each.one.title} {_figure(each.row, explanation.report.unit)} more with {each.other.title}"
    if not explanation.crossed or sum(each.row is not None for each in explanation.mechanisms) < 2:
        return
    if not explanation.pairs:
        yield "each is off only where others are, so no pair was measured"
    elif not shown:
        decided = all(each.row.verdict == "equivalent" for each in explanation.pairs)
        yield "none depends on another" if decided else "no pair shows more than its two costs"


def _rest(explanation: Explanation, baseline: str) -> Iterator[str]:
    """What the mechanisms do not say: their interaction, and what is left with all of them off."""
    unit, together, left = explanation.report.unit, explanation.interaction, explanation.unexplained
    if together is not None and together.verdict == "different":
        which = f" ({NEXT} tells of which)" if second_pass(explanation) else ""
        yield f"{_figure(together, unit)} comes of their interaction{which}"
    if left is None or left.cost is None:
        return
    what = "from what stayed on" if explanation.crossed else "unexplained"
    if left.verdict == "different":
        if left.cost.worsening.estimate < 0:
            yield f"with all of them off it is better than {baseline} ({_figure(left, unit)})"
        else:
            yield f"{_figure(left, unit)} is {what}"
    elif left.verdict == "equivalent":
        yield f"nothing that matters is {what}"
    else:
        yield f"it is undecided whether more is {what} ({_figure(left, unit)})"


def explanation_rows(analysis: Analysis, explanation: Explanation) -> list[ExplanationRow]:
    """Return the table's rows: each mechanism, those that could not be switched, the interaction and the rest."""
    unit = explanation.report.unit
    rows = [_mechanism(each, unit) for each in explanation.mechanisms]
    rows += [_row(f"{each.one.title} with {each.other.title}", each.row, unit) for each in explanation.pairs]
    if explanation.interaction is not None:
        remedy = NEXT if second_pass(explanation) else ""
        rows.append(_row(BEYOND if explanation.crossed else TOGETHER, explanation.interaction, unit, remedy))
    if explanation.unexplained is not None:
        left = STAYED if explanation.crossed else UNEXPLAINED
        rows.append(_row(f"{left}, against {display_name(analysis.baseline)}", explanation.unexplained, unit))
    return rows


def _row(what: str, row: Comparison, unit: str, remedy: str = "") -> ExplanationRow:
    return ExplanationRow(what, "", cost_text(row, unit), _verdict(row), "", remedy, row.shown_as)


def _verdict(row: Comparison) -> str:
    return ": ".join((comparison_verdict(row), *why_undecided(row)))


def _mechanism(cost: MechanismCost, unit: str) -> ExplanationRow:
    mechanism, row = cost.mechanism, cost.row
    if row is None:
        return ExplanationRow(
            mechanism.title, "not switched", "–", cost.why_not or "not measured without it", "", mechanism.remedy, "",
            mechanism.source,
        )  # fmt: skip
    switched = "; ".join(filter(None, (mechanism.switched, *_with_others(mechanism), _proof(cost))))
    return ExplanationRow(
        mechanism.title, switched, cost_text(row, unit), _verdict(row), _moved(cost),
        mechanism.remedy, row.shown_as, mechanism.source,
    )  # fmt: skip


def _with_others(mechanism: DescribedMechanism) -> Iterator[str]:
    if mechanism.off_with and not mechanism.crossed:
        yield f"both without {' and '.join(mechanism.off_with)}"
    if mechanism.takes:
        yield f"with it goes {' and '.join(mechanism.takes)}"


def _proof(cost: MechanismCost) -> str:
    """What its sites say with the mechanism and without it, and where they do not show that it is off."""
    if cost.proof is ProofState.SHOWN:
        with_it, without = (value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…" for value in cost.facts)
        return f"seen: {with_it} → {without}" if with_it != without else ""
    if cost.proof is ProofState.NOT_OFF:
        return f"not shown to be off ({cost.facts[1] or 'unknown'})"
    return "nothing read from its sites shows it"


def _moved(cost: MechanismCost) -> str:
    """Which figures of resource use differ with the mechanism, after the rules of packet filters that it matched."""
    with_it, without = cost.rules
    rules = [f"rules matched {with_it} → {without}"] if with_it and without and with_it != without else []
    moved = (each for each in cost.counters if each.row.verdict == "different")
    figures = (f"{metric_words(each.report.metric)} {cost_text(each.row, each.report.unit)}" for each in moved)
    return ", ".join([*rules, *figures])


def explanation_title(explanation: Explanation) -> str:
    """Return the environment and the metric of an explanation: ``bridge: rr transactions/s``."""
    return f"{display_name(explanation.environment)}: {metric_phrase(explanation.report)}"
