"""The axes of static charts: labels, titles and the lines of the grid."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weighbridge.report.charts.labels import LINE_PX, NAME_LINES, TWO_LINES, name_lines
from weighbridge.report.charts.static.plot import Plot
from weighbridge.report.charts.static.scales import Names, Numbers, Scale, Ticks
from weighbridge.report.charts.static.svg import LINE, tag, text

FONT_PX, LETTER_PX = 12, 6.8
"""Size of letters, and about the width of one."""

RIGHT_PX = 14
"""Room right of the frame."""


def ticks(scale: Scale, axis: Mapping[str, Any], count: float) -> Ticks:
    """Return about `count` ticks, or as many as the axis asks for."""
    return scale.ticks(axis, int(axis.get("tickCount", max(2, count))))


def label_lines(label: str, axis: Mapping[str, Any], limit: float) -> list[str]:
    """Return a label in its lines, cut where they are wider than the limit in pixels and the axis has one."""
    longest = int(limit / LETTER_PX) if axis.get("labelLimit", limit) else len(label)
    broken = {TWO_LINES: label, NAME_LINES: name_lines(label)}.get(axis.get("labelExpr", ""))
    lines = [label] if broken is None else broken.split("\n")
    return [line if len(line) <= longest else f"{line[: longest - 1]}…" for line in lines]


def horizontal(scale: Scale, axis: Mapping[str, Any], plot: Plot, count: float) -> Iterator[str]:
    """Yield the horizontal axis: labels, none of which runs into the one before, and the lines of the grid."""
    taken, above = -plot.width, axis.get("orient") == "top"
    for at, label in ticks(scale, axis, count):
        if axis.get("grid", isinstance(scale, Numbers)):
            yield tag("line", x1=at, x2=at, y1=0, y2=plot.height, stroke=LINE)
        if axis.get("ticks", True):
            yield tag("line", x1=at, x2=at, y1=plot.height, y2=plot.height + 5, stroke=LINE)
        half = LETTER_PX * len(label) / 2
        middle = min(at, plot.width + RIGHT_PX - half)
        if middle - half > taken:
            taken = middle + half + 4
            yield text(label, middle, -4 if above else plot.height + 17, "middle")


def vertical(
    scale: Scale, axis: Mapping[str, Any], plot: Plot, found: Ticks, labels: Sequence[Sequence[str]]
) -> Iterator[str]:
    """Yield the vertical axis with its labels, each in its lines."""
    for (at, _), lines in zip(found, labels, strict=True):
        line = at + scale.band / 2 if isinstance(scale, Names) and axis.get("tickBand") == "extent" else at
        if axis.get("grid", isinstance(scale, Numbers)):
            yield tag("line", x1=0, x2=plot.width, y1=line, y2=line, stroke=LINE)
        yield tag("line", x1=-5, x2=0, y1=line, y2=line, stroke=LINE)
        for number, words in enumerate(lines):
            yield text(words, -8, at + 4 + LINE_PX * (number - (len(lines) - 1) / 2), "end")
