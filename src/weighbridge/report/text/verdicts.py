"""One comparison in words: its verdict, cost and effect, what hides it, and what broke instead."""

from dataclasses import dataclass, replace

from weighbridge.analysis.bottleneck import Bottleneck
from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.overload import Breakage
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
    percent_short,
    percent_text,
    plain,
    quantity,
    unit_as,
)
from weighbridge.statistics import Cost, Interval

HIDDEN = (
    "hidden: both sides hit the same limit, so their results are equal whatever the environment costs; a rate limit"
    " of a testbed cable or of netns caps the rate and adds no delay"
)
"""What the verdict means."""

LIMITS = {
    FlagCode.CABLE: "the cable",
    FlagCode.ASKED_RATE: "the requested rate",
    FlagCode.GENERATOR: "the load generator",
}
"""What limits a trial so that its environment does not decide the result."""


UNRESOLVED = "not resolved"
"""What stands beside a value that is below what can be resolved."""


def resolved_text(text: str, environment: str, *rows: Comparison) -> str:
    """Return `text` about an environment's value, with `UNRESOLVED` behind it where one of the rows says so."""
    return f"{text}, {UNRESOLVED}" if any(environment in row.unresolved for row in rows) else text


def comparison_verdict(row: Comparison) -> str:
    """Return the verdict as people read it: with "(exploratory)" below ten blocks, none of too few.

    Where a cost is proven that is within the margin, both are said.

    A cost is not resolved where either side is not; of few blocks only the environment's own values are shown.
    """
    names = [row.environment] if row.few else row.unresolved
    return resolved_text(_verdict(row), names[0], row) if names else _verdict(row)


def _verdict(row: Comparison) -> str:
    if row.aa:
        return "control"
    if row.broke_instead:
        return "broke"
    if row.cost is None:
        return "not measured"
    if row.few:
        return TOO_FEW
    if row.hidden:
        return f"hidden: {bottleneck_words(row.hidden)}"
    small = f", small {'cost' if row.cost.worsening.estimate >= 0 else 'gain'} proven" if row.proven else ""
    return f"{verdict_word(row.verdict)}{small}{' (exploratory)' if row.exploratory else ''}"


def verdict_word(verdict: str) -> str:
    """Return a verdict as people read it: ``undecided`` for "inconclusive", the others as they are."""
    return "undecided" if verdict == "inconclusive" else verdict


def open_text(report: MetricReport, row: Comparison) -> str:
    """Return what cost an undecided comparison would have shown in four runs of five, and what would settle it.

    Empty for all others.

    ``a cost of 4.2 % would likely have shown; about 38 blocks (3 min more) would settle it``.
    """
    visible = row.visible
    if visible is None or row.cost is None or row.verdict != "inconclusive":
        return ""
    if row.cost.scale == "ratio":
        size = percent_short(visible.cost)
    else:
        size = quantity(visible.cost, difference_unit(report.unit))
    words = f"a cost of {size} would likely have shown"
    if visible.blocks is None or visible.seconds is None:
        return words
    return f"{words}; about {visible.blocks} blocks ({duration_text(visible.seconds)} more) would settle it"


def duration_text(seconds: float) -> str:
    """A time in large figures: ``40 s``, ``3 min``, ``5 h``."""
    for length_s, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * length_s:
            return f"{round(seconds / length_s)}{SPACE}{unit}"
    return f"{max(1, round(seconds))}{SPACE}s"


def bottleneck_words(limit: Bottleneck) -> str:
    """Return what both sides met: ``both limited by the cable (99 % of 100 Mbit/s)``."""
    what = "its CPU" if limit.rate is None else quantity(limit.rate, limit.unit)
    return f"both limited by {LIMITS[limit.code]} ({plain(100 * limit.share, 2)}{SPACE}% of {what})"


def broke_count(broke: Breakage) -> str:
    """Return how many trials broke: ``broke 3 of 10``."""
    return f"broke {broke.trials} of {broke.of}"


def broke_instead(row: Comparison) -> str:
    """Return what stands where the cost would: ``broke 10 of 10``; empty where there is a cost or neither broke."""
    counts = [
        f"{'' if each is row.broke else f'{display_name(each.environment)} '}{broke_count(each)}"
        for each in row.broke_instead
    ]
    return ", ".join(counts)


def cost_text(row: Comparison, unit: str, shown_in: Shown | None = None) -> str:
    """Return a comparison's cost with its interval, positive is worse: in percent, or in the metric's unit.

    ``shown_in`` is the unit of its column's differences. Of few blocks it says only that they are. Where a side broke
    in every block that stands where the cost would.
    """
    cost = row.cost
    if cost is None:
        return broke_instead(row) or "–"
    if row.few:
        return TOO_FEW
    if cost.scale == "ratio":
        return percent_text(cost.worsening, cost.blocks)
    return difference_interval(cost.worsening, unit, shown_in)


def judged_cost_text(row: Comparison, unit: str, shown_in: Shown | None = None) -> str:
    """Return what `cost_text` does, beside a verdict: within the margin with the interval that proves it.

    ``-1.2 % [-2.8, 0.4] (90 %)``: that of 95 % may reach beyond the margin, and would contradict it.
    """
    if row.cost is None or row.few or not (level := _level(row, row.cost)):
        return cost_text(row, unit, shown_in)
    return f"{percent_text(_judged_by(row, row.cost), row.cost.blocks)}{level}"


# -- what an environment does to a metric, never with a minus sign ---------------------------------


@dataclass(frozen=True, slots=True)
class Effect:
    """The size of a cost or of a gain."""

    amount: str
    """With its interval, positive in the direction of `word`: ``4.5 % [2.0, 7.1]``."""
    short: str
    """Without it, in percent without decimals from 10 on: ``4.5 %``."""
    word: str
    """In which direction the metric differs, by `direction_word`."""
    worse: bool
    times: bool = False
    """Whether the amount is a multiple, as that of a very large cost is."""

    @property
    def relation(self) -> str:
        """What stands after the amount alone: `word`, or ``as long`` where it is a multiple of the baseline's."""
        as_much = {"slower": "as long", "higher": "as high"}
        return as_much.get(self.word, self.word) if self.times and self.worse else self.word

    @property
    def interval(self) -> str:
        """The interval alone: ``[2.0, 7.1]``."""
        return self.amount[self.amount.find("[") :] if "[" in self.amount else ""


def effect(report: MetricReport, row: Comparison) -> Effect | None:
    """Return a comparison's cost in words; None where it has no cost, or too few blocks for one."""
    if row.cost is None or row.few:
        return None
    cost, word = row.cost, direction_word(report, worse=row.cost.worsening.estimate >= 0)
    words = cost_effect(cost, report.unit, word, _judged_by(row, cost))
    return replace(words, amount=f"{words.amount}{_level(row, cost)}")


def _judged_by(row: Comparison, cost: Cost) -> Interval:
    """The interval that the verdict goes by: of one within the margin the narrower one of the one-sided tests."""
    within = cost.two_one_sided_worsening if row.shown_as == "equivalent" else None
    return cost.worsening if within is None else within


def _level(row: Comparison, cost: Cost) -> str:
    """What stands behind an interval that is not at its column's level."""
    by_one_sided = row.shown_as == "equivalent" and cost.two_one_sided is not None
    return f" ({100 * (2 * cost.confidence - 1):.0f}{SPACE}%)" if by_one_sided else ""


def cost_effect(cost: Cost, unit: str, word: str, worsening: Interval | None = None) -> Effect:
    """Return a cost of enough blocks in words; ``word`` says in which direction the metric differs.

    ``worsening``: its interval, where it is not the cost's own.
    """
    worsening = worsening or cost.worsening
    size, worse = size_of(worsening), worsening.estimate >= 0
    if cost.scale == "difference":
        amount = difference_interval(size, unit)
        return Effect(amount, amount.partition(" [")[0], word, worse)
    short = percent_short(size.estimate)
    return Effect(percent_text(size, cost.blocks), short, word, worse, times=in_times(size.estimate))


def size_of(worsening: Interval) -> Interval:
    """Return a cost or a change as it is, a gain seen from the other side: as a positive number."""
    if worsening.estimate >= 0:
        return worsening
    return Interval(-worsening.estimate, -worsening.high, -worsening.low)


SPREADS = ("jitter", "deviation", "stddev")
"""Words in the names of metrics that are in a unit of time, and are no time that something takes."""


def direction_word(report: MetricReport, *, worse: bool) -> str:
    """Return in which direction a metric differs: slower or faster of a rate or a time, else lower or higher."""
    metric = Metric(report.metric, report.unit, report.better)
    return metric_direction(metric, worse=worse, resource_use=report.resource_use)


def metric_direction(metric: Metric, *, worse: bool, resource_use: bool = False) -> str:
    """Return what `direction_word` does, of a metric that a workload measures."""
    if metric.better == "higher":
        speed, words = metric.unit.endswith("/s"), ("lower", "higher")
    else:
        taken = not resource_use and not any(word in metric.name for word in SPREADS)
        speed, words = taken and unit_as("s", metric.unit) is not None, ("higher", "lower")
    return (("slower", "faster") if speed else words)[0 if worse else 1]
