"""Costs as SVG inside a page: visible without its script, in print, and before the script has drawn.

They are drawn by our own code from the same definition and axes. vl-convert starts a JavaScript engine, which takes
half a second and then 50 ms for each chart. Only intervals, bands and bars on rows of names are drawn; all other
charts need the page's script.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from weighbridge.model.text import printable
from weighbridge.report.charts.base import LINE_PX, SHAPES, Chart, NameAxis, NumberAxis

INK, LINE = "currentColor", "#88888859"
"""Colours of words and lines that can be read on a light page and on a dark one."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
FONT_PX, LETTER_PX = 12, 6.8
"""Size of letters, and about the width of one."""
TOP_PX, RIGHT_PX, LABELS_PX, TITLE_PX = 8, 14, 22, 18
"""Room above and right of the frame, for the labels below it, and for a title."""

ChartRow = Mapping[str, Any]
"""A row of a table: its fields by their names."""


def static_svg(chart: Chart, width: int) -> Markup:
    """Return a chart that has axes, `width` pixels wide, as an SVG element that shrinks to its place.

    Every text is escaped; there are no scripts, style sheets, links or ids in it. Raises ValueError without axes.
    """
    if chart.axes is None:
        raise ValueError("A chart without axes of its own is drawn by the page's script alone.")
    x, y = chart.axes
    longest = math.inf if y.uncut else int(max(150, width / 3) / LETTER_PX)
    labels = {name: [_cut(line, longest) for line in label.split("\n")] for name, label in y.labels.items()}
    left = 10 + LETTER_PX * max((len(line) for lines in labels.values() for line in lines), default=0)
    frame = _Frame(max(40.0, width - left - RIGHT_PX), chart.height, x, y)
    tables, layers = chart.definition["datasets"], chart.definition["layer"]
    parts = [tag("rect", x=0, y=0, width=frame.width, height=frame.height, fill="none", stroke=LINE)]
    parts += _horizontal(frame)
    parts += _vertical(frame, labels)
    for each in layers:
        drawn = _Layer(frame, each["mark"], each["encoding"])
        parts += [MARKS[drawn.mark["type"]](drawn, row) for row in tables[each["data"]["name"]]]
    parts.append(_text(x.title, frame.width / 2, frame.height + LABELS_PX + 12, "middle"))
    below = TOP_PX + frame.height + LABELS_PX + TITLE_PX
    return Markup(  # noqa: S704 - every part is escaped where it is made
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {below}" style="max-width:{width}px"'
        f' aria-hidden="true" font-family="{FONT}" font-size="{FONT_PX}">'
        f'<g transform="translate({_short(left)},{TOP_PX})">{"".join(parts)}</g></svg>'
    )


# -- the frame and its axes ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Frame:
    """The area of the marks: its pixels and its axes."""

    width: float
    height: float
    x: NumberAxis
    y: NameAxis

    @property
    def band(self) -> float:
        """The height of a name's band."""
        return self.height / (len(self.y.labels) or 1)

    def middle(self, name: str) -> float:
        """Return the middle of a name's band."""
        return self.band * (list(self.y.labels).index(name) + 0.5)


def _horizontal(frame: _Frame) -> Iterator[str]:
    """Yield the lines of the grid, and the labels, which never overlap."""
    occupied_to = -frame.width
    for value, label in frame.x.ticks.items():
        at = frame.width * frame.x.share(value)
        yield tag("line", x1=at, x2=at, y1=0, y2=frame.height + 5, stroke=LINE)
        half = LETTER_PX * len(label) / 2
        middle = min(at, frame.width + RIGHT_PX - half)
        if middle - half > occupied_to:
            occupied_to = middle + half + 4
            yield _text(label, middle, frame.height + 17, "middle")


def _vertical(frame: _Frame, labels: Mapping[str, list[str]]) -> Iterator[str]:
    for name, lines in labels.items():
        at = frame.middle(name)
        line = at + frame.band / 2 if frame.y.lined else at
        yield tag("line", x1=-5, x2=frame.width if frame.y.lined else 0, y1=line, y2=line, stroke=LINE)
        for number, words in enumerate(lines):
            yield _text(words, -8, at + 4 + LINE_PX * (number - (len(lines) - 1) / 2), "end")


# -- marks -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer of a definition in its frame."""

    frame: _Frame
    mark: Mapping[str, Any]
    encoding: Mapping[str, Any]

    def value(self, channel: str, row: ChartRow, default: Any = None) -> Any:
        """Return a row's value on a channel that is not a position: its colour, shape or opacity."""
        encoded = self.encoding.get(channel)
        if encoded is None:
            return self.mark.get(channel, default)
        scale, value = encoded["scale"], row[encoded["field"]]
        return dict(zip(scale["domain"], scale["range"], strict=True))[value] if scale else value

    def across(self, channel: str, row: ChartRow) -> float | None:
        """Return a row's distance from the left, on ``x`` or ``x2``."""
        encoded = self.encoding.get(channel)
        return None if encoded is None else self.frame.width * self.frame.x.share(row[encoded["field"]])

    def down(self, channel: str, row: ChartRow) -> float | None:
        """Return a row's distance from the top, on ``y`` or ``y2``: in the middle of its band or its part of it."""
        encoded = self.encoding.get(channel)
        if encoded is None:
            return None
        place, offset = self.frame.middle(row[encoded["field"]]), self.encoding.get(f"{channel}Offset")
        if offset:
            names, room = offset["sort"], offset["scale"]["paddingOuter"]
            part = self.frame.band / (len(names) + 2 * room)
            place += part * (names.index(row[offset["field"]]) + 0.5 + room) - self.frame.band / 2
        return place


def _rectangle(layer: _Layer, row: ChartRow) -> str:
    """Return a span from one value to the other, in the band of its name or over the whole height."""
    ends = sorted((layer.across("x", row) or 0.0, layer.across("x2", row) or 0.0))
    middle, half = layer.down("y", row), layer.frame.band / 2 * (1 - layer.frame.y.padding)
    top, bottom = (0.0, layer.frame.height) if middle is None else (middle - half, middle + half)
    return tag("rect", x=ends[0], y=top, width=ends[1] - ends[0], height=bottom - top,
               fill=layer.value("color", row), fill_opacity=layer.value("opacity", row))  # fmt: skip


def _rule(layer: _Layer, row: ChartRow) -> str:
    x, y, x2, y2 = layer.across("x", row), layer.down("y", row), layer.across("x2", row), layer.down("y2", row)
    top, bottom = (0.0, layer.frame.height) if y is None else (y, y if y2 is None else y2)
    dashes = " ".join(map(str, layer.mark.get("strokeDash", ()))) or None
    return tag("line", x1=x, x2=x if x2 is None else x2, y1=top, y2=bottom, stroke=layer.value("color", row),
               stroke_width=layer.mark.get("strokeWidth", 1), stroke_dasharray=dashes)  # fmt: skip


def _tick(layer: _Layer, row: ChartRow) -> str:
    x, y, half = layer.across("x", row), layer.down("y", row) or 0.0, layer.mark["size"] / 2
    return tag("line", x1=x, x2=x, y1=y - half, y2=y + half, stroke=layer.value("color", row),
               stroke_width=layer.mark["thickness"])  # fmt: skip


def _point(layer: _Layer, row: ChartRow) -> str:
    x, y, area = layer.across("x", row) or 0.0, layer.down("y", row) or 0.0, layer.mark["size"]
    shape, place = layer.value("shape", row, "circle"), f"translate({_short(x)},{_short(y)})"
    transform = f"{place} scale({_short(math.sqrt(area) / 2)})"
    return tag("path", d=SHAPES.get(shape, shape), transform=transform, fill=layer.value("color", row))


MARKS: dict[str, Callable[[_Layer, ChartRow], str]] = {
    "rect": _rectangle, "bar": _rectangle, "rule": _rule, "tick": _tick, "point": _point,
}  # fmt: skip


# -- elements --------------------------------------------------------------------------------------


def tag(name: str, text: str = "", /, **attributes: Any) -> str:
    """Return an element, escaped; attributes of None are left out."""
    attribute_text = "".join(
        f' {key.replace("_", "-")}="{escape(_short(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{attribute_text}>{escape(text)}</{name}>" if text else f"<{name}{attribute_text}/>"


def _text(words: str, x: float, y: float, anchor: str) -> str:
    """Words at a place, escaped and without what XML cannot hold."""
    shown = printable(words).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
    return tag("text", shown, x=x, y=y, text_anchor=anchor, fill=INK)


def _cut(line: str, longest: float) -> str:
    return line if len(line) <= longest else f"{line[: int(longest) - 1]}…"


def _short(value: Any) -> Any:
    """Return a number with at most two decimals; anything else as it is."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
