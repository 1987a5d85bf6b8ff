"""The answer to a study's question in one sentence: what costs most (with a ladder: which step), and how many differ.

It counts the cells of the matrix. Clients on several hosts (a level ``client``) have a part of the sentence each.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.model.study import CLIENT
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import margin
from weighbridge.report.text.matrix import MatrixCosts, matrix
from weighbridge.report.text.metric_names import metric_phrase
from weighbridge.report.text.paths import place_words
from weighbridge.report.text.summary import nothing_sentence, over_levels
from weighbridge.report.text.verdicts import Effect, effect

NAMED = 3
"""Costs that are named in a part of the sentence, the largest first."""
BRIEF_WORDS = 20
"""Words of the answer where there is room for no more, as on a terminal."""


@dataclass(frozen=True, slots=True)
class HeadlineComparison:
    """One comparison that the answer may name: of a headline metric, with the baseline or a step of the ladder."""

    report: MetricReport
    row: Comparison
    against: str

    @property
    def place(self) -> str:
        """The host of the clients; empty where that is not swept."""
        return self.report.level.value_of(CLIENT) or ""

    @property
    def effect(self) -> Effect | None:
        """The cost in words; None unless the verdict is different."""
        return effect(self.report, self.row) if self.row.shown_as == "different" else None

    @property
    def cost(self) -> float:
        """The cost in percent, positive is worse; 0 where it has no percentage or the verdict is not different."""
        percent = self.row.cost.percent if self.row.cost is not None else None
        return percent.estimate if percent is not None and self.effect is not None else 0.0


def answer(analysis: Analysis) -> str:
    """Return the answer to a study's question as one sentence."""
    if not analysis.metrics:
        return nothing_sentence(analysis)
    if analysis.native_only:
        return f"Only {display_name(analysis.baseline)} was measured: there is nothing to compare."
    if analysis.few:
        return "Too few blocks to say what costs how much: these are the measured values."
    comparisons, steps = _headline_comparisons(analysis), bool(analysis.ladder)
    if not comparisons:
        baseline = display_name(analysis.baseline)
        return f"No cost could be shown: no block has a value of {baseline} and one of another environment."
    parts: list[str] = []
    named: list[HeadlineComparison] = []
    for place in sorted({item.place for item in comparisons}, key=["", *(item.place for item in comparisons)].index):
        place_comparisons = [item for item in comparisons if item.place == place]
        groups = _named(place_comparisons, steps=steps)
        named += [item for group in groups for item in group]
        if groups:
            text = _step_costs(groups) if steps else _costs(groups)
            parts.append(f"{place_words(analysis.paths.place(place))}: {text}" if place else text)
        elif steps and (
            baseline_groups := _named(
                [item for item in _baseline_comparisons(analysis) if item.place == place], steps=False
            )
        ):
            costs = f"{_costs(baseline_groups)} against {display_name(analysis.baseline)}"
            text = f"{costs}, at which step could not be shown"
            parts.append(f"{place_words(analysis.paths.place(place))}: {text}" if place else text)
        elif place:
            parts.append(f"{place_words(analysis.paths.place(place))}: {_no_cost(analysis, place)}")
    cells = _cells(analysis)
    if not parts:
        counts = [] if {cell.shown_as for cell in cells} == {"equivalent"} else [_counts(analysis, cells)]
        parts.append(": ".join([_no_cost(analysis), *counts]))
    elif steps or not all(_is_named(cell, named) for cell in cells):
        parts.append(_counts(analysis, cells))
    text = "; ".join(parts)
    return f"{text[:1].upper() if text.startswith(('clients ', 'no ', 'every ')) else text[:1]}{text[1:]}."


def brief_answer(analysis: Analysis) -> str:
    """Return the answer in about `BRIEF_WORDS` words: the largest cost, and how many comparisons differ."""
    if not analysis.metrics or analysis.native_only or analysis.few:
        return answer(analysis)
    comparisons, cells = _headline_comparisons(analysis), _cells(analysis)
    if not comparisons:
        return answer(analysis)
    groups = _named(comparisons, steps=False)
    if not groups:
        text = _no_cost(analysis)
        end = "" if {cell.shown_as for cell in cells} == {"equivalent"} else f": {_counts(analysis, cells)}"
    else:
        first = groups[0][0]
        text = _costs(groups[:1])
        if analysis.ladder and first.effect is not None and first.effect.worse:
            text += f" against {display_name(first.against)}"
        text += f" ({place_words(analysis.paths.place(first.place))})" if first.place else ""
        different = sum(cell.shown_as == "different" for cell in cells)
        end = f"; {different} of {len(cells)} comparisons {'differs' if different == 1 else 'differ'}"
        end = "" if len(cells) == 1 else end
    sentence = f"{text}{end}" if len(f"{text}{end}".split()) <= BRIEF_WORDS else text
    return f"{sentence[:1].upper() if not groups else sentence[:1]}{sentence[1:]}."


def _cells(analysis: Analysis) -> list[MatrixCosts]:
    """Return the cells of the matrix: what the answer counts can be counted there."""
    return [cell for row in matrix(analysis).rows for cell in row.cells if cell is not None]


def _is_named(cell: MatrixCosts, named: Sequence[HeadlineComparison]) -> bool:
    return any(row is item.row for _, row in cell.rows for item in named)


def _headline_comparisons(analysis: Analysis) -> list[HeadlineComparison]:
    """Return the comparisons on headline metrics: the steps where there is a ladder, else those with the baseline."""
    steps = [
        HeadlineComparison(each.report, step.row, step.previous)
        for each in analysis.ladder
        if each.report.headline
        for step in each.steps
    ]
    shown = [each for each in steps if each.row.cost is not None or each.row.broke_instead]
    return shown or _baseline_comparisons(analysis)


def _baseline_comparisons(analysis: Analysis) -> list[HeadlineComparison]:
    """Return the comparisons of headline metrics with the baseline."""
    rows = [
        HeadlineComparison(report, row, analysis.baseline)
        for report in analysis.headlines
        for row in report.comparisons
    ]
    return [each for each in rows if not each.row.aa and (each.row.cost is not None or each.row.broke_instead)]


def _named(comparisons: Sequence[HeadlineComparison], *, steps: bool) -> list[list[HeadlineComparison]]:
    """The costs to be named, the largest first: of the environment, or of the ladder, that costs most.

    Those of one workload at several levels are together.
    """
    most = max(comparisons, key=lambda each: each.cost, default=None)
    if most is None or most.cost <= 0:
        gains = sorted((each for each in comparisons if each.effect is not None), key=lambda each: each.cost)
        return [gains[:1]] if gains else []
    if steps:  # in the ladder's order
        return [[each] for each in comparisons if each.report is most.report and each.effect is not None]
    groups: dict[str, list[HeadlineComparison]] = {}
    for each in sorted(comparisons, key=lambda each: -each.cost):
        if each.row.environment == most.row.environment and each.cost > 0:
            groups.setdefault(over_levels(each.report), []).append(each)
    return list(groups.values())[:NAMED]


def _costs(named: Sequence[Sequence[HeadlineComparison]]) -> str:
    """``docker-bridge costs 42 % of tcp throughput and 20 % of redis-set requests/s``."""
    first = named[0][0]
    if first.effect is not None and not first.effect.worse:
        return f"{display_name(first.row.environment)} {_gain(first, first.effect)}"
    return f"{display_name(first.row.environment)} costs {_listed([_amount(group) for group in named])}"


def _step_costs(named: Sequence[Sequence[HeadlineComparison]]) -> str:
    """``netns costs 42 % of tcp throughput against native, bridge 7 % against netns``."""
    parts: list[str] = []
    for each, one in ((group[0], group[0].effect) for group in named):
        if one is not None and not one.worse:
            parts.append(f"{display_name(each.row.environment)} {_gain(each, one)}")
        elif one is not None:
            what = one.short if parts else f"costs {_amount([each])}"
            parts.append(f"{display_name(each.row.environment)} {what} against {display_name(each.against)}")
    return _listed(parts)


def _amount(group: Sequence[HeadlineComparison]) -> str:
    """``42 % of tcp throughput``; ``up to 43 % of web requests/s`` at several levels."""
    first = group[0]
    size = first.effect.short if first.effect is not None else ""
    of = "of" if first.report.better == "higher" else "more"
    of = "the" if first.effect is not None and first.effect.times else of
    if len(group) > 1:
        return f"up to {size} {of} {over_levels(first.report)}"
    return f"{size} {of} {_what(first)}"


def _what(comparison: HeadlineComparison) -> str:
    """The metric in words; its level without the clients' host, which begins the part of the sentence."""
    if not comparison.place:
        return metric_phrase(comparison.report)
    return re.sub(r" \(\)", "", re.sub(r"client=[\w.-]+(, )?|, client=[\w.-]+", "", metric_phrase(comparison.report)))


def _gain(comparison: HeadlineComparison, one: Effect) -> str:
    return f"is {one.short} {one.word} than {display_name(comparison.against)} in {_what(comparison)}"


def _no_cost(analysis: Analysis, place: str = "") -> str:
    """The words for a run, or for the clients in a place, without any comparison that is different."""
    rows = [each.row for each in _baseline_comparisons(analysis) if not place or each.place == place]
    if analysis.equivalence is not None and {row.shown_as for row in rows} == {"equivalent"}:
        return f"every cost is within {margin(analysis.equivalence)}"
    return "no cost could be shown"


def _counts(analysis: Analysis, cells: Sequence[MatrixCosts]) -> str:
    """``of 9 comparisons 4 differ, 3 are within ±3 % and 2 are undecided``; ``the 2 comparisons are undecided``.

    With a ladder, whose costs are against other environments, the baseline is named.
    """
    counts = Counter(each.shown_as for each in cells)
    what = "comparison" if len(cells) == 1 else f"{len(cells)} comparisons"
    what += f" with {display_name(analysis.baseline)}" if analysis.ladder else ""
    order = ("different", "equivalent", "inconclusive")
    kinds = [*(each for each in order if each in counts), *(each for each in counts if each not in order)]
    phrases = [_verdict_phrase(analysis, kind, counts[kind]) for kind in kinds]
    if len(kinds) == 1:
        return f"the {what} {phrases[0]}"
    return f"of {what} {_listed([f'{counts[kind]} {phrase}' for kind, phrase in zip(kinds, phrases, strict=True)])}"


def _verdict_phrase(analysis: Analysis, kind: str, count: int) -> str:
    is_, has = ("is", "has") if count == 1 else ("are", "have")
    phrases = {
        "different": "differs" if count == 1 else "differ",
        "equivalent": f"{is_} within {margin(analysis.equivalence or 0.0)}",
        "broke": "broke under the load",
        "inconclusive": f"{is_} undecided",
        "hidden": f"{is_} hidden",
        "few": f"{has} too few blocks",
        "none": f"{has} no complete block",
    }
    return phrases[kind]


def _listed(items: Sequence[str]) -> str:
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else "".join(items)
