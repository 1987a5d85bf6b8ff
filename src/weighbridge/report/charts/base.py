"""The shared parts of all charts: the Vega-Lite definition, axes with labels, colours, tables of rows, and layers.

An environment has its own colour and mark in every chart and legend. The first four colours are Okabe and Ito's,
which colour-blind people can distinguish; all have a contrast of 3 : 1 on the light and on the dark page. The
baseline and its A/A arm are grey squares.
"""

import itertools
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weighbridge.analysis.results import Analysis
from weighbridge.report.text.environments import display_name

Field = dict[str, Any]
"""A part of a definition: an encoding, or a layer."""

PALETTE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#746700", "#7A88FF", "#C80062", "#8F47E0", "#2A98C8", "#F7506A",
    "#E23EE2", "#998F00",
)  # fmt: skip
BASELINE, AA_ARM, BAND = "#6b7280", "#8e949f", "#009E73"
ROW_PX, LINE_PX = 26, 14
"""Heights of a row, and of a line of its label."""

NARROW, WIDE = 5, 8
"""Ticks of an axis next to a table, and of one as wide as the page."""


# -- colours and marks -----------------------------------------------------------------------------

SHAPES = {
    "circle": "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0Z",
    "diamond": "M0,-1L1,0L0,1L-1,0Z",
    "triangle-up": "M0,-.87L1,.87L-1,.87Z",
    "cross": "M-1,-.35L-.35,-.35L-.35,-1L.35,-1L.35,-.35L1,-.35L1,.35L.35,.35L.35,1L-.35,1L-.35,.35L-1,.35Z",
    "star": "M0,-1L.24,-.32L.95,-.31L.38,.12L.59,.81L0,.4L-.59,.81L-.38,.12L-.95,-.31L-.24,-.32Z",
    "triangle-down": "M0,.87L1,-.87L-1,-.87Z",
    "hourglass": "M-.9,-1L.9,-1L.15,0L.9,1L-.9,1L-.15,0Z",
    "triangle-right": "M.87,0L-.87,-1L-.87,1Z",
    "bow tie": "M-1,-.9L0,-.15L1,-.9L1,.9L0,.15L-1,.9Z",
    "triangle-left": "M-.87,0L.87,-1L.87,1Z",
    "bar": "M-.35,-1.1L.35,-1.1L.35,1.1L-.35,1.1Z",
    "tee": "M-1,-.9L1,-.9L1,-.25L.35,-.25L.35,.9L-.35,.9L-.35,-.25L-1,-.25Z",
    "square": "M-1,-1L1,-1L1,1L-1,1Z",
    "frame": "M-1,-1L1,-1L1,1L-1,1ZM-.45,-.45L-.45,.45L.45,.45L.45,-.45Z",
}
"""The marks of points by their names, each as the path of an SVG between -1 and 1."""
MARKS = tuple(SHAPES)[:-2]
"""The marks of the environments, in order; the last two shapes belong to the baseline and its A/A arm."""
OF_VEGA = {"circle", "diamond", "cross", "square", "triangle-up", "triangle-down", "triangle-right", "triangle-left"}
"""Those that Vega knows by their names."""


@dataclass(frozen=True, slots=True)
class MarkStyle:
    """How the points of one environment, or of one run, are drawn."""

    colour: str
    shape: str = "circle"

    @property
    def path(self) -> str:
        """The shape as the path of an SVG between -1 and 1."""
        return SHAPES[self.shape]


def styles(analysis: Analysis) -> dict[str, MarkStyle]:
    """Return a colour and a mark for each environment, the same in every chart."""
    grey = {analysis.baseline: MarkStyle(BASELINE, "square"), analysis.aa_arm: MarkStyle(AA_ARM, "frame")}
    own = styles_in_turn([name for name in analysis.environments if name not in grey])
    return {name: grey.get(name) or own[name] for name in analysis.environments}


def styles_in_turn(names: Collection[str]) -> dict[str, MarkStyle]:
    """Return a colour and a mark for each name, in order; for names without a baseline.

    Beyond a dozen names both repeat, but never the same two together.
    """
    count = len(PALETTE)
    return {
        name: MarkStyle(PALETTE[number % count], MARKS[(number + number // count) % len(MARKS)])
        for number, name in enumerate(names)
    }


def environment_colour(analysis: Analysis, names: Collection[str] | None = None) -> Field:
    """Return the colour of the field ``environment``, of those in `names` where not all are drawn."""
    return colour_of("environment", _styles_shown(analysis, names))


def environment_shape(analysis: Analysis, names: Collection[str] | None = None) -> Field:
    """Return the mark of the field ``environment``, of those in `names` where not all are drawn."""
    return shape_of("environment", _styles_shown(analysis, names))


def _styles_shown(analysis: Analysis, names: Collection[str] | None) -> dict[str, MarkStyle]:
    return {display_name(name): style for name, style in styles(analysis).items() if names is None or name in names}


def colour_of(field: str, scheme: Mapping[str, MarkStyle]) -> Field:
    """Return the colour of a field by its name; the page has the legend."""
    scale = {"domain": list(scheme), "range": [style.colour for style in scheme.values()]}
    return nominal(field, scale=scale, legend=None)


def shape_of(field: str, scheme: Mapping[str, MarkStyle]) -> Field:
    """Return the encoding of the mark of a field by its name, in addition to its colour."""
    shapes = [style.shape if style.shape in OF_VEGA else style.path for style in scheme.values()]
    return nominal(field, scale={"domain": list(scheme), "range": shapes}, legend=None)


# -- axes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NumberAxis:
    """A horizontal axis of numbers: its range, its title, and each tick with its label."""

    low: float
    high: float
    title: str
    ticks: Mapping[float, str]
    logarithmic: bool = False

    def encoding(self, field: str) -> Field:
        """Return the encoding of a field on this axis."""
        scale: Field = {"domain": [self.low, self.high], "nice": False}
        scale |= {"type": "log"} if self.logarithmic else {"zero": False}
        axis: Field = {"values": list(self.ticks), "labelExpr": listed(list(self.ticks), list(self.ticks.values()))}
        axis |= {"tickCount": len(self.ticks)}  # Vega leaves out every other one where a page asks for fewer
        axis |= {"labelOverlap": False} if self.logarithmic else {}  # and labels of such an axis that have room
        return quantitative(field, scale=scale, title=self.title, axis=axis)

    def share(self, value: float) -> float:
        """Return the position of a value, from 0 to 1."""
        low, high, at = (math.log(each) if self.logarithmic else each for each in (self.low, self.high, value))
        return (at - low) / (high - low)


def number_axis(limits: Sequence[float], title: str, count: int = NARROW, *, logarithmic: bool = False) -> NumberAxis:
    """Return an axis between two limits with about `count` ticks: round values, or 1, 2 and 5 times powers of ten."""
    low, high = limits
    values = (round_factors if logarithmic else round_values)(low, high, count)
    steps = [abs(after - before) for before, after in itertools.pairwise(values)]
    digits = max(0, -math.floor(math.log10(min(steps)) + 1e-9)) if steps and not logarithmic else None
    return NumberAxis(low, high, title, {value: _number(value, digits) for value in values}, logarithmic)


@dataclass(frozen=True, slots=True)
class NameAxis:
    """A vertical axis of names, a band for each from above: each name with its label, whose lines `\\n` parts."""

    labels: Mapping[str, str]
    uncut: bool = False
    """Whether labels are never shortened; a shortened label could hide that an environment is emulated."""
    lined: bool = False
    """Whether lines part the bands."""
    padding: float = 0.0
    """The share of a band that stays empty."""

    def encoding(self, field: str) -> Field:
        """Return the encoding of a field on this axis."""
        labels = [label.split("\n") for label in self.labels.values()]
        axis: Field = {"labelExpr": listed(list(self.labels), labels)}
        axis |= {"labelLimit": 0} if self.uncut else {}
        axis |= {"grid": True, "tickBand": "extent"} if self.lined else {}
        scale: Field = {"domain": list(self.labels), **({"padding": self.padding} if self.padding else {})}
        return nominal(field, sort=list(self.labels), scale=scale, title=None, axis=axis)

    def height(self, row_px: int) -> int:
        """Return the height of all bands, each `row_px` high, or as its lines need."""
        lines = max((label.count("\n") + 1 for label in self.labels.values()), default=1)
        return max(row_px, LINE_PX * lines + 6) * len(self.labels)


def environment_axis(names: Sequence[str]) -> NameAxis:
    """Return the axis of environments, with complete labels if any has hypervisors."""
    labels = {name: name_lines(name) for name in map(display_name, names)}
    return NameAxis(labels, uncut=any("\n" in label for label in labels.values()))


def title_axis(titles: Sequence[str]) -> NameAxis:
    """Return the axis of metrics by their titles: the workload in one line, the metric in the next."""
    return NameAxis({title: title.replace(" · ", "\n") for title in titles}, lined=True)


def name_lines(name: str) -> str:
    """Return the name of an environment with a line feed before each of its hypervisors."""
    return name.replace(" (", "\n(", 1).replace(" inside ", "\ninside ", 1)


def listed(places: Sequence[float | str], labels: Sequence[str | Sequence[str]]) -> str:
    """Return the expression that writes a label (or its lines) at each place of an axis."""
    return f"{json.dumps(labels)}[indexof({json.dumps(places)}, datum.value)]"


def round_values(low: float, high: float, count: int) -> list[float]:
    """Return about `count` round values between two: d3's steps of 1, 2 and 5 times a power of ten."""
    span = (high - low) or abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(span / count))
    error = span / count / step
    step *= 10 if error >= math.sqrt(50) else 5 if error >= math.sqrt(10) else 2 if error >= math.sqrt(2) else 1
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{each * step:.12g}") for each in range(first, last + 1)]


def round_factors(low: float, high: float, count: int) -> list[float]:
    """Return about `count` values of a logarithmic axis: 1, 2 and 5 times powers of ten, or round values between."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1,)):
        inside = [value for each in exponents for step in steps if low <= (value := float(f"{step}e{each}")) <= high]
        if len(inside) <= 1.5 * count:
            break
    return inside if len(inside) > 2 else round_values(low, high, count)


def _number(value: float, digits: int | None) -> str:
    """Return a number on an axis; without `digits` as many as it has."""
    if not 1e-9 <= abs(value) < 1e15 and value:
        text = f"{value:.3g}"
    else:
        text = f"{value:,.12g}" if digits is None else f"{value:,.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}")


# -- definitions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chart:
    """A definition in Vega-Lite and its height in pixels, with its axes if it is also drawn without a script.

    Definitions are written as Vega-Lite itself: Altair takes 25 ms for each, and a page has hundreds. The tests check
    them against Vega-Lite's schema.
    """

    definition: Mapping[str, Any]
    height: int
    axes: tuple[NumberAxis, NameAxis] | None = None


class Canvas:
    """Layers that share their rows: each table of rows is in the definition once."""

    def __init__(self) -> None:
        self._tables: dict[str, list[dict[str, Any]]] = {}

    def rows(self, rows: list[dict[str, Any]]) -> dict[str, str]:
        """Name rows, so that layers can refer to them."""
        name = f"rows-{len(self._tables) + 1}"
        self._tables[name] = rows
        return {"name": name}

    def layered(self, layers: Sequence[Field], height: int, axes: tuple[NumberAxis, NameAxis] | None = None) -> Chart:
        """Put layers on one another, as wide as their place and `height` pixels high."""
        definition = {"width": "container", "height": height, "datasets": self._tables, "layer": list(layers)}
        return Chart(definition, height, axes)


def layer(rows: Mapping[str, str], mark: str, /, style: Mapping[str, Any] | None = None, **encoding: Any) -> Field:
    """Return a layer of rows with a mark, its `style` and its encoding."""
    return {"data": rows, "mark": {"type": mark, **(style or {})}, "encoding": encoding}


def quantitative(field: str, **properties: Any) -> Field:
    """Return the encoding of a field by its size."""
    return {"field": field, "type": "quantitative", **properties}


def nominal(field: str, **properties: Any) -> Field:
    """Return the encoding of a field by its name."""
    return {"field": field, "type": "nominal", **properties}


def rule_at(rows: Mapping[str, str], x: Field) -> Field:
    """Return the dashed line that marks no cost."""
    return layer(rows, "rule", {"color": BASELINE, "strokeDash": [4, 3]}, x=x)


def interval(axis: NumberAxis) -> dict[str, Field]:
    """Return the horizontal encodings of an interval: the fields ``low`` and ``high``."""
    return {"x": axis.encoding("low"), "x2": {"field": "high"}}


def interval_chart(
    canvas: Canvas,
    axes: tuple[NumberAxis, NameAxis],
    points: list[dict[str, Any]],
    encoded: Mapping[str, Field],
    tooltip: Sequence[Field],
    *,
    row_px: int,
    value: str = "cost",
    none: float = 0.0,
    under: Sequence[Field] = (),
    stroke: float = 2.5,
    size: int = 60,
    shape: Field | None = None,
) -> Chart:
    """Return points with their intervals (fields `value`, ``low``, ``high``) over a line that marks no cost.

    ``encoded``: the vertical axis and the colour; ``under``: layers below all others.
    """
    x, table = axes[0].encoding(value), canvas.rows(points)
    lines = layer(table, "rule", {"strokeWidth": stroke}, **encoded, **interval(axes[0]))
    style, shapes = {"filled": True, "size": size, "opacity": 1}, {"shape": shape} if shape else {}
    dots = layer(table, "point", style, **encoded, **shapes, x=x, tooltip=tooltip)
    zero = rule_at(canvas.rows([{value: none}]), x)
    return canvas.layered([*under, zero, lines, dots], axes[1].height(row_px), axes)


def short(value: float) -> float:
    """Return four digits of a value: more than the height of a small chart can show."""
    return float(f"{value:.4g}")


# -- labels that the page's script writes ----------------------------------------------------------

THOUSANDS = "format(datum.value, ',.12~g')"
"""Write a level as everywhere: ``2,000``."""

NINES = "format(100 * (1 - 1 / datum.value), datum.value > 900 ? (datum.value > 9e4 ? '.3f' : '.2f') : '.1~f') + '%'"
"""Write a place on the axis (100 of how many requests are slower) as a percent."""

SECONDS = "datum.label + ' s'"
"""Write seconds with their unit."""
