"""Expressions that write an axis's labels: in Vega's language for the page, in Python for static drawings."""

import json
from collections.abc import Callable, Sequence

TWO_LINES = r"split(datum.label, '\n')"
"""Break a label at its line feeds."""

THOUSANDS = "replace(format(datum.value, ',.12~g'), /,/g, '\\u00a0')"
"""Write a level as everywhere: ``2 000``."""

SPACED = "replace(datum.label, /,/g, '\u00a0')"
"""The same for the label that an axis has anyway."""

NINES = "format(100 * (1 - 1 / datum.value), datum.value > 900 ? (datum.value > 9e4 ? '.3f' : '.2f') : '.1~f') + ' %'"
"""Write a place on the axis (100 of how many requests are slower) as a percent."""

SECONDS = "datum.label + ' s'"
"""Write seconds with their unit."""


def listed(places: Sequence[float], texts: Sequence[str]) -> str:
    """Return the expression that writes a text at each place: an axis of numbers has no other labels of its own."""
    return f"{json.dumps(texts)}[indexof({json.dumps(places)}, datum.value)]"


def listed_texts(expression: str) -> list[str] | None:
    """Return the texts of an expression that `listed` made; None of any other."""
    found = json.JSONDecoder().raw_decode(expression)[0] if expression.startswith("[") else None
    return found if isinstance(found, list) else None


def _nines(value: float) -> str:
    digits = 3 if value > 9e4 else 2 if value > 900 else 1
    text = f"{100 * (1 - 1 / value):.{digits}f}"
    return f"{text.removesuffix('.0') if digits == 1 else text} %"


LABELS: dict[str, Callable[[float, str], str]] = {
    THOUSANDS: lambda value, _: f"{value:,.12g}".replace(",", "\u00a0"),
    SPACED: lambda _, label: label.replace(",", "\u00a0"),
    SECONDS: lambda _, label: f"{label} s",
    NINES: lambda value, _: _nines(value),
}
"""Each expression for numbers as a function of the value and of the label that it has anyway."""
