"""A definition as an SVG element: frames with their layers and axes, one below the other."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from weighbridge.report.charts.static.axes import (
    FONT_PX,
    LETTER_PX,
    RIGHT_PX,
    horizontal,
    label_lines,
    ticks,
    vertical,
)
from weighbridge.report.charts.static.marks import marks
from weighbridge.report.charts.static.plot import Layer, Plot
from weighbridge.report.charts.static.rows import transformed
from weighbridge.report.charts.static.scales import Names, Numbers, Scale, round_step
from weighbridge.report.charts.static.svg import LINE, short, tag, text

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
TOP_PX, LABELS_PX, TITLE_PX = 8, 22, 18
"""Room above a frame, for the labels below it, and for a title."""


def static_svg(definition: Mapping[str, Any], width: int) -> Markup:
    """Return a chart, `width` pixels wide, as an SVG element that shrinks with its place.

    Every text is escaped; there are no scripts, style sheets, links or ids in it.
    """
    shared = {key: definition[key] for key in ("data", "datasets", "transform", "encoding") if key in definition}
    parts, deep = [], 0.0
    for view in definition.get("vconcat", [definition]):
        drawn, height = _frame({**shared, **view}, width, deep)
        parts.append(drawn)
        deep += height
    return Markup(  # noqa: S704 - every part is escaped where it is made
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {short(deep)}" style="max-width:{width}px"'
        f' aria-hidden="true" font-family="{FONT}" font-size="{FONT_PX}">{"".join(parts)}</svg>'
    )


def _frame(definition: Mapping[str, Any], width: int, top: float) -> tuple[str, float]:
    """One frame that begins at `top`, and its height with its labels and titles."""
    layers, height = _layers(definition), int(definition["height"])
    y, y_axis, y_title = _scale(layers, "y", height, 0), _axis(layers, "y"), _title(layers, "y")
    found = ticks(y, y_axis, height / 40) if y and y_axis is not None else []
    labels = [label_lines(label, y_axis or {}, max(150, width / 3)) for _, label in found]
    above = (y_axis or {}).get("titleAngle") == 0
    widest = max((len(line) for lines in labels for line in lines), default=0)
    left = float((y_axis or {}).get("minExtent", 10 + LETTER_PX * widest + TITLE_PX * bool(y_title)))
    across = max(40.0, width - left - RIGHT_PX)
    x, x_axis, x_title = _scale(layers, "x", 0, across), _axis(layers, "x"), _title(layers, "x")
    offset = next((each.encoding["yOffset"] for each in layers if "yOffset" in each.encoding), {"sort": ()})
    plot = Plot(across, height, {"x": x, "y": y}, offset["sort"])
    parts = [tag("rect", x=0, y=0, width=across, height=height, fill="none", stroke=LINE)]
    if x and x_axis is not None:
        parts += horizontal(x, x_axis, plot, max(3, min(8, width // 90)))
    if y and y_axis is not None:
        parts += vertical(y, y_axis, plot, found, labels)
    parts += [mark for layer in layers for mark in marks(plot, layer)]
    if x_title:
        parts.append(text(x_title, across / 2, height + LABELS_PX + 12, "middle"))
    if y_title and above:
        parts.append(text(y_title, 0, -4, "start"))
    elif y_title:
        parts.append(text(y_title, -height / 2, FONT_PX - left, "middle", transform="rotate(-90)"))
    begin = TITLE_PX if above or (x_axis or {}).get("orient") == "top" else TOP_PX
    below = LABELS_PX * bool(x_axis is not None and x_axis.get("orient") != "top") + TITLE_PX * bool(x_title)
    moved = f"translate({short(left)},{short(top + begin)})"
    return f'<g transform="{moved}">{"".join(parts)}</g>', begin + height + below


def _layers(definition: Mapping[str, Any]) -> list[Layer]:
    """The layers with their rows, and with what the definition encodes for all of them."""
    found = []
    for layer in definition["layer"]:
        data = layer.get("data") or definition["data"]
        rows = definition["datasets"][data["name"]] if "name" in data else data["values"]
        rows = transformed(rows, (*definition.get("transform", ()), *layer.get("transform", ())))
        found.append(Layer(rows, layer["mark"], {**definition.get("encoding", {}), **layer["encoding"]}))
    return found


def _encoded(layers: Sequence[Layer], channel: str) -> list[Mapping[str, Any]]:
    """What the layers encode on a channel by a field."""
    return [each.encoding[channel] for each in layers if "field" in each.encoding.get(channel, {})]


def _axis(layers: Sequence[Layer], channel: str) -> dict[str, Any] | None:
    """What the layers say together of an axis; None where no layer wants one."""
    axes = [each.get("axis", {}) for each in _encoded(layers, channel)]
    wanted = [axis for axis in axes if axis is not None]
    return {key: value for axis in wanted for key, value in axis.items()} if wanted else None


def _title(layers: Sequence[Layer], channel: str) -> str:
    titles = [each.get("title") or (each.get("axis") or {}).get("title") for each in _encoded(layers, channel)]
    return next((str(title) for title in titles if title), "")


def _scale(layers: Sequence[Layer], channel: str, start: float, end: float) -> Scale | None:
    """The scale of a channel for all layers; a vertical one of numbers begins below, one of names above."""
    encoded = _encoded(layers, channel)
    if not encoded:
        return None
    asked = {key: value for each in encoded for key, value in each.get("scale", {}).items()}
    if encoded[0]["type"] != "quantitative":
        values = _values(layers, channel)
        order = list(asked.get("domain") or encoded[0].get("sort") or values)
        names = [name for name in order if name in {*values, *asked.get("domain", ())}]
        room = asked.get("padding", 0) - 0.5 if asked.get("type") == "point" else 0.0
        return Names(names, min(start, end), max(start, end), room)
    low, high = asked.get("domain") or _reach(_values(layers, channel), asked, abs(end - start))
    return Numbers(low, high, start, end, asked.get("type") == "log")


def _values(layers: Sequence[Layer], channel: str) -> list[Any]:
    """All values on a channel and its other end."""
    return [
        row[each.encoding[name]["field"]]
        for each in layers
        for name in (channel, f"{channel}2")
        if "field" in each.encoding.get(name, {})
        for row in each.rows
    ]


def _reach(values: Sequence[float], asked: Mapping[str, Any], length: float) -> tuple[float, float]:
    """From where to where a scale of these values goes."""
    logarithmic = asked.get("type") == "log"
    low, high = min(values, default=0.0), max(values, default=1.0)
    if not logarithmic and asked.get("zero", True):
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = (low / 2, high * 2) if logarithmic else (low - 0.5, high + 0.5)
    if padding := asked.get("padding", 0):
        room = (high - low) * padding / (length - 2 * padding)
        low, high = low - room, high + room
    if not logarithmic and asked.get("nice", True):
        step = round_step(low, high, 10)
        low, high = step * (low // step), -step * (-high // step)
    return low, high
