"""A metric over a rising load: a line and an interval band for each environment, its peak, its errors, its breaks."""

import math
from collections.abc import Sequence
from typing import Any

from weighbridge.analysis.curves import CurvePeak, EnvironmentCurve, LoadSweep, MetricCurve
from weighbridge.analysis.results import Analysis
from weighbridge.report.anchors import trials_id
from weighbridge.report.charts.base import (
    THOUSANDS,
    Canvas,
    Chart,
    Field,
    environment_colour,
    environment_shape,
    layer,
    nominal,
    quantitative,
)
from weighbridge.report.text.curves import (
    broke_words,
    curve_label,
    errors_words,
    level_words,
    next_broke,
    peak_doubt,
)
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import quantity, readable_unit
from weighbridge.report.text.metric_names import load_words
from weighbridge.report.text.verdicts import broke_count
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK

CURVE_PX, LANE_PX = 270, 13
"""The height of the curves, and of each lane above them that marks an environment's errors and breaks."""

ASIDE_PX = 6
"""How far to the left and to the right of a level errors and breaks are marked."""

DECADE = 10.0
"""The span from which levels, and values of metrics for which less is better, get a logarithmic axis."""

BEYOND = 1.5
"""How many times beyond the medians a band can reach; wider bands leave the chart."""

AA_DASHED = nominal("aa", scale={"domain": [False, True], "range": [[1, 0], [6, 4]]}, legend=None)
"""The control is dashed: its grey is next to the baseline's."""

TOOLTIP = [
    nominal("environment"), nominal("at"), nominal("median"), nominal("interval", title="95%"),
    quantitative("blocks", title="rounds"), nominal("broke", title="overloaded"),
]  # fmt: skip


def load_curve(analysis: Analysis, sweep: LoadSweep, metric: MetricCurve) -> Chart:
    """Return a metric against the level of the load, which needs a value; a click on a mark leads to its trials.

    The peak is a ring. In a lane for each environment above the curves, errors begin at a triangle, and a cross is a
    level at which it broke.
    """
    canvas = Canvas()
    unit, factor = readable_unit(_usual(metric), metric.unit)
    rows = [row for curve in metric.curves for row in _rows(analysis, sweep, metric, curve, factor)]
    marked_names = {*sweep.errors, *sweep.broke}
    lanes = [display_name(curve.environment) for curve in metric.curves if curve.environment in marked_names]
    height = CURVE_PX + LANE_PX * len(lanes)
    limits, domain, logarithmic = _limits(metric, rows, height)
    scale = {"domain": list(domain), "nice": False, "type": "log" if logarithmic else "linear"}
    for row in rows:
        row.update({name: min(max(row[name], limits[0]), limits[1]) for name in ("low", "high")})
    names = [curve.environment for curve in metric.curves]
    across = f"{load_words(sweep.load)}{' (logarithmic)' if _decades(sweep) else ''}"
    x = quantitative("load", title=across, scale=_across(sweep), axis=_ticks(sweep))
    name = curve_label(sweep, metric)
    title = name if name == unit else f"{name}, {unit}"
    y = quantitative("value", title=title, scale=scale)
    shared = {"x": x, "color": environment_colour(analysis, names)}
    marked = {**shared, "y": y, "href": nominal("link")}
    table = canvas.rows(rows)
    bands = layer(table, "area", {"opacity": 0.18}, **shared, y={**y, "field": "low"}, y2={"field": "high"})
    layers = [
        {**bands, "transform": [{"filter": "datum.band"}]},
        layer(table, "line", {"strokeWidth": 2}, **shared, y=y, strokeDash=AA_DASHED),
        layer(
            table,
            "point",
            {"filled": True, "size": 45, "opacity": 1},
            **marked,
            tooltip=TOOLTIP,
            shape=environment_shape(analysis, names),
        ),
    ]
    if peaks := [row for row in rows if row["peak"]]:
        ring: Field = {"strokeWidth": 2.2, "filled": False, "opacity": 1}
        size = quantitative("ring", scale=None)
        tooltip = [*TOOLTIP, nominal("doubt", title="peak")]
        layers.append(layer(canvas.rows(peaks), "point", ring, **marked, size=size, tooltip=tooltip))
    kinds = (
        ("triangle-up", 0, -ASIDE_PX, _errors(analysis, sweep)),
        ("cross", 45, ASIDE_PX, _breaks(analysis, sweep)),
    )
    for shape, angle, aside, marks in kinds:
        for mark in marks:
            place = (lanes.index(mark["environment"]) + 0.5) * LANE_PX / height
            mark["value"] = _between(domain, 1 - place, logarithmic=logarithmic)
        if marks:
            style = {"shape": shape, "angle": angle, "size": 70, "filled": True, "opacity": 1, "xOffset": aside}
            tooltip = [nominal("environment"), nominal("what")]
            layers.append(layer(canvas.rows(marks), "point", style, **marked, tooltip=tooltip))
    return canvas.layered(layers, height)


def _decades(sweep: LoadSweep) -> bool:
    """Return whether the levels span more than a decade."""
    low, high = sweep.levels[0].load, sweep.levels[-1].load
    return low > 0 and high / low > DECADE


def _across(sweep: LoadSweep) -> Field:
    """Return the axis of the load."""
    low, high = sweep.levels[0].load, sweep.levels[-1].load
    logarithmic = _decades(sweep)
    room = 1.08 if logarithmic else 0.03 * (high - low)
    domain = [low / room, high * room] if logarithmic else [low - room, high + room]
    return {"type": "log" if logarithmic else "linear", "domain": domain, "nice": False}


def _ticks(sweep: LoadSweep) -> Field:
    """Return a tick at each level; Vega would leave out every other one if a page asks for fewer."""
    levels = list(dict.fromkeys(level.load for level in sweep.levels))
    return {"values": levels, "tickCount": len(levels), "labelExpr": THOUSANDS, "labelOverlap": "greedy",
            "labelSeparation": 4}  # fmt: skip


def _usual(metric: MetricCurve) -> float:
    """Return the value that decides the unit of the axis: the largest median, or the middle of a logarithmic axis."""
    values = [each.value.estimate for curve in metric.curves for each in curve.points if each.value is not None]
    low, high = min(values), max(values)
    return math.sqrt(low * high) if _is_logarithmic(metric, low, high) else high


def _is_logarithmic(metric: MetricCurve, low: float, high: float) -> bool:
    return metric.better == "lower" and low > 0 and high / low > DECADE


def _limits(
    metric: MetricCurve, rows: Sequence[dict[str, Any]], height: int
) -> tuple[tuple[float, float], tuple[float, float], bool]:
    """Return where bands end, the domain of the axis with room for the lanes above, and whether it is logarithmic."""
    middles = [row["value"] for row in rows]
    low, high = min(middles), max(middles)
    logarithmic = _is_logarithmic(metric, low, high)
    if logarithmic:
        least, most = low / BEYOND, high * BEYOND
        limits = (max(min(row["low"] for row in rows), least), min(max(row["high"] for row in rows), most))
        limits = (limits[0] / 1.05, limits[1] * 1.05)
    else:
        room = BEYOND * max(abs(low), abs(high)) or 1.0
        limits = (max(min(0.0, *(row["low"] for row in rows)), -room), min(max(row["high"] for row in rows), room))
        limits = (limits[0], limits[1] + 0.05 * ((limits[1] - limits[0]) or 1.0))
    top = _between(limits, height / CURVE_PX, logarithmic=logarithmic)
    return limits, (limits[0], top), logarithmic


def _between(ends: tuple[float, float], share: float, *, logarithmic: bool) -> float:
    """Return the place at a share of the way between two values, or beyond them if the share is more than 1."""
    if logarithmic:
        return math.exp(math.log(ends[0]) + share * (math.log(ends[1]) - math.log(ends[0])))
    return ends[0] + share * (ends[1] - ends[0])


def _rows(
    analysis: Analysis, sweep: LoadSweep, metric: MetricCurve, curve: EnvironmentCurve, factor: float
) -> list[dict[str, Any]]:
    """Return the points of one environment that have a value."""
    rows = []
    for point in curve.points:
        if point.value is None:
            continue
        peak = curve.peak if curve.peak and curve.peak.level == point.level else None
        value = point.value
        bounded = math.isfinite(value.low) and math.isfinite(value.high)
        low, high = (value.low, value.high) if bounded else (value.estimate, value.estimate)
        limits = f"{quantity(value.low, metric.unit)} to {quantity(value.high, metric.unit)}" if bounded else "none"
        rows.append({
            "environment": display_name(curve.environment), "load": point.level.load,
            "value": value.estimate * factor, "low": low * factor, "high": high * factor, "band": bounded,
            "at": level_words(sweep.load, point.level), "median": quantity(value.estimate, metric.unit),
            "interval": limits, "blocks": point.blocks, "broke": broke_count(point.broke) if point.broke else "no",
            "peak": peak is not None, "ring": 130 + 110 * analysis.environments.index(curve.environment),
            "aa": curve.environment == analysis.aa_arm, "doubt": _doubt(sweep, curve.environment, peak),
            "link": _link(analysis, point.level.cell.label, curve.environment),
        })  # fmt: skip
    return rows


def _doubt(sweep: LoadSweep, environment: str, peak: CurvePeak | None) -> str:
    return peak_doubt(sweep.load, peak, next_broke(sweep, environment, peak)) if peak else ""


def _errors(analysis: Analysis, sweep: LoadSweep) -> list[dict[str, Any]]:
    return [
        {
            "environment": display_name(name), "load": each.first.load, "what": errors_words(sweep.load, each),
            "link": _link(analysis, each.first.cell.label, name),
        }
        for name, each in sweep.errors.items()
    ]  # fmt: skip


def _breaks(analysis: Analysis, sweep: LoadSweep) -> list[dict[str, Any]]:
    return [
        {
            "environment": display_name(name), "load": level.load, "what": broke_words(sweep.load, [(level, each)]),
            "link": _link(analysis, level.cell.label, name),
        }
        for name, broken_levels in sweep.broke.items()
        for level, each in broken_levels
    ]  # fmt: skip


def _link(analysis: Analysis, label: str, environment: str) -> str:
    return f"#{trials_id(analysis, label, environment)}"


def curve_caption(analysis: Analysis, sweep: LoadSweep, metric: MetricCurve) -> str:
    """Return how the curves are read."""
    fewest = min((point.blocks for curve in metric.curves for point in curve.points if point.blocks), default=0)
    how = (
        "signed-rank" if fewest >= MIN_BLOCKS_SIGNED_RANK else "Student's t below ten rounds, signed-rank from there"
    )
    parts = ["line: median over the rounds", f"band: 95% interval of the typical value ({how})"]
    parts += [f"dashed: {display_name(analysis.aa_arm)}, the control"] if analysis.aa_arm else []
    if any(curve.peak for curve in metric.curves):
        parts.append("ring: peak (highest median)" if metric.throughput else "ring: peak of the throughput")
    parts += ["triangle above: lowest level with errors in some round"] if sweep.errors else []
    parts += ["cross above: overloaded in some trial"] if sweep.broke else []
    return "; ".join(parts) + ". Click a mark for its trials."
