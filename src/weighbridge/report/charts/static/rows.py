"""The rows of static charts, after those transforms of Vega-Lite that our charts have."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
"""A row of a table: its fields by their names."""


def transformed(rows: Sequence[Row], transforms: Iterable[Mapping[str, Any]]) -> Sequence[Row]:
    """Return the rows after the transforms."""
    for transform in transforms:
        if "filter" in transform:
            field = transform["filter"].removeprefix("datum.")
            rows = [row for row in rows if row.get(field)]
        elif "flatten" in transform:
            rows = _flatten(rows, transform["flatten"])
        elif "fold" in transform:
            key, value = transform["as"]
            rows = [{**row, key: name, value: row[name]} for row in rows for name in transform["fold"]]
        else:
            rows = _stack(rows, transform)
    return rows


def _flatten(rows: Sequence[Row], fields: Sequence[str]) -> list[Row]:
    """A row for each place in lists of the same length."""
    return [
        {**row, **dict(zip(fields, values, strict=False))}
        for row in rows
        for values in zip(*(row[field] for field in fields), strict=False)
    ]


def _stack(rows: Sequence[Row], transform: Mapping[str, Any]) -> list[Row]:
    """Each row's value on top of those of its group that are before it."""
    reached: dict[tuple[Any, ...], float] = {}
    low, high = transform["as"]
    found: list[Row] = []
    for row in rows:  # a fold gives them in the order of its fields, which is that of their names
        group = tuple(row[field] for field in transform["groupby"])
        below = reached.get(group, 0.0)
        reached[group] = below + row[transform["stack"]]
        found.append({**row, low: below, high: reached[group]})
    return found
