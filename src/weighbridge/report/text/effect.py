"""What an environment does to a metric, in words and never with a minus sign."""

from dataclasses import dataclass

from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.report.text.formatting import difference_interval, in_times, percent_short, percent_text
from weighbridge.statistics import Interval


@dataclass(frozen=True, slots=True)
class Effect:
    """The size of a cost or of a gain."""

    amount: str
    """With its interval, positive in the direction of `word`: ``4.5 % [2.0, 7.1]``."""
    short: str
    """Without it, in percent without decimals from 10 on: ``4.5 %``."""
    word: str
    """In which direction the metric differs: slower or faster of a rate, else lower or higher."""
    worse: bool
    times: bool = False
    """Whether the amount is a multiple, as that of a very large cost is."""

    @property
    def relation(self) -> str:
        """What stands after the amount alone: `word`, or ``as high`` where it is a multiple of the baseline's."""
        return "as high" if self.times and self.word == "higher" else self.word

    @property
    def interval(self) -> str:
        """The interval alone: ``[2.0, 7.1]``."""
        return self.amount[self.amount.find("[") :] if "[" in self.amount else ""


def effect(report: MetricReport, row: Comparison) -> Effect | None:
    """Return what a comparison found; None where it has no cost, or too few blocks for one."""
    cost = row.cost
    if cost is None or row.few:
        return None
    percent = cost.percent
    if percent is None:
        more = cost.typical >= 0
        interval = cost.interval if more else _turned(cost.interval)
        amount = difference_interval(interval, report.unit).removeprefix("+")
        worse = more == (cost.better == "lower")
        return Effect(amount, amount.partition(" [")[0], "higher" if more else "lower", worse)
    worse = percent.estimate >= 0
    amount = percent_text(percent if worse else _turned(percent), cost.blocks)
    short, direction = percent_short(percent.estimate), _direction(report, worse=worse)
    return Effect(amount, short, direction, worse, times=in_times(percent.estimate))


def _direction(report: MetricReport, *, worse: bool) -> str:
    if report.better == "higher" and report.unit.endswith("/s"):
        return "slower" if worse else "faster"
    return "lower" if worse == (report.better == "higher") else "higher"


def _turned(interval: Interval) -> Interval:
    """The same seen from the other side: a gain as a positive number."""
    return Interval(-interval.estimate, -interval.high, -interval.low)
