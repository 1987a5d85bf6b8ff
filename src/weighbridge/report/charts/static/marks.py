"""The marks of static charts: each row of a layer, or each line of rows, as an element of SVG."""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weighbridge.report.charts.static.plot import Layer, Plot
from weighbridge.report.charts.static.rows import Row
from weighbridge.report.charts.static.svg import INK, tag


def marks(plot: Plot, layer: Layer) -> Iterator[str]:
    """Yield the elements of a layer."""
    kind = layer.mark["type"]
    if kind in BY_ROW:
        yield from (BY_ROW[kind](plot, layer, row) for row in layer.rows)
        return
    groups: dict[Any, list[Row]] = {}
    for row in layer.rows:
        groups.setdefault((layer.value("color", row), layer.value("detail", row)), []).append(row)
    yield from (BY_COLOUR[kind](plot, layer, rows) for rows in groups.values())


def _rectangle(plot: Plot, layer: Layer, row: Row) -> str:
    (left, right), (top, bottom) = plot.sides(layer, "x", row), plot.sides(layer, "y", row)
    colour, opacity = layer.value("color", row), layer.value("opacity", row)
    return tag("rect", x=left, y=top, width=right - left, height=bottom - top, fill=colour, fill_opacity=opacity)


def _rule(plot: Plot, layer: Layer, row: Row) -> str:
    x, y, x2, y2 = (plot.at(layer, channel, row) for channel in ("x", "y", "x2", "y2"))
    across = x if x2 is None else x2
    top, bottom = (0.0, plot.height) if y is None else (y, y if y2 is None else y2)
    return tag("line", x1=x, x2=across, y1=top, y2=bottom, **_stroke(layer, row, 1))


def _tick(plot: Plot, layer: Layer, row: Row) -> str:
    x, y, half = plot.at(layer, "x", row), plot.at(layer, "y", row) or 0.0, layer.mark["size"] / 2
    return tag("line", x1=x, x2=x, y1=y - half, y2=y + half, **_stroke(layer, row, layer.mark["thickness"]))


def _stroke(layer: Layer, row: Row, width: float) -> dict[str, Any]:
    dashes = layer.value("strokeDash", row)
    return {
        "stroke": layer.value("color", row), "stroke_width": layer.mark.get("strokeWidth", width),
        "stroke_dasharray": " ".join(map(str, dashes)) if dashes and dashes[1] else None,
        "stroke_opacity": layer.value("opacity", row),
    }  # fmt: skip


CORNERS = {
    "cross": ((-3, -1), (-1, -1), (-1, -3), (1, -3), (1, -1), (3, -1),
              (3, 1), (1, 1), (1, 3), (-1, 3), (-1, 1), (-3, 1)),
    "triangle-up": ((0, -2.6), (3, 2.6), (-3, 2.6)),
    "triangle-down": ((0, 2.6), (3, -2.6), (-3, -2.6)),
    "diamond": ((0, -3), (3, 0), (0, 3), (-3, 0)),
}  # fmt: skip
"""The corners of shapes, in sixths of their width."""


def _symbol(plot: Plot, layer: Layer, row: Row) -> str:
    x, y = plot.at(layer, "x", row) or 0.0, plot.at(layer, "y", row) or 0.0
    x += layer.mark.get("xOffset", 0)
    area, colour, shape = layer.value("size", row, 30), layer.value("color", row), layer.value("shape", row, "circle")
    filled = layer.mark.get("filled", layer.mark["type"] == "circle")
    look = {"fill": colour} if filled else {"fill": "none", **_stroke(layer, row, 2)}
    look["opacity"] = layer.value("opacity", row)
    if shape not in CORNERS:
        return tag("circle", cx=x, cy=y, r=math.sqrt(area / math.pi), **look)
    angle, sixth = math.radians(layer.mark.get("angle", 0)), math.sqrt(area) / 6
    turned = (
        (sixth * (a * math.cos(angle) - b * math.sin(angle)), sixth * (a * math.sin(angle) + b * math.cos(angle)))
        for a, b in CORNERS[shape]
    )
    return tag("polygon", points=" ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in turned), **look)


def _line(plot: Plot, layer: Layer, rows: Sequence[Row]) -> str:
    path = _path(plot, layer, rows, "y")
    return tag("path", d=f"M{path}", fill="none", **_stroke(layer, rows[0], 2))


def _area(plot: Plot, layer: Layer, rows: Sequence[Row]) -> str:
    path = f"M{_path(plot, layer, rows, 'y')}L{_path(plot, layer, rows, 'y2', back=True)}Z"
    return tag("path", d=path, fill=layer.value("color", rows[0]), fill_opacity=layer.mark["opacity"])


def _path(plot: Plot, layer: Layer, rows: Sequence[Row], channel: str, *, back: bool = False) -> str:
    places = [(plot.at(layer, "x", row) or 0.0, plot.at(layer, channel, row) or 0.0) for row in rows]
    if layer.mark.get("interpolate") == "step-after":
        places = [each for (_, y), place in zip([places[0], *places], places, strict=False)
                  for each in ((place[0], y), place)]  # fmt: skip
    return "L".join(f"{x:.1f},{y:.1f}" for x, y in (reversed(places) if back else places))


def _boxplot(plot: Plot, layer: Layer, rows: Sequence[Row]) -> str:
    """The middle half of the values as a box, with whiskers to the extremes."""
    ordered = sorted(rows, key=lambda row: row[layer.encoding["x"]["field"]])
    places = [plot.at(layer, "x", row) or 0.0 for row in ordered]
    first, middle, third = statistics.quantiles(places, n=4, method="inclusive") if len(places) > 1 else places * 3
    y, half = plot.at(layer, "y", rows[0]) or 0.0, layer.mark["size"] / 2
    colour, opacity, median = layer.value("color", rows[0]), layer.mark["opacity"], layer.mark["median"]["color"]
    whiskers = [
        tag("line", x1=start, x2=end, y1=y, y2=y, stroke=INK, opacity=opacity)
        for start, end in ((places[0], first), (third, places[-1]))
    ]
    box = tag("rect", x=first, y=y - half, width=third - first, height=2 * half, fill=colour, fill_opacity=opacity)
    return "".join([*whiskers, box, tag("line", x1=middle, x2=middle, y1=y - half, y2=y + half, stroke=median)])


BY_ROW: dict[str, Callable[[Plot, Layer, Row], str]] = {
    "rect": _rectangle, "bar": _rectangle, "rule": _rule, "tick": _tick, "point": _symbol, "circle": _symbol,
}  # fmt: skip
BY_COLOUR: dict[str, Callable[[Plot, Layer, Sequence[Row]], str]] = {
    "line": _line, "area": _area, "boxplot": _boxplot,
}  # fmt: skip
