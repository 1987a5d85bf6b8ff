"""Latency: every environment's percentiles as one curve, from its merged histogram."""

from typing import Any

from weighbridge.analysis.latency import LatencyReport
from weighbridge.analysis.results import Analysis
from weighbridge.report.charts.base import (
    NINES,
    Canvas,
    Chart,
    environment_colour,
    environment_shape,
    layer,
    nominal,
    quantitative,
)
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import readable_unit
from weighbridge.report.text.metric_names import metric_words

CURVE_PX = 210


def percentile_curve(analysis: Analysis, report: LatencyReport) -> Chart | None:
    """Return latency over percentile, both logarithmic to show the tail; None without requests."""
    canvas = Canvas()
    points = [(row.environment, percent, seconds) for row in report.rows for percent, seconds in row.curve]
    if not points:
        return None
    unit, factor = readable_unit(min(seconds for _, _, seconds in points if seconds > 0), "s")
    rows: list[dict[str, Any]] = [
        {
            "environment": display_name(name),
            "beyond": 100 / (100 - percent),
            "percent": round(percent, 4),
            "value": seconds * factor,
        }
        for name, percent, seconds in points
        if seconds > 0
    ]
    furthest = max(each["beyond"] for each in rows)
    ticks = [value for value in (2, 10, 100, 1000, 10_000, 100_000) if value <= furthest]
    scale, axis = {"type": "log", "nice": False}, {"values": ticks, "labelExpr": NINES, "grid": True}
    names = [row.environment for row in report.rows]
    encoded = {
        "x": quantitative("beyond", title="percentile", scale=scale, axis=axis),
        "y": quantitative("value", title=f"{metric_words(report.metric)}, {unit}", scale=scale),
        "color": environment_colour(analysis, names),
        "tooltip": [
            nominal("environment"), quantitative("percent"), quantitative("value", title=unit, format=".4~g")
        ],
    }  # fmt: skip
    lines = layer(canvas.rows(rows), "line", {"strokeWidth": 2, "interpolate": "step-after"}, **encoded)
    by_tick = {
        (row["environment"], tick): row
        for row in reversed(rows)
        for tick in ticks
        if row["beyond"] >= tick
    }  # fmt: skip
    style = {"filled": True, "size": 45, "opacity": 1}
    marks = layer(
        canvas.rows([*by_tick.values()]), "point", style, **encoded, shape=environment_shape(analysis, names)
    )
    return canvas.layered([lines, marks], CURVE_PX)
