"""Words for users about data that a pydantic model does not accept."""

from collections.abc import Callable, Mapping
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core.core_schema import ErrorType

from weighbridge.model.text import one_line

_OF_PYDANTIC = {*get_args(ErrorType)}
_LONGEST = 60
"""Characters of a key that are shown."""
_TYPES = {
    "bool": "true or false", "int": "a whole number", "float": "a number", "finite": "a finite number",
    "string": "text", "list": "a list", "tuple": "a list", "dict": "an object", "model": "an object",
    "mapping": "an object", "none": "null", "json": "JSON",
}  # fmt: skip
_OF_TYPES = ("_type", "_parsing", "_from_float", "_number", "_invalid")
_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "missing": lambda _: "it is missing",
    "extra_forbidden": lambda _: "it is unknown",
    "literal_error": lambda context: f"expected {context['expected']}",
    "enum": lambda context: f"expected {context['expected']}",
    "greater_than": lambda context: f"expected more than {context['gt']:g}",
    "greater_than_equal": lambda context: f"expected at least {context['ge']:g}",
    "less_than": lambda context: f"expected less than {context['lt']:g}",
    "less_than_equal": lambda context: f"expected at most {context['le']:g}",
    "value_error": lambda context: str(context["error"]),
}


def first_problem(error: ValidationError) -> tuple[tuple[int | str, ...], str]:
    """Return the location of the first problem, and a description of it that uses none of pydantic's words."""
    first = error.errors(include_url=False, include_input=False)[0]
    kind, location = first["type"], first["loc"]
    place = tuple(one_line(part, _LONGEST) if isinstance(part, str) else part for part in location if part != "[key]")
    if kind not in _OF_PYDANTIC:
        return place, first["msg"]  # our own words
    if kind in _WORDS:
        return place, _WORDS[kind](first.get("ctx", {}))
    expected = _TYPES.get(kind.split("_")[0]) if kind.endswith(_OF_TYPES) else None
    return place, f"expected {expected}" if expected else "its value is not allowed"


def problem_of(error: ValidationError) -> str:
    """Return the first problem as ``LOCATION: DESCRIPTION``."""
    location, problem = first_problem(error)
    place = ".".join(map(str, location))
    return f"{place}: {problem}" if place else problem
