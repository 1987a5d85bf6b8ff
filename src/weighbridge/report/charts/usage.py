"""Resource use over the time of a trial: one small chart for each quantity of each place.

A page has hundreds of them, so they are written as Vega-Lite itself: Altair takes 20 ms for each.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weighbridge.analysis.results import Analysis
from weighbridge.analysis.usage import Panel
from weighbridge.report.charts.base import colours
from weighbridge.report.text.formatting import readable_unit

SMALL_PX = 110


@dataclass(frozen=True, slots=True)
class SmallChart:
    """A definition that is drawn like any chart of Altair."""

    definition: Mapping[str, Any]
    height: int = SMALL_PX

    def to_dict(self, *, validate: bool = True) -> dict[str, Any]:
        """Give the definition, checked by Altair unless that is not wanted."""
        if validate:
            import altair as alt

            alt.LayerChart.validate(dict(self.definition))
        return dict(self.definition)


def small_multiple(analysis: Analysis, panel: Panel) -> SmallChart:
    """Give one quantity over the trial's seconds: the median over the trials in a band of all of them."""
    unit, factor = ("CPUs", 1.0) if panel.unit == "CPUs" else readable_unit(panel.most, panel.unit)
    scheme = colours(analysis)
    rows = [
        {"e": name, "t": point.at_s, "m": _short(point.middle * factor), "l": _short(point.low * factor),
         "h": _short(point.high * factor)}
        for name, curve in panel.curves.items()
        for point in curve
    ]  # fmt: skip
    seconds = {"grid": False, "labelExpr": "datum.label + ' s'"}
    band = {"field": "l", "type": "quantitative", "title": unit, "axis": {"tickCount": 3}}
    told = [
        {"field": "e", "title": "environment"}, {"field": "t", "type": "quantitative", "title": "s"},
        {"field": "m", "type": "quantitative", "title": f"median, {unit}"},
    ]  # fmt: skip
    return SmallChart({
        "width": "container",
        "height": SMALL_PX,
        "data": {"values": rows},
        "encoding": {
            "x": {"field": "t", "type": "quantitative", "title": None, "axis": seconds, "scale": {"nice": False}},
            "color": {"field": "e", "type": "nominal", "legend": None, "scale": {
                "domain": list(panel.curves), "range": [scheme[name] for name in panel.curves],
            }},
        },
        "layer": [
            {"mark": {"type": "area", "opacity": 0.15}, "encoding": {"y": band, "y2": {"field": "h"}}},
            {"mark": {"type": "line", "strokeWidth": 1.8}, "encoding": {
                "y": {"field": "m", "type": "quantitative", "title": unit}, "tooltip": told,
            }},
        ],
    })  # fmt: skip


def _short(value: float) -> float:
    """Four digits are more than the height of the chart can show."""
    return float(f"{value:.4g}")
