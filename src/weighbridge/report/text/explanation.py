"""The causes of an environment's cost, in a sentence and in rows. Shared by the terminal and the page."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

from weighbridge.analysis.explanation import second_pass
from weighbridge.analysis.results import Analysis, Comparison, Explanation, MechanismCost, ProofState
from weighbridge.model.explained import PLACEBO_TITLE, DescribedMechanism
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import TOO_FEW, margin
from weighbridge.report.text.metric_names import metric_phrase, metric_words
from weighbridge.report.text.summary import change
from weighbridge.report.text.verdicts import (
    cost_text,
    open_range,
    open_text,
    reasoned_verdict,
    verdict_word,
)

INTRODUCTION = (
    "Each mechanism was switched off in an environment of its own, in the same rounds. Its cost is therefore measured"
    " directly. The interaction of all mechanisms, and the cost that remains with all of them off, are measured in"
    " the same way. Holm's correction treats all of these costs as one family."
)
CROSSED = (
    " If mechanisms were switched in every combination, the cost of a mechanism is its mean over all combinations of"
    " the others. The cost of a pair is the extra cost of one mechanism while the other is on."
)
HEADS = ("mechanism", "switched", "cost", "verdict", "what changed with it", "to change it")
TOGETHER = "together, beyond each alone (interaction)"
UNEXPLAINED = "unexplained: all of these off"
PLACEBO_READING = "nothing was switched, so its true cost is zero"
BEYOND = "all together, beyond these (interaction)"
STAYED = "unexplained by these: these off"
NEXT = "weighbridge explain RUN"
"""The command that shows which mechanisms interact."""
_LONGEST = 40
"""Characters of a fact that are shown."""
MOST_SHORTENED = 3
"""The shortest form of `cause_lines`."""
_MOST = 4
"""Mechanisms that a sentence names."""


@dataclass(frozen=True, slots=True)
class ExplanationLine:
    """A row of the table. ``shown_as`` decides its colour; it is empty without a cost."""

    part: str
    switched: str
    cost: str
    verdict: str
    moved: str
    remedy: str
    shown_as: str
    source: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells under `HEADS`."""
        return self.part, self.switched, self.cost, self.verdict, self.moved, self.remedy


def explanation_introduction(analysis: Analysis) -> str:
    """Return the introduction to all explanations of a run."""
    return INTRODUCTION + (CROSSED if any(each.crossed for each in analysis.explanations) else "")


def explanation_sentence(analysis: Analysis, explanation: Explanation) -> str:
    """Return the cost, its causes with intervals and the unexplained rest, or why it is not explained."""
    report, total = explanation.report, explanation.total
    name, named = display_name(explanation.environment), _significant(explanation)
    figures = [f"{each.mechanism.title} {cost_text(each.row, report.unit)}" for each in named[:_MOST] if each.row]
    further = len(named) - len(figures)
    listed = ", ".join(figures) + (f" and {further} more" if further else "")
    if total.verdict != "different":
        what = metric_phrase(report)
        if total.verdict == "hidden":
            return f"{name}: the cost in {what} is hidden by a bottleneck, so it is not explained."
        if total.verdict == "equivalent":
            verdict = verdict_word(total.verdict, total.cost.margin if total.cost else None)
            return (
                f"{name}: the cost in {what} is {verdict} ({cost_text(total, report.unit)}), so it is not explained."
            )
        begin = f"{name}: the total cost in {what} is undecided"
        if total.few:
            return f"{begin}, so it is not explained: {TOO_FEW}."
        alone = (
            "One mechanism is significant by itself" if len(named) == 1
            else f"{len(named)} mechanisms are significant by themselves"
        )  # fmt: skip
        own = f"{alone}: {listed}." if listed else ""
        unexplained = "" if listed else ", so it is not explained"
        detected = "; ".join(
            filter(None, (f"{begin} ({open_range(report, total)}){unexplained}", open_text(report, total)))
        )
        return " ".join(filter(None, (f"{detected}.", own)))
    causes = [f"Causes: {listed}"] if listed else []
    sentences = (f"{name} {change(report, total)}", *causes, *_others(analysis, explanation))
    warning = [placebo_sentence(explanation)] if explanation.placebo_is_significant else []
    return " ".join([*(f"{each}." for each in sentences), *warning])


def cause_lines(analysis: Analysis, explanation: Explanation, shortened: int = 0, run: str = "RUN") -> list[str]:
    """Return each cause of a cost with its remedy, and the rest of the cost; or why the cost is not explained.

    `run` is the run directory, as the next command names it. With `shortened` 1, all causes are in one line, without
    their remedies; with 2, only the first sentence of the rest follows, and with 3 only if there are no causes.
    """
    placebo = placebo_sentence(explanation)
    if explanation.total.verdict != "different":
        return [*filter(None, (explanation_sentence(analysis, explanation), placebo))]
    unit, named = explanation.report.unit, _significant(explanation)
    causes = {
        f"{each.mechanism.title}: {cost_text(each.row, unit)}": each.mechanism.remedy
        for each in named[:_MOST]
        if each.row is not None
    }
    lines = [f"{cause}. To change it: {remedy}." for cause, remedy in causes.items()]
    if shortened and causes:
        lines = [f"{'; '.join(causes)}."]
    more = [f"{len(named) - _MOST} more mechanisms have a significant cost."] if len(named) > _MOST else []
    others = [f"{each}." for each in _others(analysis, explanation, run)]
    if shortened > 1:
        others = [] if causes and shortened == MOST_SHORTENED else others[:1]
        placebo = placebo if explanation.placebo_is_significant else ""
    return [*filter(None, (*lines, *more, *others, placebo))]


def placebo_sentence(explanation: Explanation) -> str:
    """Return a sentence about the cost of the placebo; "" if it has none."""
    row = explanation.placebo
    if row is None or row.cost is None or row.few:
        return ""
    figure = cost_text(row, explanation.report.unit)
    if explanation.placebo_is_significant:
        return (
            f"The placebo switches nothing, but its cost is significant: {figure}. Do not rely on other parts of"
            " that size in this run."
        )
    chance = " Its interval excludes zero, as 1 in 20 does by chance." if explanation.placebo_excludes_zero else ""
    return f"The placebo switches nothing, and shows {figure}.{chance}"


def _significant(explanation: Explanation) -> list[MechanismCost]:
    return [each for each in explanation.mechanisms if each.row is not None and each.row.verdict == "different"]


def _others(analysis: Analysis, explanation: Explanation, run: str = "RUN") -> list[str]:
    """Return what is known of a significant cost besides its causes, in sentences without their full stops."""
    rows = [(each.mechanism.title, each.row) for each in explanation.mechanisms if each.row is not None]
    undecided = [title for title, row in rows if not row.decided]
    return [
        *([] if _significant(explanation) else ["No mechanism has a significant cost"]),
        *([f"Undecided: {', '.join(undecided[:_MOST])}"] if undecided else []),
        *_pairs(explanation),
        *_rest(explanation, display_name(analysis.baseline), run),
    ]


def _pairs(explanation: Explanation) -> Iterator[str]:
    """Return which mechanisms cost more, or less, in combination with another one."""
    shown = [each for each in explanation.pairs if each.row.verdict == "different"]
    for each in shown[:_MOST]:
        figure = cost_text(each.row, explanation.report.unit)
        yield f"Together, {each.one.title} and {each.other.title} cost {figure} more than the two alone"
    if not explanation.crossed or sum(each.row is not None for each in explanation.mechanisms) < 2:
        return
    if not explanation.pairs:
        yield "No pair was measured, because each mechanism is off only together with others"
    elif not shown:
        decided = all(each.row.verdict == "equivalent" for each in explanation.pairs)
        yield "No mechanism depends on another" if decided else "No pair has a significant interaction"


def _rest(explanation: Explanation, baseline: str, run: str) -> Iterator[str]:
    """Return the interaction of the mechanisms, and the cost that remains with all of them off."""
    unit, together, left = explanation.report.unit, explanation.interaction, explanation.unexplained
    if together is not None and together.verdict == "different":
        command = shlex.join(("weighbridge", "explain", run))
        which = f" ({command} finds out which mechanisms interact)" if second_pass(explanation) else ""
        yield f"The interaction of all mechanisms is {cost_text(together, unit)}{which}"
    if left is None or left.cost is None:
        return
    what = "unexplained by the mechanisms that were switched" if explanation.crossed else "unexplained"
    if left.verdict == "different":
        if left.cost.penalty.estimate < 0:
            yield f"With all of them off, it is better than {baseline} ({cost_text(left, unit)})"
        else:
            yield f"{cost_text(left, unit)} remains {what}"
    elif left.verdict == "equivalent":
        limit = f"less than {margin(left.cost.margin)}" if left.cost.margin is not None else "no relevant cost"
        yield f"{limit[:1].upper()}{limit[1:]} remains {what}"
    else:
        yield f"It is undecided whether a cost remains {what} ({open_range(explanation.report, left)})"


def explanation_rows(analysis: Analysis, explanation: Explanation) -> list[ExplanationLine]:
    """Return the table's rows: the mechanisms, their pairs, the interaction, the unexplained rest, the placebo."""
    unit = explanation.report.unit
    rows = [_mechanism(each, unit) for each in explanation.mechanisms]
    rows += [_row(f"{each.one.title} with {each.other.title}", each.row, unit) for each in explanation.pairs]
    if explanation.interaction is not None:
        remedy = NEXT if second_pass(explanation) else ""
        rows.append(_row(BEYOND if explanation.crossed else TOGETHER, explanation.interaction, unit, remedy))
    if explanation.unexplained is not None:
        left = STAYED if explanation.crossed else UNEXPLAINED
        rows.append(_row(f"{left}, against {display_name(analysis.baseline)}", explanation.unexplained, unit))
    if explanation.placebo is not None:
        row = _row(PLACEBO_TITLE, explanation.placebo, unit)
        rows.append(replace(row, switched="nothing", moved=PLACEBO_READING))
    return rows


def _row(what: str, row: Comparison, unit: str, remedy: str = "") -> ExplanationLine:
    return ExplanationLine(what, "", cost_text(row, unit), reasoned_verdict(row), "", remedy, row.shown_as)


def _mechanism(cost: MechanismCost, unit: str) -> ExplanationLine:
    mechanism, row = cost.mechanism, cost.row
    if row is None:
        return ExplanationLine(
            mechanism.title, "not switched", "–", cost.why_not or "not measured without it", "", mechanism.remedy, "",
            mechanism.source,
        )  # fmt: skip
    switched = "; ".join(filter(None, (mechanism.switched, *_with_others(mechanism), _proof(cost))))
    return ExplanationLine(
        mechanism.title, switched, cost_text(row, unit), reasoned_verdict(row), _moved(cost),
        mechanism.remedy, row.shown_as, mechanism.source,
    )  # fmt: skip


def _with_others(mechanism: DescribedMechanism) -> Iterator[str]:
    if mechanism.off_with and not mechanism.crossed:
        yield f"both without {' and '.join(mechanism.off_with)}"
    if mechanism.takes:
        yield f"with it goes {' and '.join(mechanism.takes)}"


def _proof(cost: MechanismCost) -> str:
    """Return the facts with the mechanism and without it, or that they do not show that it is off."""
    if cost.proof is ProofState.SHOWN:
        with_it, without = (value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…" for value in cost.facts)
        return f"seen: {with_it} → {without}" if with_it != without else ""
    if cost.proof is ProofState.NOT_OFF:
        return f"not shown to be off ({cost.facts[1] or 'unknown'})"
    return "no fact shows whether it was off"


def _moved(cost: MechanismCost) -> str:
    """Return the packet-filter rules that a mechanism matched, and its significant changes of resource use."""
    with_it, without = cost.rules
    rules = [f"rules matched {with_it} → {without}"] if with_it and without and with_it != without else []
    moved = (each for each in cost.counters if each.row.verdict == "different")
    figures = (f"{metric_words(each.report.metric)} {cost_text(each.row, each.report.unit)}" for each in moved)
    return ", ".join([*rules, *figures])


def explanation_title(explanation: Explanation) -> str:
    """Return the environment and the metric of an explanation: ``bridge: rr transactions/s``."""
    return f"{display_name(explanation.environment)}: {metric_phrase(explanation.report)}"


def causes_title(explanation: Explanation) -> str:
    """Return the heading of `cause_lines`: ``Causes of the cost of 17.1% [14.9, 19.3] (docker: run time)``."""
    total = explanation.total
    cost = f" of {cost_text(total, explanation.report.unit)}" if total.verdict == "different" else ""
    return f"Causes of the cost{cost} ({explanation_title(explanation)})"
