"""One comparison in words: its verdict, cost and effect, the limit that hides it, and overload."""

from dataclasses import dataclass, replace

from weighbridge.analysis.bottleneck import Bottleneck
from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.overload import Breakage
from weighbridge.analysis.remarks import Identical, NoPath, NotAfterHolm, Unproven, WithinNoise
from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.model.flag import FlagCode
from weighbridge.model.measurement import Metric
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import (
    SPACE,
    TOO_FEW,
    Shown,
    difference_interval,
    in_times,
    level,
    margin,
    percent_limit,
    percent_short,
    percent_text,
    percentage,
    plural,
    quantity,
    unit_as,
)
from weighbridge.statistics import Cost, Interval

HIDDEN = (
    "hidden by a bottleneck: both sides reached the same limit, so their results are equal whatever the environment"
    " costs; a rate limit of a testbed cable or of netns caps the rate and adds no delay"
)
"""The meaning of the verdict."""

LIMITS = {
    FlagCode.CABLE: "the cable",
    FlagCode.ASKED_RATE: "the requested rate",
    FlagCode.GENERATOR: "the load generator",
}
"""The limits of a trial at which its environment does not decide the result."""


UNRESOLVED = "not resolved"
"""Shown next to a value that is too small for its meter."""


def resolved_text(text: str, environment: str, *rows: Comparison) -> str:
    """Return `text` about an environment's value, followed by `UNRESOLVED` if one of the rows says so."""
    return f"{text}, {UNRESOLVED}" if any(environment in row.unresolved for row in rows) else text


def comparison_verdict(row: Comparison) -> str:
    """Return the verdict as people read it: with "(exploratory)" below ten rounds, none with too few rounds.

    A significant cost within the margin gets both words. A cost is not resolved if either side is not. With too few
    rounds only the environment's own values are shown.
    """
    names = [row.environment] if row.few else row.unresolved
    return resolved_text(_verdict(row), names[0], row) if names else _verdict(row)


def _verdict(row: Comparison) -> str:
    if row.aa:
        return "control"
    if row.broke_instead:
        return "overloaded"
    if row.cost is None:
        return "not measured"
    if row.few:
        return TOO_FEW
    if row.hidden:
        return f"hidden by a bottleneck: {bottleneck_words(row.hidden)}"
    small = f", but a significant {'cost' if row.cost.penalty.estimate >= 0 else 'gain'}" if row.proven else ""
    return f"{verdict_word(row.verdict, row.cost.margin)}{small}{' (exploratory)' if row.exploratory else ''}"


def verdict_word(verdict: str, margin_: float | None = None) -> str:
    """Return a verdict as people read it: ``significant``, ``within ±3%``, ``undecided``."""
    if verdict == "equivalent" and margin_ is not None:
        return f"within {margin(margin_)}"
    return VERDICTS.get(verdict, verdict)


VERDICTS = {"different": "significant", "inconclusive": "undecided", "hidden": "hidden by a bottleneck"}
"""Verdicts in words; any other is shown as it is."""


WHY = {
    Unproven.code: "control failed",
    NoPath.code: "network path unknown",
    NotAfterHolm.code: "not significant (Holm)",
    WithinNoise.code: "within the noise floor",
    Identical.code: "too few rounds",
}
"""Why a cost is undecided although its interval excludes zero, by the code of its remark; the gravest first."""


def why_undecided(compared: Comparison) -> list[str]:
    """Return the gravest reason, or none."""
    if compared.verdict != "inconclusive" or compared.aa:
        return []
    codes = {remark.code for remark in compared.remarks}
    return [words for code, words in WHY.items() if code in codes][:1]


def reasoned_verdict(row: Comparison) -> str:
    """Return the verdict, and why it is undecided if the interval excludes zero: ``undecided: control failed``."""
    return ": ".join((comparison_verdict(row), *why_undecided(row)))


def open_text(report: MetricReport, row: Comparison) -> str:
    """Return the cost that an undecided comparison detects in four runs of five, and how many rounds would decide it.

    ``a cost of 4.2% or more would probably have been detected; about 38 rounds (3 min more) would decide it``. Empty
    for any other comparison.
    """
    visible = row.visible
    if visible is None or row.cost is None or row.verdict != "inconclusive":
        return ""
    if row.cost.scale == "ratio":
        size = percent_short(visible.cost)
    else:
        size = quantity(visible.cost, difference_unit(report.unit))
    words = f"a cost of {size} or more would probably have been detected"
    if visible.blocks is None or visible.seconds is None:
        return words
    return f"{words}; about {visible.blocks} rounds ({duration_text(visible.seconds)} more) would decide it"


def duration_text(seconds: float) -> str:
    """A time in large figures: ``40 s``, ``3 min``, ``5 h``."""
    for length_s, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * length_s:
            return f"{round(seconds / length_s)}{SPACE}{unit}"
    return f"{max(1, round(seconds))}{SPACE}s"


def bottleneck_words(limit: Bottleneck) -> str:
    """Return the limit that both sides reached: ``both limited by the cable (99% of 100 Mbit/s)``."""
    what = "its CPU" if limit.rate is None else quantity(limit.rate, limit.unit)
    return f"both limited by {LIMITS[limit.code]} ({percentage(100 * limit.share, 2)} of {what})"


def broke_count(broke: Breakage) -> str:
    """Return how many trials were overloaded: ``overloaded in 3 of 10 trials``."""
    return f"overloaded {broke_share(broke)}"


def broke_share(broke: Breakage) -> str:
    """Return the share of overloaded trials alone: ``in 3 of 10 trials``."""
    return f"in {broke.trials} of {plural(broke.total, 'trial')}"


def broke_instead(row: Comparison) -> str:
    """Return the text in place of a cost: ``overloaded in 10 of 10 trials``; empty with a cost or no overload."""
    counts = [
        f"{'' if each is row.broke else f'{display_name(each.environment)} '}{broke_count(each)}"
        for each in row.broke_instead
    ]
    return ", ".join(counts)


def cost_text(row: Comparison, unit: str, shown_in: Shown | None = None) -> str:
    """Return a comparison's cost with its interval, positive is worse: in percent, or in the metric's unit.

    ``shown_in`` is the unit of its column's differences. With too few rounds it says only that they are too few. If a
    side was overloaded in every round, the text says so.
    """
    cost = row.cost
    if cost is None:
        return broke_instead(row) or "–"
    if row.few:
        return TOO_FEW
    if cost.scale == "ratio":
        return percent_text(cost.penalty, cost.blocks)
    return difference_interval(cost.penalty, unit, shown_in)


def judged_cost_text(row: Comparison, unit: str, shown_in: Shown | None = None) -> str:
    """Return what `cost_text` does, for use next to a verdict: within the margin with the interval of that test.

    ``-1.2% [-2.8, 0.4] (90%)``: the 95% interval can reach beyond the margin, and would contradict the verdict.
    """
    if row.cost is None or row.few or not (judged_at := _level(row, row.cost)):
        return cost_text(row, unit, shown_in)
    return f"{percent_text(_judged_by(row, row.cost), row.cost.blocks)}{judged_at}"


# -- what an environment does to a metric, never with a minus sign ---------------------------------


@dataclass(frozen=True, slots=True)
class Effect:
    """The size of a cost or of a gain."""

    amount: str
    """With its interval, positive in the direction of `word`: ``4.5% [2.0, 7.1]``."""
    short: str
    """Without its interval, in percent without decimals from 10 on: ``4.5%``."""
    word: str
    """The direction of the change, from `direction_word`."""
    worse: bool
    times: bool = False
    """Whether the amount is a multiple of the baseline, which a very large cost is."""

    @property
    def relation(self) -> str:
        """The word after the amount alone: `word`, or ``as long`` if the amount is a multiple of the baseline."""
        as_much = {"slower": "as long", "higher": "as high"}
        return as_much.get(self.word, self.word) if self.times and self.worse else self.word

    @property
    def interval(self) -> str:
        """The interval alone: ``[2.0, 7.1]``; empty without one."""
        return "".join(self.amount.partition("[")[1:])


def effect(report: MetricReport, row: Comparison) -> Effect | None:
    """Return a comparison's cost in words; None if it has no cost, or too few rounds for one."""
    if row.cost is None or row.few:
        return None
    cost, word = row.cost, direction_word(report, worse=row.cost.penalty.estimate >= 0)
    words = cost_effect(cost, report.unit, word, _judged_by(row, cost))
    return replace(words, amount=f"{words.amount}{_level(row, cost)}")


def _judged_by(row: Comparison, cost: Cost) -> Interval:
    """Return the interval that decides the verdict: within the margin, the narrower one of the one-sided tests."""
    within = cost.two_one_sided_penalty if row.shown_as == "equivalent" else None
    return cost.penalty if within is None else within


def _level(row: Comparison, cost: Cost) -> str:
    """Return the level of an interval, in brackets, if it is not the level of its column."""
    by_one_sided = row.shown_as == "equivalent" and cost.two_one_sided is not None
    return f" ({level(2 * cost.level - 1)})" if by_one_sided else ""


def cost_effect(cost: Cost, unit: str, word: str, penalty: Interval | None = None) -> Effect:
    """Return a cost of enough rounds in words; ``word`` is the direction of the change.

    ``penalty`` replaces the cost's own interval.
    """
    penalty = penalty or cost.penalty
    size, worse = size_of(penalty), penalty.estimate >= 0
    if cost.scale == "difference":
        amount = difference_interval(size, unit)
        return Effect(amount, amount.partition(" [")[0], word, worse)
    short = percent_short(size.estimate)
    return Effect(percent_text(size, cost.blocks), short, word, worse, times=in_times(size.estimate))


def size_of(penalty: Interval) -> Interval:
    """Return a cost or a change as a positive number: a gain is turned round."""
    if penalty.estimate >= 0:
        return penalty
    return Interval(-penalty.estimate, -penalty.high, -penalty.low)


def open_range(report: MetricReport, row: Comparison) -> str:
    """Return the range of an undecided cost: ``between 117% faster and 28% slower``; empty without an interval."""
    return f"between {' and '.join(ends)}" if (ends := open_ends(report, row)) else ""


def open_ends(report: MetricReport, row: Comparison) -> tuple[str, ...]:
    """Return both limits of a cost with their directions: ``117% faster``, ``28% slower``; empty without any."""
    if row.cost is None or row.few:
        return ()
    return _end(report, row.cost, row.cost.penalty.low), _end(report, row.cost, row.cost.penalty.high)


def _end(report: MetricReport, cost: Cost, end: float) -> str:
    """Return one limit of an interval with its direction: ``28% slower``."""
    word = direction_word(report, worse=end >= 0)
    if cost.scale == "difference":
        return f"{quantity(abs(end), difference_unit(report.unit))} {word}"
    return f"{percent_limit(end)} {word}"


NOT_TIMES = ("latency", "jitter", "deviation", "stddev")
"""Words in the names of metrics that are in a unit of time, but are not the time that the program took."""


def direction_word(report: MetricReport, *, worse: bool) -> str:
    """Return the direction of a change: slower or faster for the time that something took, else higher or lower."""
    metric = Metric(report.metric, report.unit, report.better)
    return metric_direction(metric, worse=worse, resource_use=report.resource_use)


def metric_direction(metric: Metric, *, worse: bool, resource_use: bool = False) -> str:
    """Return the same as `direction_word`, for a metric that a workload measures."""
    if metric.better == "higher":
        return "lower" if worse else "higher"
    time = not resource_use and not any(word in metric.name for word in NOT_TIMES)
    if time and unit_as("s", metric.unit) is not None:
        return "slower" if worse else "faster"
    return "higher" if worse else "lower"
