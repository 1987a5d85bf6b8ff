"""Costs with their intervals: one metric (a forest plot), and the headline metrics in one chart."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.report.charts.base import BAND, BASELINE, ROW_PX, TWO_LINES, Canvas, environment_colour, told
from weighbridge.report.text.formatting import margin, readable_unit
from weighbridge.report.text.metric_names import metric_name, metric_title
from weighbridge.report.text.verdicts import comparison_verdict, cost_text

if TYPE_CHECKING:
    import altair as alt


def _limits(rows: Sequence[tuple[float, float, float]], least: float) -> tuple[float, float]:
    """The range of a cost axis: every estimate is inside, very wide intervals run out of it."""
    core = max([abs(estimate) for estimate, _, _ in rows] + [least])
    lows = [max(low, -3 * core) for _, low, _ in rows]
    highs = [min(high, 3 * core) for _, _, high in rows]
    low, high = min([*lows, -least]), max([*highs, least])
    room = 0.05 * (high - low)
    return low - room, high + room


def _numbers(row: Comparison, scale: str, factor: float) -> tuple[float, float, float] | None:
    """A comparison's cost on the axis (percent, or the readable unit); None of few blocks, or on the other scale."""
    if row.cost is None or row.few or row.cost.scale != scale:
        return None
    interval = row.cost.percent or row.cost.interval
    by = 1.0 if scale == "ratio" else factor
    return interval.estimate * by, interval.low * by, interval.high * by


def _forest_rows(report: MetricReport) -> tuple[str, str, list[tuple[Comparison, tuple[float, float, float]]]]:
    """The scale, the axis title and what is drawn: ratios where there are any, else differences."""
    ratios = any(row.cost is not None and row.cost.scale == "ratio" for row in report.comparisons)
    scale = "ratio" if ratios else "difference"
    unit, factor = readable_unit(report.baseline_value or 0.0, report.unit)
    numbers = [(row, _numbers(row, scale, factor)) for row in report.comparisons]
    title = "cost, % (right of 0 is worse)" if ratios else f"difference, {unit}"
    return scale, title, [(row, each) for row, each in numbers if each is not None]


def forest(analysis: Analysis, report: MetricReport) -> "alt.LayerChart | None":
    """Give the costs of every environment on one metric with their intervals; None where there is no cost.

    The green band is the equivalence margin, the grey one the noise floor.
    """
    import altair as alt

    canvas = Canvas()
    scale, title, rows = _forest_rows(report)
    if not rows:
        return None
    equivalence = 100 * (analysis.equivalence or 0.0) if scale == "ratio" else 0.0
    limits = _limits([numbers for _, numbers in rows], max(equivalence, 1.0) if scale == "ratio" else 1e-9)
    points = [_point(report, row, numbers, limits) for row, numbers in rows]
    x = alt.X("cost:Q", scale=alt.Scale(domain=limits, nice=False), title=title)
    order = [row.environment for row, _ in rows]
    y = alt.Y("environment:N", sort=order, title=None)
    bands = [_band(canvas, x, low, high, colour) for low, high, colour in _bands(report, scale, equivalence, limits)]
    base = canvas.chart(points).encode(y=y, color=environment_colour(analysis, legend=False))
    lines = base.mark_rule(strokeWidth=3).encode(x=_low(x), x2=alt.X2("high:Q"))
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(x=x, tooltip=_tooltip())
    zero = canvas.chart([{"cost": 0}]).mark_rule(color=BASELINE, strokeDash=[4, 3]).encode(x=x)
    return canvas.layered([*bands, zero, lines, dots], ROW_PX * len(rows))


def _low(x: "alt.X") -> "alt.X":
    """The axis of costs for the lower limit."""
    other = x.copy()
    other.shorthand = "low:Q"
    return other


def _tooltip() -> "list[alt.Tooltip]":
    return told("environment:N", "metric:N", "typical:N", "blocks:Q", "verdict:N")


def _point(
    report: MetricReport, row: Comparison, numbers: tuple[float, float, float], limits: tuple[float, float]
) -> dict[str, Any]:
    inside = [min(max(value, limits[0]), limits[1]) for value in numbers]
    return {
        "environment": row.environment, "metric": metric_title(report), "cost": inside[0], "low": inside[1],
        "high": inside[2], "typical": cost_text(row, report.unit), "blocks": row.blocks,
        "lines": _lines(report), "verdict": comparison_verdict(row),
    }  # fmt: skip


def _bands(
    report: MetricReport, scale: str, equivalence: float, limits: tuple[float, float]
) -> list[tuple[float, float, str]]:
    """The bands of the equivalence margin and of the noise floor: from, to, colour."""
    found = [(*_both_ways(equivalence, report), BAND)] if equivalence else []
    noise = _noise(report, scale)
    if noise is not None:
        found.append((*noise, BASELINE))
    return [(max(low, limits[0]), min(high, limits[1]), colour) for low, high, colour in found]


def _both_ways(percent: float, report: MetricReport) -> tuple[float, float]:
    """A ratio's margin on the axis of costs: it is symmetric in the two arms, 1 / (1 + d) to 1 + d."""
    near, far = percent, 100 * (1 - 1 / (1 + percent / 100))
    return (-near, far) if report.better == "higher" else (-far, near)


def _noise(report: MetricReport, scale: str) -> tuple[float, float] | None:
    """The noise floor on the axis of costs, both ways; None where it is not known."""
    if scale == "ratio":
        return None if report.noise_floor is None else _both_ways(100 * report.noise_floor, report)
    factor = readable_unit(report.baseline_value or 0.0, report.unit)[1]
    numbers = _numbers(report.aa, scale, factor) if report.aa else None
    size = max(abs(numbers[1]), abs(numbers[2])) if numbers and report.aa else math.inf
    return (-size, size) if math.isfinite(size) else None


def _band(canvas: Canvas, x: "alt.X", low: float, high: float, colour: str) -> "alt.Chart":
    import altair as alt

    chart = canvas.chart([{"cost": low, "end": high}])
    band: alt.Chart = chart.mark_rect(color=colour, opacity=0.2).encode(x=x, x2=alt.X2("end:Q"))
    return band


def _lines(report: MetricReport) -> str:
    """A metric's title in two lines, for a narrow axis."""
    return f"{report.label}\n{metric_name(report)}"


def overview(analysis: Analysis, *, legend: bool = True) -> "alt.LayerChart | None":
    """Give the costs of every environment on the headline metrics in one chart; None where there is no ratio."""
    import altair as alt

    canvas = Canvas()
    drawn = [
        (report, row, numbers)
        for report in analysis.headlines
        for row in report.comparisons
        if not row.aa and (numbers := _numbers(row, "ratio", 1.0)) is not None
    ]
    if not drawn:
        return None
    limits = _limits([numbers for _, _, numbers in drawn], max(100 * (analysis.equivalence or 0.0), 1.0))
    points = [_point(report, row, numbers, limits) for report, row, numbers in drawn]
    titles = list(dict.fromkeys(_lines(report) for report, _, _ in drawn))
    names = [name for name in analysis.environments if name in {row.environment for _, row, _ in drawn}]
    x = alt.X("cost:Q", scale=alt.Scale(domain=limits, nice=False), title="cost, % (right of 0 is worse)")
    y = alt.Y("lines:N", sort=titles, title=None, axis=alt.Axis(grid=True, tickBand="extent", labelExpr=TWO_LINES))
    offset = alt.YOffset("environment:N", sort=names, scale=alt.Scale(paddingOuter=0.6))
    noise = canvas.chart([
        {"lines": _lines(report), "cost": low, "end": high}
        for report in analysis.headlines
        for low, high, _ in _bands(report, "ratio", 0.0, limits)
    ])  # fmt: skip
    base = canvas.chart(points).encode(y=y, yOffset=offset, color=environment_colour(analysis, names, legend=legend))
    lines = base.mark_rule(strokeWidth=2.5).encode(x=_low(x), x2=alt.X2("high:Q"))
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(x=x, tooltip=_tooltip())
    zero = canvas.chart([{"cost": 0}]).mark_rule(color=BASELINE, strokeDash=[4, 3]).encode(x=x)
    quiet = noise.mark_rect(color=BASELINE, opacity=0.2).encode(x=x, x2=alt.X2("end:Q"), y=y)
    height = max(18 * len(names) + 14, 34) * len(titles)
    return canvas.layered([quiet, zero, lines, dots], height)


def caption(analysis: Analysis, report: MetricReport) -> str:
    """Give what the bands of a forest plot mean, and which environments are not drawn."""
    scale, _, rows = _forest_rows(report)
    drawn = {row.environment for row, _ in rows}
    noise = _noise(report, scale)
    parts = ["grey: noise floor, from the A/A arm"] if rows and noise and noise[0] < noise[1] else []
    if analysis.equivalence and any(row.cost and row.cost.scale == "ratio" for row, _ in rows):
        parts.append(f"green: {margin(analysis.equivalence)} counts as equivalent")
    missing = [row.environment for row in report.comparisons if row.environment not in drawn]
    return "; ".join([*parts, *([f"not drawn: {', '.join(missing)}"] if missing else [])])
