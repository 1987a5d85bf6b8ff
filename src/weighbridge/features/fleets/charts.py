"""A fleet in charts: its machines in order (a caterpillar plot), and its pairs as a heat map."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.features.fleets.analysis import FleetMetric, Position, RunEffect
from weighbridge.features.fleets.changes import unit_name
from weighbridge.features.fleets.text import amount, distance, distance_text, estimate_text, percent_of
from weighbridge.report.charts.base import (
    BAND,
    BASELINE,
    WIDE,
    Canvas,
    Chart,
    Field,
    MarkStyle,
    NameAxis,
    NumberAxis,
    colour_of,
    interval_chart,
    layer,
    nominal,
    number_axis,
    quantitative,
    shape_of,
)
from weighbridge.report.charts.costs import kept_inside
from weighbridge.report.text.formatting import readable_unit
from weighbridge.statistics import Interval

NAMED_MACHINES = 40
"""Machines whose names are on the axis; of more machines, only the names of outliers."""
ROW_PX, NARROW_ROW_PX = 16, 5
"""Heights of a machine's row with its name, and without."""
OUTLIER = "outlier"
"""The verdict of a machine or a pair that is away from the others."""
STYLES = {"as the others": MarkStyle("#0072B2"), OUTLIER: MarkStyle("#D55E00", "diamond")}
"""How machines are drawn."""
LOW, MIDDLE, HIGH = "#0072B2", "#c9ced6", "#D55E00"
"""Colours of pairs that are better than typical, typical, and worse."""


def caterpillar(metric: FleetMetric) -> Chart | None:
    """Return the machines of a metric, the worst first, with the simultaneous interval of each one's distance.

    The green band is the interval of the typical machine, the grey band the interval of the next machine. An arrow
    marks an interval that continues beyond the axis. None with fewer than two machines.
    """
    positions = metric.positions[::-1]
    if metric.fleet is None or len(positions) < 2:
        return None
    unit, factor = _unit(metric)
    places = [_on_axis(metric, each.at, factor) for each in positions]
    typical = _on_axis(metric, metric.fleet.typical, factor)
    following = _on_axis(metric, metric.fleet.prediction, factor) if metric.fleet.prediction is not None else None
    limits = _limits(places, typical, [following] if following is not None else [])
    points = [_point(metric, each, at, limits) for each, at in zip(positions, places, strict=True)]
    what = "from typical" if metric.is_own_value else "cost"
    axes = (
        number_axis(limits, f"{what}, {unit} (right is worse)", WIDE),
        NameAxis({each.machine: each.machine for each in positions}),
    )
    named = len(positions) <= NAMED_MACHINES
    y = axes[1].encoding("machine")
    encoded = {"y": y if named else {**y, "axis": None}, "color": colour_of("verdict", STYLES)}
    canvas, x = Canvas(), axes[0].encoding("cost")
    bands = [
        layer(
            canvas.rows([{"cost": kept_inside(band.low, limits), "end": kept_inside(band.high, limits)}]),
            "rect", {"color": colour, "opacity": 0.2}, x=x, x2={"field": "end"},
        )
        for band, colour in ((following, BASELINE), (typical, BAND))
        if band is not None and math.isfinite(band.high - band.low)
    ]  # fmt: skip
    bands += _arrows(canvas, points, places, limits, (axes[0], encoded))
    if not named:
        bands += _outlier_names(canvas, points, typical.estimate, axes[0], encoded["y"])
    tooltip = [nominal(each) for each in ("machine", "value", "from the others", "verdict")]
    row_px = ROW_PX if named else NARROW_ROW_PX
    chart = interval_chart(
        canvas, axes, points, encoded, tooltip, row_px=row_px, none=typical.estimate, under=bands,
        stroke=2.5 if named else 1.5, size=60 if named else 20, shape=shape_of("verdict", STYLES),
    )  # fmt: skip
    # the height of rows without names is not that of a line of text
    return chart if named else Chart({**chart.definition, "height": row_px * len(positions)}, row_px * len(positions))


def _arrows(
    canvas: Canvas,
    points: Sequence[Mapping[str, Any]],
    places: Sequence[Interval],
    limits: tuple[float, float],
    on: tuple[NumberAxis, Mapping[str, Field]],
) -> list[Field]:
    """Return the arrows at both ends of the axis, on the rows of intervals that go on there."""
    x, encoded = on[0].encoding("cost"), on[1]
    ends = (
        ("triangle-left", limits[0], [each.low < limits[0] for each in places]),
        ("triangle-right", limits[1], [each.high > limits[1] for each in places]),
    )
    return [
        layer(
            canvas.rows([{**point, "cost": end} for point, goes_on in zip(points, beyond, strict=True) if goes_on]),
            "point", {"shape": shape, "size": 50, "filled": True, "opacity": 1}, x=x, **encoded,
        )
        for shape, end, beyond in ends
        if any(beyond)
    ]  # fmt: skip


def _outlier_names(
    canvas: Canvas, points: Sequence[Mapping[str, Any]], typical: float, x: NumberAxis, y: Field
) -> list[Field]:
    """Return the names of outliers, between their intervals and the others."""
    outliers = [dict(point) for point in points if point["verdict"] == OUTLIER]
    worse, better = ([each for each in outliers if (each["cost"] > typical) is side] for side in (True, False))
    return [
        layer(
            canvas.rows(rows), "text", {"align": align, "dx": dx, "color": HIGH, "fontSize": 11},
            x=x.encoding(end), y=y, text=nominal("machine"),
        )
        for rows, end, align, dx in ((worse, "low", "right", -5), (better, "high", "left", 5))
        if rows
    ]  # fmt: skip


def heat_map(metric: FleetMetric) -> Chart | None:
    """Return the pairs of a metric, clients across and servers down, coloured by distance from the typical pair."""
    counted = [each for each in metric.counted if len(each.run.machines) == 2 and each.effect is not None]
    if metric.fleet is None or not counted:
        return None
    typical = metric.fleet.typical.estimate
    order = [each.machine for each in metric.positions[::-1]]
    order = [*dict.fromkeys([*order, *(name for each in counted for name in each.run.machines)])]
    outliers = {each.machines for each in metric.outlier_pairs}
    unit, factor = _unit(metric)
    cells = [_cell(metric, each, typical, factor, outliers) for each in counted]
    reach = max(1e-9, *(abs(cell["distance"]) for cell in cells))
    canvas, named = Canvas(), len(order) <= NAMED_MACHINES
    across, down = (
        nominal(field, sort=order, scale={"domain": order}, title=title, axis=_names_axis(named, angle))
        for field, title, angle in (("client", "client", -90), ("server", "server", 0))
    )
    scale = {"domain": [-reach, 0, reach], "range": [LOW, MIDDLE, HIGH], "clamp": True, "interpolate": "lab"}
    legend = {"title": f"from typical, {unit}", "orient": "top", "gradientLength": 200}
    colour = quantitative("distance", scale=scale, legend=legend)
    tooltip = [nominal("pair"), nominal("value"), nominal("verdict")]
    table = canvas.rows(cells)
    frames = canvas.rows([cell for cell in cells if cell["verdict"]])
    layers = [
        layer(table, "rect", {}, x=across, y=down, color=colour, tooltip=tooltip),
        layer(frames, "rect", {"filled": False, "stroke": "currentColor", "strokeWidth": 2}, x=across, y=down),
    ]
    return canvas.layered(layers, (18 if named else NARROW_ROW_PX) * len(order) + 40)


def _cell(
    metric: FleetMetric, each: RunEffect, typical: float, factor: float, outliers: Collection[tuple[str, ...]]
) -> dict[str, Any]:
    assert each.effect is not None
    away = each.effect.estimate - typical
    client, server = each.run.machines
    return {
        "client": client, "server": server, "pair": unit_name(each.run.machines),
        "distance": percent_of(metric, away) if metric.scale == "ratio" else away * factor,
        "value": amount(metric, each.effect), "verdict": OUTLIER if each.run.machines in outliers else "",
    }  # fmt: skip


def _names_axis(named: bool, angle: int) -> Field:
    return {"labels": named, "ticks": named, "labelAngle": angle, "labelOverlap": False, "grid": False}


def _unit(metric: FleetMetric) -> tuple[str, float]:
    """Return the unit of the axis, and the factor to multiply distances by."""
    if metric.scale == "ratio" or metric.fleet is None:
        return "%", 1.0
    sizes = [abs(each.at.estimate) for each in metric.positions]
    name, factor = readable_unit(max(sizes, default=0.0), metric.report.unit)
    return difference_unit(name), factor


def _on_axis(metric: FleetMetric, at: Interval, factor: float) -> Interval:
    """Return a place on the axis: a cost, or an own value's distance from the typical one."""
    assert metric.fleet is not None
    away = metric.fleet.typical.estimate if metric.is_own_value else 0.0
    shown = distance(metric, Interval(at.estimate - away, at.low - away, at.high - away))
    by = 1.0 if metric.scale == "ratio" else factor
    return Interval(shown.estimate * by, shown.low * by, shown.high * by)


def _limits(places: Sequence[Interval], typical: Interval, bands: Sequence[Interval]) -> tuple[float, float]:
    """The range of the axis: machines and the typical one's interval are inside, much wider ones run out of it."""
    inside = [each.estimate for each in (*places, typical, *bands)]
    inside += [each for each in (typical.low, typical.high) if math.isfinite(each)]
    low, high = min(inside), max(inside)
    span = max(high - low, 1e-9, 0.01 * max(abs(low), abs(high)))
    lows = [max(each.low, low - 2 * span) for each in (*places, typical, *bands)]
    highs = [min(each.high, high + 2 * span) for each in (*places, typical, *bands)]
    room = 0.03 * (max(highs) - min(lows))
    return min(lows) - room, max(highs) + room


def _point(metric: FleetMetric, each: Position, at: Interval, limits: tuple[float, float]) -> dict[str, Any]:
    inside = [kept_inside(value, limits) for value in (at.estimate, at.low, at.high)]
    return {
        "machine": each.machine, "cost": inside[0], "low": inside[1], "high": inside[2],
        "value": estimate_text(metric, each.at),
        "from the others": distance_text(metric, each.effect.interval) if each.effect is not None else "",
        "verdict": OUTLIER if each.outlier else "as the others",
    }  # fmt: skip
