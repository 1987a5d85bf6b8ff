"""Resource use, a small chart for each quantity of each place: over the time of a trial, and against the level."""

from collections.abc import Sequence
from typing import Any

from weighbridge.analysis.metered import QuantityId
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.usage import UsagePanel
from weighbridge.analysis.use_by_level import ByLevel, MedianUse, UseRow, unit_of
from weighbridge.report.charts.base import SECONDS, Chart, colour_of, quantitative, short, styles
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import readable_unit

TRIAL_PX, LEVEL_PX = 110, 130


def small_multiple(analysis: Analysis, panel: UsagePanel) -> Chart:
    """Return one quantity over the trial's seconds: the median over the trials in a band of all of them."""
    unit, factor = ("CPUs", 1.0) if panel.unit == "CPUs" else readable_unit(panel.most, panel.unit)
    scheme = styles(analysis)
    rows = [
        {"e": display_name(name), "t": point.at_s, "m": short(point.middle * factor), "l": short(point.low * factor),
         "h": short(point.high * factor)}
        for name, curve in panel.curves.items()
        for point in curve
    ]  # fmt: skip
    seconds = {"grid": False, "labelExpr": SECONDS}
    band = quantitative("l", title=unit, axis={"tickCount": 3})
    tooltip = [
        {"field": "e", "title": "environment"}, quantitative("t", title="s"),
        quantitative("m", title=f"median, {unit}"),
    ]  # fmt: skip
    return Chart({
        "width": "container",
        "height": TRIAL_PX,
        "data": {"values": rows},
        "encoding": {
            "x": quantitative("t", title=None, axis=seconds, scale={"nice": False}),
            "color": colour_of("e", {display_name(name): scheme[name] for name in panel.curves}),
        },
        "layer": [
            {"mark": {"type": "area", "opacity": 0.15}, "encoding": {"y": band, "y2": {"field": "h"}}},
            {"mark": {"type": "line", "strokeWidth": 1.8}, "encoding": {
                "y": quantitative("m", title=unit), "tooltip": tooltip,
            }},
        ],
    }, TRIAL_PX)  # fmt: skip


def use_against_level(analysis: Analysis, use: ByLevel, key: QuantityId) -> Chart:
    """Return one quantity's medians with their limits; a triangle means that the generator limited most trials."""
    scheme = styles(analysis)  # below the chart there is room for its menu
    rows, highest = [], 0.0
    for row in use.rows:
        if (value := row.use.get(key)) is not None:
            highest = max(highest, value.middle)
            rows.append((row, value))
    unit, factor = ("CPUs", 1.0) if unit_of(key) == "CPUs" else readable_unit(highest, unit_of(key))
    names = list(dict.fromkeys(row.environment for row, _ in rows))
    data = [_line(name, [each for each in rows if each[0].environment == name], factor) for name in names]
    order = list(dict.fromkeys(level.text for level in use.group.levels))
    axis = {"grid": False, "labelAngle": 0}
    scale = {"zero": True}
    tooltip = [
        {"field": "e", "title": "environment"}, {"field": "x", "title": use.group.load or "level"},
        quantitative("m", title=f"median, {unit}"), quantitative("l", title="from"), quantitative("h", title="to"),
    ]  # fmt: skip
    shape = {"condition": {"test": "datum.g", "value": "triangle-up"}, "value": "circle"}
    return Chart({
        "width": "container",
        "height": LEVEL_PX,
        "padding": {"left": 5, "top": 5, "right": 5, "bottom": 20},
        "data": {"values": data},
        "transform": [{"flatten": ["x", "m", "l", "h", "g"]}],
        "encoding": {
            "x": {"field": "x", "type": "ordinal", "sort": order, "title": None, "axis": axis,
                  "scale": {"type": "point", "padding": 0.3}},
            "color": colour_of("e", {display_name(name): scheme[name] for name in names}),
        },
        "layer": [
            {"mark": {"type": "area", "opacity": 0.15}, "encoding": {
                "y": quantitative("l", scale=scale, title=unit, axis={"tickCount": 3}), "y2": {"field": "h"},
            }},
            {"mark": {"type": "line", "strokeWidth": 1.8}, "encoding": {"y": quantitative("m", scale=scale)}},
            {"mark": {"type": "point", "filled": True, "size": 42, "opacity": 1}, "encoding": {
                "y": quantitative("m", scale=scale, title=unit), "shape": shape, "tooltip": tooltip,
            }},
        ],
    }, LEVEL_PX)  # fmt: skip


def _line(name: str, rows: Sequence[tuple[UseRow, MedianUse]], factor: float) -> dict[str, Any]:
    """Return one environment's levels, medians and limits."""
    return {
        "e": display_name(name),
        "x": [row.level.text for row, _ in rows],
        "m": [short(value.middle * factor) for _, value in rows],
        "l": [short(value.low * factor) for _, value in rows],
        "h": [short(value.high * factor) for _, value in rows],
        "g": [int(row.generator_limited) for row, _ in rows],
    }
