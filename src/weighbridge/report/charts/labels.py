"""Expressions that write an axis's labels: in Vega's language for the page, in Python for static drawings."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

LINE_PX = 14
"""Height of a line of a label."""

TWO_LINES = r"split(datum.label, '\n')"
"""Break a label at its line feeds."""

NAME_LINES = r"split(replace(replace(datum.label, ' (', '\n('), ' inside ', '\ninside '), '\n')"
"""Break the name of an environment before its hypervisors: cut at the axis it would lose that they are emulated."""

THOUSANDS = "replace(format(datum.value, ',.12~g'), /,/g, '\\u00a0')"
"""Write a level as everywhere: ``2 000``."""

SPACED = "replace(datum.label, /,/g, '\u00a0')"
"""The same for the label that an axis has anyway."""

NINES = "format(100 * (1 - 1 / datum.value), datum.value > 900 ? (datum.value > 9e4 ? '.3f' : '.2f') : '.1~f') + ' %'"
"""Write a place on the axis (100 of how many requests are slower) as a percent."""

SECONDS = "datum.label + ' s'"
"""Write seconds with their unit."""


def name_lines(name: str) -> str:
    """Return the name of an environment with a line feed where `NAME_LINES` breaks it."""
    return name.replace(" (", "\n(", 1).replace(" inside ", "\ninside ", 1)


def name_axis(names: Iterable[str]) -> dict[str, Any]:
    """Return what an axis of these names needs: where one has hypervisors all of its lines."""
    return {"axis": {"labelExpr": NAME_LINES, "labelLimit": 0}} if most_lines(names) > 1 else {}


def most_lines(names: Iterable[str]) -> int:
    """Return how many lines the longest of these names has on an axis."""
    return max((name_lines(name).count("\n") + 1 for name in names), default=1)


def row_px(least: int, names: Iterable[str]) -> int:
    """Return the height of a row of an axis of these names, where it is `least` without hypervisors."""
    return max(least, LINE_PX * most_lines(names) + 6)


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
