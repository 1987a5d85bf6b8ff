"""A chart of costs that shows itself in a notebook, without a library of charts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weighbridge.api.rows import EnvironmentCost
from weighbridge.errors import WeighbridgeError
from weighbridge.model.level import level_label
from weighbridge.report.charts.base import (
    ROW_PX,
    Canvas,
    NameAxis,
    colour_of,
    interval_chart,
    nominal,
    number_axis,
    shape_of,
    styles_in_turn,
)
from weighbridge.report.charts.costs import cost_axis_title, cost_limits, interval_inside
from weighbridge.report.charts.svg import static_svg
from weighbridge.report.export.parquet import optional_library

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_MEDIA_TYPE = "application/vnd.vegalite.v5+json"
_WIDTH, _SVG_WIDTH = 480, 720
_MOST = 1e12
"""The limit of costs that are drawn; no measurement has a larger one."""


@dataclass(frozen=True, slots=True)
class CostChart:
    """Costs with their intervals. A notebook shows it; positive costs are worse than the baseline."""

    definition: Mapping[str, Any]
    """The chart in Vega-Lite."""
    svg: str
    """The chart as a picture."""

    def to_altair(self) -> Any:
        """Return an Altair chart, to change or to combine. Raises WeighbridgeError if Altair is not installed."""
        return optional_library("altair").Chart.from_dict({**self.definition})

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        return {_MEDIA_TYPE: {**self.definition}, "image/svg+xml": self.svg, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"<chart of {len(self.definition['datasets']['rows-1'])} costs>"


def cost_chart(costs: Sequence[EnvironmentCost]) -> CostChart:
    """Return a chart of the costs that have an interval, in the unit of the first one.

    Raises WeighbridgeError if there are none.
    """
    with_figures = [(each, figures) for each in costs if (figures := _figures(each)) is not None]
    drawn, numbers = [], []
    for each, figures in with_figures:
        if each.cost_unit == with_figures[0][0].cost_unit:
            drawn.append(each)
            numbers.append(figures)
    if not drawn:
        raise WeighbridgeError("none of these costs has an interval, so there is nothing to draw")
    scale, unit = ("ratio", "") if drawn[0].cost_unit == "%" else ("difference", drawn[0].unit)
    limits = cost_limits(numbers, 1.0 if scale == "ratio" else 1e-9)
    one_metric = len({each.metric for each in drawn}) == 1
    names = [_name(each, with_metric=not one_metric) for each in drawn]
    axes = number_axis(limits, cost_axis_title(scale, unit)), NameAxis({name: name for name in names})
    points = [
        {"name": name, "environment": each.environment, "verdict": each.verdict or "control", "cost text": each.text,
         **interval_inside(figures, limits)}
        for name, each, figures in zip(names, drawn, numbers, strict=True)
    ]  # fmt: skip
    styles = styles_in_turn([*dict.fromkeys(each.environment for each in drawn)])
    encoded = {"y": axes[1].encoding("name"), "color": colour_of("environment", styles)}
    tooltip = [nominal("environment"), nominal("cost text", title="cost"), nominal("verdict")]
    shape = shape_of("environment", styles)
    chart = interval_chart(Canvas(), axes, points, encoded, tooltip, row_px=ROW_PX, shape=shape)
    definition = {"$schema": _SCHEMA, **chart.definition, "width": _WIDTH}
    return CostChart(definition, str(static_svg(chart, _SVG_WIDTH)))


def _figures(cost: EnvironmentCost) -> tuple[float, float, float] | None:
    """Return a cost with the limits of its interval, or None if it cannot be drawn."""
    estimate, low, high = cost.cost, cost.cost_low, cost.cost_high
    if estimate is None or low is None or high is None:
        return None
    return (estimate, low, high) if max(map(abs, (estimate, low, high))) < _MOST else None


def _name(cost: EnvironmentCost, *, with_metric: bool) -> str:
    """Return the label of a row: the environment, and the level and metric if there are several."""
    lines = [cost.environment, level_label(cost.level), cost.metric if with_metric else ""]
    return "\n".join(filter(None, lines))
