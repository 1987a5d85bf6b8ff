"""One comparison in words: its verdict, its cost, what hides it, and what broke instead."""

from weighbridge.analysis.bottleneck import Bottleneck
from weighbridge.analysis.overload import Broke
from weighbridge.analysis.results import Comparison
from weighbridge.model.flag import FlagCode
from weighbridge.report.text.formatting import (
    SPACE,
    TOO_FEW,
    Shown,
    difference_interval,
    percent_text,
    plain,
    quantity,
)

HIDDEN = (
    "hidden: both sides met the same limit, which gives both the same result whatever the environment costs; the rate"
    " limit of a testbed's cable or of netns caps the rate and adds no delay"
)
"""What the verdict means."""

LIMITS = {
    FlagCode.CABLE: "the cable",
    FlagCode.ASKED_RATE: "the rate that was asked for",
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

    A cost is not resolved where either side is not; of few blocks only the environment's own values are shown.
    """
    names = [row.environment] if row.few else row.unresolved
    return resolved_text(_verdict(row), names[0], row) if names else _verdict(row)


def _verdict(row: Comparison) -> str:
    if row.aa:
        return "A/A arm"
    if row.broke_instead:
        return "broke"
    if row.cost is None:
        return "not measured"
    if row.few:
        return TOO_FEW
    if row.hidden:
        return f"hidden: {bottleneck_words(row.hidden)}"
    return f"{row.verdict} (exploratory)" if row.exploratory else row.verdict


def bottleneck_words(limit: Bottleneck) -> str:
    """Return what both sides met: ``both limited by the cable (99 % of 100 Mbit/s)``."""
    what = "its CPU" if limit.rate is None else quantity(limit.rate, limit.unit)
    mostly = ", mostly" if limit.mixed else ""
    return f"both limited{mostly} by {LIMITS[limit.code]} ({plain(100 * limit.share, 2)}{SPACE}% of {what})"


def broke_count(broke: Broke) -> str:
    """Return how many trials broke: ``broke 3 of 10``."""
    return f"broke {broke.trials} of {broke.of}"


def broke_instead(row: Comparison) -> str:
    """Return what stands where the cost would: ``broke 10 of 10``; empty where there is a cost or neither broke."""
    told = [f"{'' if each is row.broke else f'{each.environment} '}{broke_count(each)}" for each in row.broke_instead]
    return ", ".join(told)


def cost_text(row: Comparison, unit: str, shown_in: Shown | None = None) -> str:
    """Return a comparison's cost with its interval, in percent or (without a ratio) in the metric's unit.

    ``shown_in`` is the unit of its column's differences. Of few blocks it says only that they are. Where a side broke
    in every block that stands where the cost would.
    """
    cost = row.cost
    if cost is None:
        return broke_instead(row) or "–"
    if row.few:
        return TOO_FEW
    percent = cost.percent
    if percent is not None:
        return percent_text(percent, cost.blocks)
    return difference_interval(cost.interval, unit, shown_in)
