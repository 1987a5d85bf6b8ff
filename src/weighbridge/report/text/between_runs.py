"""By what costs changed between two runs, in words. Shared by the terminal, the page and Markdown."""

from weighbridge.analysis.between_runs import ChangeRow, MetricChanges, NoChange, OwnValues, RunPair
from weighbridge.analysis.comparisons import difference_unit
from weighbridge.report.text.formatting import (
    TOO_FEW,
    Shown,
    difference_interval,
    margin,
    percent_interval,
    quantity,
    share,
)
from weighbridge.report.text.metric_names import metric_phrase
from weighbridge.report.text.units import value_unit
from weighbridge.statistics import Interval
from weighbridge.statistics.between import Change
from weighbridge.statistics.verdicts import ALPHA

WHY_NO_CHANGE = {
    NoChange.NO_COST: "not measured in both", NoChange.BROKE: "broke", NoChange.FEW: TOO_FEW,
    NoChange.UNIT: "measured in other units",
}  # fmt: skip
"""What stands where a change would."""
HOW_TO_READ = (
    "A change is the cost ratio of the second run by that of the first: positive is worse. Blocks of two runs are"
    " independent, so its interval is wider than those of the two costs. No block holds what differs between two"
    " sessions; verdicts allow for it, and for the noise floors of both runs."
)


def change_amount(row: ChangeRow, unit: str) -> str:
    """Return a change with its 95 % interval, positive is worse: ``9.1 % [7.0, 11.2]``."""
    if row.change is None:
        return "–"
    return TOO_FEW if row.few else _amount(row.change.worsening, row.change, unit)


def change_verdict(row: ChangeRow) -> str:
    """Return the verdict as people read it."""
    if row.aa:
        return "A/A arm"
    if row.unknown is not None:
        return WHY_NO_CHANGE[row.unknown]
    if row.few:
        return TOO_FEW
    exploratory = row.change is not None and row.change.exploratory and row.verdict != "hidden"
    return f"{row.verdict} (exploratory)" if exploratory else row.verdict


def shown_as(row: ChangeRow) -> str:
    """Return what colours go by: the verdict, or "aa", "few", "broke" where that says more."""
    if row.aa:
        return "aa"
    if row.unknown is not None:
        return "broke" if row.unknown is NoChange.BROKE else "few"
    return "few" if row.few else row.verdict


def change_sentence(metric: MetricChanges, row: ChangeRow, first: str, second: str, baseline: str) -> str:
    """Return one change as a sentence, with what took a verdict from it.

    ``bridge: tcp throughput against native is 9.1 % [7.0, 11.2] slower in B than in A - different``
    """
    what = f"{row.environment}: {metric_phrase(metric.before)} against {baseline}"
    if row.change is None or row.few:
        return f"{what}: {change_verdict(row)}"
    if row.verdict == "hidden":
        where = " and ".join(
            letter for letter, side in ((first, row.before), (second, row.after)) if side.verdict == "hidden"
        )
        return f"{what}: hidden, as both sides met the same limit in {where}"
    verdict = change_verdict(row)
    if row.verdict == "equivalent" and row.change.margin is not None:
        amount = _amount(row.change.worsening, row.change, metric.before.unit)
        return (
            f"{what} is the same in {second} as in {first} within {margin(row.change.margin)} ({amount}) - {verdict}"
        )
    amount, word = change_effect(metric, row)
    why = f"; {reason}" if (reason := why_inconclusive(row, metric.before.unit)) else ""
    return f"{what} is {amount} {word} in {second} than in {first} - {verdict}{why}"


def change_effect(metric: MetricChanges, row: ChangeRow) -> tuple[str, str]:
    """Return the amount of a change, positive in the direction of the word, and the word: slower, higher, ..."""
    change, report = row.change, metric.before
    if change is None:
        return "–", ""
    worse = change.worsening.estimate >= 0
    side = change.worsening if worse else _turned(change.worsening)
    if change.scale == "ratio" and report.better == "higher" and report.unit.endswith("/s"):
        word = "slower" if worse else "faster"
    else:
        word = "lower" if worse == (report.better == "higher") else "higher"
    return _amount(side, change, report.unit).removeprefix("+"), word


def why_inconclusive(row: ChangeRow, unit: str) -> str:
    """Return what took the verdict "different" from a change whose own interval excludes none; empty otherwise."""
    change = row.change
    if change is None or row.aa or row.verdict != "inconclusive":
        return ""
    if row.untrusted:
        return "one of the runs is not trusted"
    nothing = 1.0 if change.scale == "ratio" else 0.0
    if change.low <= nothing <= change.high:
        return ""
    reasons = (
        (not change.excludes_no_change, f"two sessions of the same may differ by {margin(change.allowance)}"),
        (change.within_noise, f"within the noise floors of both runs together ({floor_words(change, unit)})"),
        (row.adjusted_p is not None and row.adjusted_p > ALPHA, "not after the correction for many comparisons"),
    )
    return next((words for holds, words in reasons if holds), "")


def floor_words(change: Change, unit: str) -> str:
    """Return both runs' noise floors together: ``±1.9 %``, or in the metric's unit."""
    if change.floor is None:
        return "not known"
    if change.scale == "ratio":
        return share(change.floor)
    return f"±{quantity(change.floor, difference_unit(unit))}"


def pair_answer(pair: RunPair, first: str, second: str) -> str:
    """Return what the comparison of two runs comes to, of the headline metrics, in one sentence."""
    rows = [(metric, row) for metric in pair.headlines for row in metric.rows if not row.aa]
    decided = [each for each in rows if each[1].change is not None and not each[1].few]
    if not decided:
        return f"No cost could be compared between {first} and {second}: too few complete blocks."
    different = [each for each in decided if each[1].verdict == "different"]
    same = sum(row.verdict == "equivalent" for _, row in decided)
    open_ = len(decided) - len(different) - same
    rest = ", ".join(filter(None, [f"{same} equivalent" if same else "", f"{open_} not decided" if open_ else ""]))
    if not different:
        return f"No cost of the headline metrics is shown to have changed from {first} to {second}: {rest}."
    largest = max(different, key=lambda each: abs(_size(each[1])))
    amount, word = change_effect(*largest)
    named = f"{largest[1].environment} {metric_phrase(largest[0].before)} is {amount} {word}"
    count = f"{len(different)} of {len(decided)} costs changed from {first} to {second}"
    end = f"; {rest}" if rest else ""
    return f"{count}{': ' if len(different) == 1 else ', the largest: '}{named}{end}."


def own_values_words(metric: MetricChanges, own: OwnValues) -> tuple[str, str, str]:
    """Return an environment's own values in both runs and the shift between them, positive is worse."""
    before, after = (quantity(each, metric.before.unit, value_unit_of(metric)) for each in (own.before, own.after))
    if own.worsening is None:
        return before, after, "–"
    if own.scale == "ratio":
        return before, after, percent_interval(own.worsening)
    return before, after, difference_interval(own.worsening, metric.before.unit)


def value_unit_of(metric: MetricChanges) -> Shown:
    """Return one unit for a metric's values in both runs."""
    if metric.before.unit != metric.after.unit:
        return value_unit(metric.before)
    return value_unit(metric.before, metric.after)


def _size(row: ChangeRow) -> float:
    return row.change.worsening.estimate if row.change is not None and row.change.scale == "ratio" else 0.0


def _amount(worsening: Interval, change: Change, unit: str) -> str:
    return percent_interval(worsening) if change.scale == "ratio" else difference_interval(worsening, unit)


def _turned(interval: Interval) -> Interval:
    """The same seen from the other side: a gain as a positive number."""
    return Interval(-interval.estimate, -interval.high, -interval.low)
