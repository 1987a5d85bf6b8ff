"""Costs with their intervals: one metric (a forest plot), and the headline metrics in one chart."""

from collections.abc import Sequence
from typing import Any

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.report.charts.base import (
    BAND,
    BASELINE,
    ROW_PX,
    WIDE,
    Canvas,
    Chart,
    environment_axis,
    environment_colour,
    environment_shape,
    interval_chart,
    layer,
    nominal,
    number_axis,
    quantitative,
    title_axis,
)
from weighbridge.report.text.environments import display_name, join_names
from weighbridge.report.text.formatting import margin
from weighbridge.report.text.metric_names import difference_unit_of, metric_title
from weighbridge.report.text.verdicts import comparison_verdict, cost_text

FAR = 1000.0
"""Percent: a cost beyond it does not stretch the axis of the others, if there are any."""


def cost_limits(rows: Sequence[tuple[float, float, float]], least: float) -> tuple[float, float]:
    """Return the range of a cost axis: every estimate is inside, very wide intervals run out of it."""
    core = max([abs(estimate) for estimate, _, _ in rows] + [least])
    lows = [max(low, -3 * core) for _, low, _ in rows]
    highs = [min(high, 3 * core) for _, _, high in rows]
    low, high = min([*lows, -least]), max([*highs, least])
    room = 0.05 * (high - low)
    return low - room, high + room


def on_one_scale(rows: Sequence[Comparison], unit: str) -> tuple[str, str, list[tuple[float, float, float] | None]]:
    """Return the scale of costs in one chart, the unit of differences, and `axis_numbers` of each cost.

    These are ratios if there are any, else differences.
    """
    scale = "ratio" if any(row.cost is not None and row.cost.scale == "ratio" for row in rows) else "difference"
    shown, factor = difference_unit_of(rows, unit)
    return scale, shown, [axis_numbers(row, scale, factor) for row in rows]


def axis_numbers(row: Comparison, scale: str, factor: float) -> tuple[float, float, float] | None:
    """Return a cost on the axis (percent, or the readable unit); None of few blocks, or on the other scale.

    Positive is worse.
    """
    if row.cost is None or row.few or row.cost.scale != scale:
        return None
    cost, by = row.cost.penalty, 1.0 if scale == "ratio" else factor
    return cost.estimate * by, cost.low * by, cost.high * by


WORSE = "right of 0 is worse, left is better"
"""The directions of costs and gains on a horizontal axis, where a gain is a negative cost."""


def cost_axis_title(scale: str, unit: str, way: str = WORSE) -> str:
    """Return the title of an axis of costs: ``cost, % (right of 0 is worse, left is better)``."""
    return f"cost, {'%' if scale == 'ratio' else difference_unit(unit)} ({way})"


def _forest_rows(report: MetricReport) -> tuple[str, str, list[tuple[Comparison, tuple[float, float, float]]]]:
    """Return the scale, the axis title and the rows to draw: ratios if there are any, otherwise differences."""
    scale, unit, numbers = on_one_scale(report.comparisons, report.unit)
    drawn = zip(report.comparisons, numbers, strict=True)
    return scale, cost_axis_title(scale, unit), [(row, each) for row, each in drawn if each is not None]


def forest(analysis: Analysis, report: MetricReport) -> Chart | None:
    """Return the costs of every environment on one metric with their intervals; None without any cost.

    The green band is the equivalence margin, the grey band the noise floor.
    """
    canvas = Canvas()
    scale, title, rows = _forest_rows(report)
    if not rows:
        return None
    equivalence = 100 * (analysis.equivalence or 0.0) if scale == "ratio" else 0.0
    limits = cost_limits([numbers for _, numbers in rows], max(equivalence, 1.0) if scale == "ratio" else 1e-9)
    points = [_point(report, row, numbers, limits) for row, numbers in rows]
    axes = number_axis(limits, title), environment_axis([row.environment for row, _ in rows])
    x = axes[0].encoding("cost")
    bands = [
        layer(canvas.rows([{"cost": low, "end": high}]), "rect", _shade(colour), x=x, x2={"field": "end"})
        for low, high, colour in _bands(report, scale, equivalence, limits)
    ]
    encoded = {"y": axes[1].encoding("environment"), "color": environment_colour(analysis)}
    return interval_chart(
        canvas, axes, points, encoded, TOOLTIP, row_px=ROW_PX, under=bands, stroke=3, size=90,
        shape=environment_shape(analysis),
    )  # fmt: skip


TOOLTIP = [nominal("environment"), nominal("metric"), nominal("typical"), quantitative("blocks"), nominal("verdict")]


def kept_inside(value: float, limits: tuple[float, float]) -> float:
    """Return the value, or the limit of an axis that it is beyond."""
    return min(max(value, limits[0]), limits[1])


def interval_inside(numbers: Sequence[float], limits: tuple[float, float]) -> dict[str, Any]:
    """Return the fields of a cost with its interval, as far as they are inside of an axis."""
    cost, low, high = (kept_inside(value, limits) for value in numbers)
    return {"cost": cost, "low": low, "high": high}


def _shade(colour: str) -> dict[str, Any]:
    return {"color": colour, "opacity": 0.2}


def _point(
    report: MetricReport, row: Comparison, numbers: tuple[float, float, float], limits: tuple[float, float]
) -> dict[str, Any]:
    return {
        "environment": display_name(row.environment), "metric": metric_title(report),
        **interval_inside(numbers, limits), "typical": cost_text(row, report.unit), "blocks": row.blocks,
        "verdict": comparison_verdict(row),
    }  # fmt: skip


def _bands(
    report: MetricReport, scale: str, equivalence: float, limits: tuple[float, float]
) -> list[tuple[float, float, str]]:
    """Return the bands of the equivalence margin and of the noise floor: from, to, colour."""
    bands = [(*_both_ways(equivalence, report), BAND)] if equivalence else []
    noise = _noise(report, scale)
    if noise is not None:
        bands.append((*noise, BASELINE))
    return [(max(low, limits[0]), min(high, limits[1]), colour) for low, high, colour in bands]


def _both_ways(percent: float, report: MetricReport) -> tuple[float, float]:
    """Return a ratio's margin on the axis of costs: it is symmetric in the two arms, 1 / (1 + d) to 1 + d."""
    near, far = percent, 100 * (1 - 1 / (1 + percent / 100))
    return (-near, far) if report.better == "higher" else (-far, near)


def noise_on_axis(report: MetricReport, scale: str, factor: float) -> tuple[float, float] | None:
    """Return the noise floor on the axis of costs in both directions; None if it is unknown on this scale.

    `factor` turns the metric's unit into the readable one of differences.
    """
    if report.noise is None or (scale == "ratio") != (report.noise_floor is not None):
        return None
    by = 1.0 if scale == "ratio" else factor
    return report.noise[0] * by, report.noise[1] * by


def _noise(report: MetricReport, scale: str) -> tuple[float, float] | None:
    return noise_on_axis(report, scale, difference_unit_of(report.comparisons, report.unit)[1])


def overview(analysis: Analysis) -> Chart | None:
    """Return the costs of every environment on the headline metrics in one chart; None without any ratio."""
    canvas = Canvas()
    drawn = [
        (report, row, numbers)
        for report in analysis.headlines
        for row in report.comparisons
        if not row.aa and (numbers := axis_numbers(row, "ratio", 1.0)) is not None
    ]
    if not drawn:
        return None
    near = [numbers for _, _, numbers in drawn if abs(numbers[0]) <= FAR]
    least = max(100 * (analysis.equivalence or 0.0), 1.0)
    limits = cost_limits(near or [numbers for _, _, numbers in drawn], least)
    beyond = "; marks at the edge lie beyond it" if 0 < len(near) < len(drawn) else ""
    points = [_point(report, row, numbers, limits) for report, row, numbers in drawn]
    titles = list(dict.fromkeys(metric_title(report) for report, _, _ in drawn))
    names = [name for name in analysis.environments if name in {row.environment for _, row, _ in drawn}]
    axes = number_axis(limits, cost_axis_title("ratio", "", f"{WORSE}{beyond}"), WIDE), title_axis(titles)
    x, y = axes[0].encoding("cost"), axes[1].encoding("metric")
    offset = nominal("environment", sort=[display_name(name) for name in names], scale={"paddingOuter": 0.6})
    noise = canvas.rows([
        {"metric": metric_title(report), "cost": low, "end": high}
        for report in analysis.headlines
        if metric_title(report) in titles
        for low, high, _ in _bands(report, "ratio", 0.0, limits)
    ])  # fmt: skip
    encoded = {"y": y, "yOffset": offset, "color": environment_colour(analysis, names)}
    quiet = layer(noise, "rect", _shade(BASELINE), x=x, x2={"field": "end"}, y=y)
    row_px = 18 * len(names) + 14
    shape = environment_shape(analysis, names)
    return interval_chart(canvas, axes, points, encoded, TOOLTIP, row_px=row_px, under=[quiet], shape=shape)


def caption(analysis: Analysis, report: MetricReport) -> str:
    """Return what the bands of a forest plot mean, and which environments are not drawn."""
    scale, _, rows = _forest_rows(report)
    drawn = {row.environment for row, _ in rows}
    noise = _noise(report, scale)
    parts = ["grey: noise floor, from the control"] if rows and noise and noise[0] < noise[1] else []
    if analysis.equivalence and any(row.cost and row.cost.scale == "ratio" for row, _ in rows):
        parts.append(f"green: {margin(analysis.equivalence)} counts as equivalent")
    missing = [row.environment for row in report.comparisons if row.environment not in drawn]
    return "; ".join([*parts, *([f"not drawn: {join_names(missing)}"] if missing else [])])
