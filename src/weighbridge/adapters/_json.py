"""Reads the JSON output of programs strictly. This module is not an adapter."""

import json
from typing import Any

from weighbridge.model.measurement import Unparseable, is_plausible
from weighbridge.model.text import one_line


def read_document(stdout: bytes, what: str, usage: str) -> Any:
    """Return the JSON document in the standard output. Unparseable describes the output and the way to get JSON.

    A key that appears twice in one object is refused, because the valid value is unknown.
    """
    text = stdout.decode(errors="replace")
    if not text.strip():
        raise Unparseable(f"{what} printed nothing to standard output. Run it as '{usage}'")
    try:
        return json.loads(text, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Unparseable(f"{what} did not print JSON ({reason}). Run it as '{usage}'") from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"'{one_line(key, 60)}' appears twice in one object")
        members[key] = value
    return members


def at(document: Any, *keys: str) -> Any:
    """Return the value below these keys, or None if one of the keys is missing."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def entries(document: Any, key: str, what: str) -> list[Any]:
    """Return the list below a key. Raises Unparseable."""
    values = at(document, key)
    if not isinstance(values, list):
        raise Unparseable(f"the JSON of {what} has no list '{key}'")
    return values


def number(document: Any, what: str, *keys: str, scale: float = 1.0) -> float:
    """Return the number below these keys, times ``scale``.

    Raises Unparseable if it is missing or cannot have been measured.
    """
    value = at(document, *keys)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unparseable(f"the JSON of {what} has no number '{'.'.join(keys)}'")
    try:
        scaled = scale * float(value)
    except OverflowError:
        scaled = float("inf")
    if not is_plausible(scaled):
        raise Unparseable(f"'{'.'.join(keys)}' of {what} is {scaled}, which is not a valid measurement")
    return scaled
