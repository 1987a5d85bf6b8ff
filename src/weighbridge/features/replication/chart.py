"""The chart of a published table: published and measured comparisons with their intervals."""

import math
from typing import Any

from weighbridge.features.replication.comparison import ComparedTable
from weighbridge.features.replication.words import direction_words, measured_text, published_text, split_rows
from weighbridge.model.level import level_label
from weighbridge.report.charts.base import (
    Canvas,
    Chart,
    MarkStyle,
    colour_of,
    environment_axis,
    interval_chart,
    nominal,
    number_axis,
    shape_of,
)
from weighbridge.statistics import Cost

STYLES = {"published": MarkStyle("#D55E00", "diamond"), "measured": MarkStyle("#0072B2", "circle")}
"""The colours of Okabe and Ito, which differ for colour-blind people too."""
ROW_PX, TICKS = 40, 6


def _points(table: ComparedTable, *, everywhere: bool) -> list[dict[str, Any]]:
    """Return both comparisons of every row for the chart, on the table's own scale; differences in one unit."""
    scale, points = table.source.scale, []
    alone = len({row.published.environment for row in table.rows}) == 1  # then its level is enough
    for row in split_rows(table)[0]:
        own, cost = row.published, row.measured.cost if row.measured else None
        numbers = own.interval
        low, high = (numbers.low, numbers.high) if numbers else (own.effect, own.effect)
        level = level_label(row.published.level)
        name = level if alone and level else row.name
        shown = direction_words(row, everywhere=everywhere)
        points.append(_point(name, "published", (own.effect, low, high), published_text(own), shown))
        if cost is not None and cost.scale == scale and (scale == "ratio" or row.unit == table.source.shown_unit):
            points.append(_point(name, "measured", _limits_of(cost), measured_text(row), shown))
    return [point for point in points if scale == "difference" or point["value"] > 0]


def _limits_of(cost: Cost) -> tuple[float, float, float]:
    """Return the typical cost with its limits; a single block has none."""
    return (cost.typical, cost.low, cost.high) if cost.blocks > 1 else (cost.typical,) * 3


def _point(name: str, source: str, numbers: tuple[float, float, float], text: str, direction: str) -> dict[str, Any]:
    value, low, high = numbers
    return {"environment": name, "source": source, "value": value, "low": low, "high": high, "shown": text,
            "direction": direction}  # fmt: skip


def chart(table: ComparedTable, *, everywhere: bool = False) -> Chart | None:
    """Return the published and measured comparisons of a table with their intervals; None if nothing can be drawn.

    Very wide intervals run out of the chart.
    """
    points = _points(table, everywhere=everywhere)
    if not points:
        return None
    ratio = table.source.scale == "ratio"
    low, high = _limits([point["value"] for point in points], points, ratio=ratio)
    for point in points:
        point["low"], point["high"] = max(point["low"], low), min(point["high"], high)
    title = (
        "ratio to the baseline"
        if ratio
        else f"difference, {'points' if table.source.shown_unit == '%' else table.source.shown_unit}"
    )
    axes = (
        number_axis((low, high), title, TICKS, logarithmic=ratio),
        environment_axis([point["environment"] for point in points]),
    )
    encoded = {
        "y": axes[1].encoding("environment"),
        "yOffset": nominal("source", sort=list(STYLES), scale={"paddingOuter": 0.5}),
        "color": colour_of("source", STYLES),
    }
    tooltip = [nominal("environment"), nominal("source"), nominal("shown", title=title), nominal("direction")]
    return interval_chart(
        Canvas(), axes, points, encoded, tooltip, value="value", none=1.0 if ratio else 0.0, row_px=ROW_PX, size=75,
        shape=shape_of("source", STYLES),
    )  # fmt: skip


def _limits(values: list[float], points: list[dict[str, Any]], *, ratio: bool) -> tuple[float, float]:
    """The range of the axis: every estimate and "no difference" are inside, very wide intervals run out of it."""
    turn, back = (math.log, math.exp) if ratio else (float, float)
    core = [turn(value) for value in values] + [0.0]
    span = max(max(core) - min(core), math.log1p(0.02) if ratio else 1e-9)
    least, most = min(core) - span, max(core) + span
    lows = [turn(point["low"]) for point in points if point["low"] > 0 or not ratio]
    highs = [turn(point["high"]) for point in points if math.isfinite(point["high"])]
    low, high = max(least, min([*core, *lows])), min(most, max([*core, *highs]))
    room = 0.06 * (high - low)
    return back(low - room), back(high + room)
