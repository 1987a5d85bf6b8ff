"""A layer of a chart, and where its rows are in the frame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weighbridge.report.charts.static.rows import Row
from weighbridge.report.charts.static.scales import Names, Scale

APART = 0.1
"""The share of its band by which a bar is apart from the next; a rectangle fills its own."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of a definition with its own rows."""

    rows: Sequence[Row]
    mark: Mapping[str, Any]
    encoding: Mapping[str, Any]

    def value(self, channel: str, row: Row, default: Any = None) -> Any:
        """Return what a row has on a channel other than a place: its colour, shape, size, opacity or dashes."""
        encoded = self.encoding.get(channel)
        if encoded is None:
            return self.mark.get(channel, default)
        if "condition" in encoded:  # the only test that our charts make: whether a field is set
            field = encoded["condition"]["test"].removeprefix("datum.")
            return encoded["condition"]["value"] if row[field] else encoded["value"]
        if "value" in encoded:
            return encoded["value"]
        scale, found = encoded.get("scale"), row[encoded["field"]]
        return dict(zip(scale["domain"], scale["range"], strict=True))[found] if scale else found


@dataclass(frozen=True, slots=True)
class Plot:
    """Where the marks are drawn: between which pixels, and on which scales."""

    width: float
    height: float
    scales: Mapping[str, Scale | None]
    offsets: Sequence[str]
    """The names that stand side by side in a band of the vertical scale."""

    def at(self, layer: Layer, channel: str, row: Row) -> float | None:
        """Return where a row is on a channel (x, x2, y or y2); None where it is on none."""
        encoded = layer.encoding.get(channel)
        if encoded is None:
            return None
        if "value" in encoded:
            return float(encoded["value"])
        scale = self.scales[channel[0]]
        if scale is None:
            return None
        place = scale.place(row[encoded["field"]])
        offset = layer.encoding.get(f"{channel}Offset")
        if offset and isinstance(scale, Names):
            within = Names(self.offsets, -scale.band / 2, scale.band / 2, offset["scale"]["paddingOuter"])
            place += within.place(row[offset["field"]])
        return place

    def sides(self, layer: Layer, channel: str, row: Row) -> tuple[float, float]:
        """Return from where to where a row reaches: to its other end, in its band, or all the way."""
        scale, place, other = (
            self.scales.get(channel),
            self.at(layer, channel, row),
            self.at(layer, f"{channel}2", row),
        )
        if place is None:
            return 0.0, self.width if channel == "x" else self.height
        if other is not None:
            return min(place, other), max(place, other)
        apart = layer.encoding[channel].get("scale", {}).get("padding", APART * (layer.mark["type"] == "bar"))
        half = scale.band / 2 * (1 - apart) if isinstance(scale, Names) else 0.0
        return place - half, place + half
