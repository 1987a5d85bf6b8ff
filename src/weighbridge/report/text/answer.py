"""The answer to a study's question: the largest cost, its largest step with a ladder, and how much is decided.

It counts the cells of the matrix.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.results import Analysis, Comparison, LadderStep, MetricReport
from weighbridge.model.level import CLIENT
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import level, listed, margin, percent_limits, plural, quantities
from weighbridge.report.text.matrix import MatrixCosts, matrix
from weighbridge.report.text.metric_names import RUN_TIME
from weighbridge.report.text.paths import place_words
from weighbridge.report.text.summary import nothing_sentence, over_levels
from weighbridge.report.text.verdicts import Effect, effect, size_of

MOST_WORDS = 20
"""Words of the answer, without its interval, from which one of its parts is left to the tables."""
NO_STEP = "no single step is significant"
NAMED = 2
"""Environments that are named as equivalent, rather than counted."""
ORDER = ("different", "inconclusive", "equivalent", "broke", "hidden", "few", "none")
"""How a cell is shown, in the order in which the answer counts them."""


@dataclass(frozen=True, slots=True)
class HeadlineComparison:
    """One comparison on a primary metric: the answer can name it."""

    report: MetricReport
    row: Comparison

    @property
    def place(self) -> str:
        """The host of the clients; empty unless the study sweeps it."""
        return self.report.level.value_of(CLIENT) or ""

    @property
    def effect(self) -> Effect | None:
        """The cost in words; None unless it is significant."""
        return effect(self.report, self.row) if self.row.shown_as == "different" else None

    @property
    def cost(self) -> float:
        """The cost in percent, positive is worse; 0 without a percentage, or if it is not significant."""
        percent = self.row.cost.percent if self.row.cost is not None else None
        return percent.estimate if percent is not None and self.effect is not None else 0.0


def answer(analysis: Analysis) -> str:
    """Return the answer to a study's question: the largest cost, its step of the ladder, and how many are decided.

    If that is longer than `MOST_WORDS`, a significant step replaces the numbers, and any other step is left out.
    """
    if not analysis.metrics:
        return nothing_sentence(analysis)
    baseline = display_name(analysis.baseline)
    if analysis.native_only:
        return f"Only {baseline} was measured: there is nothing to compare."
    if analysis.few:
        return "Too few rounds for a verdict: these are the measured values."
    comparisons = _headline_comparisons(analysis)
    if not comparisons:
        return f"No cost could be measured: no round has both {baseline} and another environment."
    cells = [cell for row in matrix(analysis).rows for cell in row.cells if cell is not None]
    named = _named(comparisons)
    if not named:
        return _capital(_no_cost(analysis, cells))
    return _longest(analysis, named, _rest(analysis, cells, named), _gain(comparisons, named))


def _longest(analysis: Analysis, named: Sequence[HeadlineComparison], rest: str, gain: str) -> str:
    """Return as much of the answer as `MOST_WORDS` allow, at least the largest cost."""
    cost, steps = _largest(analysis, named), _steps(analysis, named)
    if steps:
        parts = [f"; {steps}{rest}", rest if steps == NO_STEP else f"; {steps}"]
        least = "" if steps == NO_STEP else f"; {steps}"
    else:
        parts, least = ([f"; {gain}{rest}", f"; {gain}"] if gain else []) + [rest], ""
    interval = f" ({_interval(analysis, named[0])})" if len(named) == 1 else ""
    return f"{cost}{interval}{next((part for part in parts if _fits(f'{cost}{part}.')), least)}."


def _fits(text: str) -> bool:
    return len(text.split()) <= MOST_WORDS


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _headline_comparisons(analysis: Analysis) -> list[HeadlineComparison]:
    """Return the comparisons on primary metrics that have a result."""
    rows = [HeadlineComparison(report, row) for report in analysis.headlines for row in report.comparisons]
    return [each for each in rows if not each.row.aa and (each.row.cost is not None or each.row.broke_instead)]


def _named(comparisons: Sequence[HeadlineComparison]) -> list[HeadlineComparison]:
    """Return the costs of the environment that costs most, the largest first; without any cost the largest gain."""
    different = [(each, one) for each in comparisons if (one := each.effect) is not None]
    costs = sorted((each for each, one in different if one.worse), key=lambda each: -each.cost)
    if costs:
        return [each for each in costs if each.row.environment == costs[0].row.environment]
    return sorted((each for each, _ in different), key=lambda each: each.cost)[:1]


def _largest(analysis: Analysis, named: Sequence[HeadlineComparison]) -> str:
    """Return ``bridge: TCP throughput is 20% lower``, or for several costs ``bridge costs up to 20% (TCP ...)``."""
    first, size = named[0], named[0].effect
    name, what = display_name(first.row.environment), over_levels(first.report)
    where = first.report.level.without(CLIENT).label
    place = place_words(analysis.paths.place(first.place)) if first.place else ""
    if size is None:
        return f"{name}: {what} changes significantly"
    if len(named) > 1:
        most = (
            f"takes up to {size.short} as long"
            if size.times and size.word == "slower"
            else f"costs up to {size.short}"
        )
        return f"{name} {most} ({', '.join(filter(None, (what, where, place)))})"
    about = ", ".join(filter(None, (where, place)))
    return f"{name}{_direction(size, what)}{f' ({about})' if about else ''}"


def _direction(size: Effect, what: str) -> str:
    """Return the rest of a sentence that begins with an environment: `` takes 15% longer``."""
    if size.word in ("slower", "faster"):
        word = {"slower": "longer", "faster": "less time", "as long": "as long"}[size.relation]
        return f" takes {size.short} {word}{'' if what == RUN_TIME else f' ({what})'}"
    return f": {what} is {size.short} {size.relation}"


def _interval(analysis: Analysis, named: HeadlineComparison) -> str:
    """Return the interval of a cost: ``95% interval: 13.2% to 17.6%``."""
    cost, report = named.row.cost, named.report
    if cost is None:
        return ""
    size = size_of(cost.penalty)
    if cost.scale == "ratio":
        limits = percent_limits(size)
    else:
        limits = quantities((size.low, size.high), difference_unit(report.unit), " to ")
    return f"{level(analysis.confidence)} interval: {limits}"


def _gain(comparisons: Sequence[HeadlineComparison], named: Sequence[HeadlineComparison]) -> str:
    """Return ``docker is up to 66% faster``: the largest gain of another environment than the one that costs most."""
    gains = [(each, one) for each in comparisons if (one := each.effect) is not None and not one.worse]
    if not gains or not named[0].effect or not named[0].effect.worse:
        return ""
    most, size = min(gains, key=lambda pair: pair[0].cost)
    environment = most.row.environment
    if environment == named[0].row.environment:
        return ""
    several = sum(each.row.environment == environment for each, _ in gains) > 1
    gain = f"{'up to ' if several else ''}{size.short} {size.word}"
    if size.word == "faster":
        return f"{display_name(environment)} is {gain}"
    return f"{display_name(environment)}: {over_levels(most.report)} is {gain}"


# -- the ladder ------------------------------------------------------------------------------------


def _steps(analysis: Analysis, named: Sequence[HeadlineComparison]) -> str:
    """Return which step is most of the largest cost that the ladder divides; empty if it divides none."""
    for each in named:
        steps = _chain(analysis, each)
        if len(steps) < 2 or each.row.cost is None or not each.effect:
            continue
        shown = [(step, one) for step in steps if (one := _shown(each.report, step)) is not None]
        if not shown:
            return NO_STEP
        step, one = max(shown, key=lambda pair: abs(_log(pair[0].row)))
        share = "most" if abs(_log(step.row)) > abs(_log(each.row)) / 2 else "part"
        place = f" ({place_words(analysis.paths.place(each.place))})" if each.place else ""
        of = "it" if each is named[0] else f"the {each.effect.short} in {over_levels(each.report)}{place}"
        own = step.row.environment == each.row.environment
        what = f"its step from {display_name(step.row.against)}" if own else display_name(step.row.environment)
        return f"{share} of {of} is {what} ({one.short})"
    return ""


def _chain(analysis: Analysis, comparison: HeadlineComparison) -> list[LadderStep]:
    """Return the steps from an environment down to the baseline on one metric; none if they do not lead there."""
    ladder = next((each for each in analysis.ladder if each.report is comparison.report), None)
    steps = {step.row.environment: step for step in ladder.steps} if ladder else {}
    chain: list[LadderStep] = []
    name = comparison.row.environment
    while name in steps and len(chain) < len(steps):
        chain.append(steps[name])
        name = steps[name].row.against
    return chain if name == analysis.baseline else []


def _shown(report: MetricReport, step: LadderStep) -> Effect | None:
    """Return the cost of a significant step; None for any other."""
    one = effect(report, step.row) if step.row.shown_as == "different" else None
    return one if one is not None and one.worse else None


def _log(row: Comparison) -> float:
    """Return a cost's size on the scale on which steps add up."""
    if row.cost is None:
        return 0.0
    return math.log(row.cost.typical) if row.cost.scale == "ratio" else row.cost.typical


# -- how many are decided --------------------------------------------------------------------------


def _rest(analysis: Analysis, cells: Sequence[MatrixCosts], named: Sequence[HeadlineComparison]) -> str:
    """Return the end of the answer: the other environments if all are equivalent, else the number of each verdict."""
    others = [cell for cell in cells if not any(row is item.row for _, row in cell.rows for item in named)]
    if not others:
        return ""
    names = dict.fromkeys(cell.environment for cell in others)
    mine = named[0].row.environment
    if {cell.shown_as for cell in others} == {"equivalent"} and mine not in names and len(names) <= NAMED:
        return f"; {listed([*map(display_name, names)])} {_verdict_phrase(analysis, 'equivalent', len(names))}"
    return f". {_capital(_counts(analysis, cells))}"


def _no_cost(analysis: Analysis, cells: Sequence[MatrixCosts]) -> str:
    """Return the answer of a run without any cost or gain."""
    if analysis.equivalence is not None and {cell.shown_as for cell in cells} == {"equivalent"}:
        return f"every cost is within {margin(analysis.equivalence)}."
    return f"no cost is significant: {_counts(analysis, cells)}{_blocks(analysis, cells)}."


def _blocks(analysis: Analysis, cells: Sequence[MatrixCosts]) -> str:
    """Return `` after 12 rounds`` for undecided costs; empty if the sentence on the control has the number."""
    rows = [row for cell in cells if cell.shown_as == "inconclusive" for _, row in cell.rows if row.cost is not None]
    if analysis.trust.trusted is True or not rows:
        return ""
    least, most = min(row.blocks for row in rows), max(row.blocks for row in rows)
    return f" after {plural(most, 'round') if least == most else f'{least} to {most} rounds'}"


def _counts(analysis: Analysis, cells: Sequence[MatrixCosts]) -> str:
    """Return ``4 of 9 comparisons are significant, 2 are undecided``; ``both comparisons are undecided``.

    Comparisons within the margin are counted only if none is undecided.
    """
    counts = Counter(each.shown_as for each in cells)
    kinds = [kind for kind in ORDER if kind in counts]
    if len(kinds) == 1:
        every = {1: "the comparison", 2: "both comparisons"}.get(len(cells), f"all {len(cells)} comparisons")
        return f"{every} {_verdict_phrase(analysis, kinds[0], len(cells))}"
    if "inconclusive" in counts and len(kinds) > 2:
        kinds = [kind for kind in kinds if kind != "equivalent"]
    first, *others = [f"{counts[kind]} {{}}{_verdict_phrase(analysis, kind, counts[kind])}" for kind in kinds]
    return ", ".join([first.format(f"of {len(cells)} comparisons "), *(each.format("") for each in others)])


def _verdict_phrase(analysis: Analysis, kind: str, count: int) -> str:
    is_, has = ("is", "has") if count == 1 else ("are", "have")
    phrases = {
        "different": f"{is_} significant",
        "equivalent": f"{is_} within {margin(analysis.equivalence or 0.0)}",
        "broke": f"{is_} overloaded",
        "inconclusive": f"{is_} undecided",
        "hidden": f"{is_} hidden by a bottleneck",
        "few": f"{has} too few rounds",
        "none": f"{has} no complete round",
    }
    return phrases[kind]
