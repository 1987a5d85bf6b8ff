"""Scales of static charts: where a value is in pixels, and which ticks an axis has.

Ticks of linear scales are those of d3, which the page's script draws with: steps of 1, 2 and 5 times a power of ten.
Those of logarithmic scales are 1, 2 and 5 times a power of ten, or the powers alone.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weighbridge.report.charts.labels import LABELS, listed_texts

Ticks = list[tuple[float, str]]
"""Where each tick is, in pixels, and its label."""
_PLAIN = 1e-9, 1e15
"""Numbers between these are written without an exponent."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """A linear or logarithmic scale from one pixel to another."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def place(self, value: Any) -> float:
        """Return where a value is."""
        low, high, at = (math.log(each) if self.logarithmic else each for each in (self.low, self.high, value))
        return self.start + (self.end - self.start) * ((at - low) / (high - low) if high != low else 0.5)

    def ticks(self, axis: Mapping[str, Any], count: int) -> Ticks:
        """Return about as many ticks as asked, or those that the axis names."""
        if (values := axis.get("values")) is None:
            values = (round_factors if self.logarithmic else round_values)(self.low, self.high, count)
        if least := axis.get("tickMinStep"):
            values = [value for value in values if value % least == 0]
        digits = _digits(values) if not self.logarithmic else None
        expression = axis.get("labelExpr", "")
        if texts := listed_texts(expression):
            return [(self.place(value), text) for value, text in zip(values, texts, strict=True)]
        write = LABELS.get(expression)
        labels = [_number(value, digits) for value in values]
        return [
            (self.place(value), write(value, label) if write else label)
            for value, label in zip(values, labels, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Names:
    """A scale of names: each has a band between two pixels. `room` is left at both ends, as a share of a band."""

    names: Sequence[Any]
    start: float
    end: float
    room: float = 0.0

    @property
    def band(self) -> float:
        """The width of a band."""
        return (self.end - self.start) / ((len(self.names) or 1) + 2 * self.room)

    def place(self, value: Any) -> float:
        """Return the middle of a name's band."""
        return self.start + self.band * (self.names.index(value) + 0.5 + self.room)

    def ticks(self, *_: object) -> Ticks:
        """Return a tick for each name."""
        return [(self.place(name), str(name)) for name in self.names]


Scale = Numbers | Names


def round_values(low: float, high: float, count: int) -> list[float]:
    """Return about `count` round values between two."""
    step = round_step(low, high, count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{each * step:.12g}") for each in range(first, last + 1)]


def round_factors(low: float, high: float, count: int) -> list[float]:
    """Return about `count` values of a logarithmic axis: 1, 2 and 5 times powers of ten, or round values between."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1,)):
        found = [float(f"{step}e{each}") for each in exponents for step in steps]
        inside = [value for value in found if low <= value <= high]
        if len(inside) <= 1.5 * count:
            break
    return inside if len(inside) > 2 else round_values(low, high, count)


def round_step(low: float, high: float, count: int) -> float:
    """Return the step between about `count` round values."""
    span = (high - low) or abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(span / count))
    error = span / count / step
    return step * (
        10 if error >= math.sqrt(50) else 5 if error >= math.sqrt(10) else 2 if error >= math.sqrt(2) else 1
    )


def _digits(values: Sequence[float]) -> int:
    """The decimals that tell values apart."""
    steps = [after - before for before, after in itertools.pairwise(values) if after != before]
    return max(0, -math.floor(math.log10(min(map(abs, steps))) + 1e-9)) if steps else 0


def _number(value: float, digits: int | None) -> str:
    if not _PLAIN[0] <= abs(value) < _PLAIN[1] and value:
        text = f"{value:.3g}"
    else:
        text = f"{value:,.12g}" if digits is None else f"{value:,.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}")
