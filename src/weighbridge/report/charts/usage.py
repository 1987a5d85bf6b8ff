"""Resource use over the time of a trial: one small chart for each quantity of each place."""

from weighbridge.analysis.results import Analysis
from weighbridge.analysis.usage import UsagePanel
from weighbridge.report.charts.base import Chart, colour_of, colours, quantitative, short
from weighbridge.report.charts.labels import SECONDS
from weighbridge.report.text.formatting import readable_unit

SMALL_PX = 110


def small_multiple(analysis: Analysis, panel: UsagePanel) -> Chart:
    """Give one quantity over the trial's seconds: the median over the trials in a band of all of them."""
    unit, factor = ("CPUs", 1.0) if panel.unit == "CPUs" else readable_unit(panel.most, panel.unit)
    scheme = colours(analysis)
    rows = [
        {"e": name, "t": point.at_s, "m": short(point.middle * factor), "l": short(point.low * factor),
         "h": short(point.high * factor)}
        for name, curve in panel.curves.items()
        for point in curve
    ]  # fmt: skip
    seconds = {"grid": False, "labelExpr": SECONDS}
    band = quantitative("l", title=unit, axis={"tickCount": 3})
    told = [
        {"field": "e", "title": "environment"}, quantitative("t", title="s"),
        quantitative("m", title=f"median, {unit}"),
    ]  # fmt: skip
    return Chart({
        "width": "container",
        "height": SMALL_PX,
        "data": {"values": rows},
        "encoding": {
            "x": quantitative("t", title=None, axis=seconds, scale={"nice": False}),
            "color": colour_of("e", {name: scheme[name] for name in panel.curves}),
        },
        "layer": [
            {"mark": {"type": "area", "opacity": 0.15}, "encoding": {"y": band, "y2": {"field": "h"}}},
            {"mark": {"type": "line", "strokeWidth": 1.8}, "encoding": {
                "y": quantitative("m", title=unit), "tooltip": told,
            }},
        ],
    }, SMALL_PX)  # fmt: skip
