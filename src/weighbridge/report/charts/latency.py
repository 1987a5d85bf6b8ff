"""Latency: every environment's percentiles as one curve, from its merged histogram."""

from typing import TYPE_CHECKING

from weighbridge.analysis.merged_latency import LatencyReport
from weighbridge.analysis.results import Analysis
from weighbridge.report.charts.base import Canvas, environment_colour, told
from weighbridge.report.text.formatting import readable_unit
from weighbridge.report.text.metric_names import metric_words

if TYPE_CHECKING:
    import altair as alt

CURVE_PX = 210
NINES = "format(100 * (1 - 1 / datum.value), datum.value > 900 ? (datum.value > 9e4 ? '.3f' : '.2f') : '.1~f') + ' %'"
"""A Vega expression that gives a place on the axis as a percent."""


def percentile_curve(analysis: Analysis, report: LatencyReport, *, legend: bool = True) -> "alt.LayerChart | None":
    """Give latency over percentile, both logarithmic (so that the tail is seen); None where there are no requests."""
    import altair as alt

    canvas = Canvas()
    points = [(row.environment, percent, seconds) for row in report.rows for percent, seconds in row.curve]
    if not points:
        return None
    unit, factor = readable_unit(min(seconds for _, _, seconds in points if seconds > 0), "s")
    rows = [
        {
            "environment": name,
            "beyond": 100 / (100 - percent),
            "percent": round(percent, 4),
            "value": seconds * factor,
        }
        for name, percent, seconds in points
        if seconds > 0
    ]
    furthest = max(each["beyond"] for each in rows)  # type: ignore[type-var]
    ticks = [value for value in (2, 10, 100, 1000, 10_000, 100_000) if value <= float(furthest)]  # type: ignore[arg-type]
    axis = alt.Axis(values=ticks, labelExpr=NINES, grid=True)
    x = alt.X("beyond:Q", title="percentile", scale=alt.Scale(type="log", nice=False), axis=axis)
    y = alt.Y("value:Q", title=f"{metric_words(report.metric)}, {unit}", scale=alt.Scale(type="log", nice=False))
    names = [row.environment for row in report.rows]
    lines = canvas.chart(rows).mark_line(strokeWidth=2, interpolate="step-after").encode(
        x=x, y=y, color=environment_colour(analysis, names, legend=legend),
        tooltip=[*told("environment:N", "percent:Q"), alt.Tooltip("value:Q", title=unit, format=".4~g")],
    )  # fmt: skip
    return canvas.layered([lines], CURVE_PX)
