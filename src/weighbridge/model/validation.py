"""Sentences for users about data that a pydantic model does not accept. None of them uses pydantic's own words.

A sentence shows no list, no mapping, and no value that can be a secret (`weighbridge.model.secret`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, time
from functools import cache
from typing import Any, get_args

from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ErrorType

from weighbridge.model.address import grouped
from weighbridge.model.secret import is_ordinary, is_secret_place, is_secret_text
from weighbridge.model.spelling import nearest
from weighbridge.model.text import one_line

NAME_PATTERN = r"^[A-Za-z][A-Za-z0-9_.-]{0,39}$"
NAME_RULE = "a name starts with a letter and has at most 40 letters, digits, '-', '_' and '.'"
EITHER = "either"
"""The type of an error that stands for the errors of each form that a value can have."""
ALLOWED = "allowed"
"""The key of an error's context with the numbers that an option allows, in words: ``at least 512 MiB``."""
_OF_PYDANTIC = {*get_args(ErrorType)}
_LONGEST = 60
"""The most characters of a key or a value that a sentence shows."""
_MOST_BITS = 10_000
"""Python does not print whole numbers with many more bits."""
_SCALARS = (str, bytes, int, float, date, time, type(None))
_NOUNS = {
    "bool": "true or false", "int": "a whole number", "float": "a number", "finite": "a finite number",
    "string": "text", "bytes": "text", "list": "a list", "tuple": "a list", "set": "a list", "frozen": "a list",
    "named": "a list", "iterable": "a list", "dict": "'key: value' pairs", "model": "'key: value' pairs",
    "dataclass": "'key: value' pairs", "mapping": "'key: value' pairs", "none": "empty", "json": "valid JSON",
    "date": "a date like 2026-01-31", "time": "a time of day like 13:45:00",
    "datetime": "a date and a time like 2026-01-31T13:45:00Z", "url": "a URL", "uuid": "a UUID",
    "decimal": "a number", "fraction": "a fraction", "complex": "a complex number",
}  # fmt: skip
_BOUNDS = {
    "greater_than": ("more than", "gt"), "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"), "less_than_equal": ("at most", "le"),
    "multiple_of": ("a multiple of", "multiple_of"),
}  # fmt: skip
_LENGTHS = {
    "too_short": ("at least", "min_length", "entry", "entries"),
    "too_long": ("at most", "max_length", "entry", "entries"),
    "string_too_short": ("at least", "min_length", "character", "characters"),
    "string_too_long": ("at most", "max_length", "character", "characters"),
    "bytes_too_short": ("at least", "min_length", "byte", "bytes"),
    "bytes_too_long": ("at most", "max_length", "byte", "bytes"),
    "url_too_long": ("at most", "max_length", "character", "characters"),
}


@dataclass(frozen=True, slots=True)
class Unit:
    """The units of a quantity, smallest first. In the annotation of an option it says how bounds are shown."""

    factors: tuple[tuple[str, float], ...]

    def text(self, number: float) -> str:
        """Return a number of the base unit in the largest unit in which it is whole: 16777216 is ``16 MiB``."""
        if number == 0:
            return "0"
        amounts = [(round(number / factor, 9), unit) for unit, factor in reversed(self.factors)]
        integers = (each for each in amounts if each[0] >= 1 and each[0] == int(each[0]))
        amount, unit = next(integers, amounts[-1])
        return f"{amount:.12g}{'' if unit == '%' else ' '}{unit}"


def first_problem(error: ValidationError) -> tuple[tuple[int | str, ...], str]:
    """Return the location of the first problem, and a sentence about it that begins without the location."""
    first = error.errors(include_url=False)[0]
    return _place(first), sentence(first, first["input"])


def problem_of(error: ValidationError) -> str:
    """Return the first problem as ``LOCATION: SENTENCE``."""
    return _located(error.errors(include_url=False)[0])


def problems_of(error: ValidationError) -> list[str]:
    """Return every problem as ``LOCATION: SENTENCE``."""
    return [_located(item) for item in error.errors(include_url=False)]


def _place(item: ErrorDetails) -> tuple[int | str, ...]:
    parts = item["loc"]
    if parts[-1:] == ("[key]",):  # the key itself is the wrong value
        parts = parts[: -2 if is_secret_place(parts[:-2]) else -1]
    return tuple(shown_key(part) if isinstance(part, str) else part for part in parts if part != "[key]")


def _located(item: ErrorDetails) -> str:
    place, problem = _place(item), sentence(item, item["input"])
    if place and item["type"] in ("missing", "extra_forbidden"):  # the sentence names the key itself
        place = place[:-1]
    start = ".".join(map(str, place))
    return f"{start}: {problem}" if start else problem


def sentence(item: ErrorDetails, value: Any, *, sweepable: bool = False) -> str:
    """Return a sentence about an error: what is allowed, and ``value``. ``sweepable``: a list is allowed, too."""
    kind, context = item["type"], item.get("ctx", {})
    key = shown_key(item["loc"][-1]) if item["loc"] else ""
    hidden = is_hidden(value, item["loc"])
    text = ""
    match kind:
        case _ if kind not in _OF_PYDANTIC and kind != EITHER:
            text = _without_hidden(item["msg"], value, item["loc"])  # a sentence of ours
        case "value_error" | "assertion_error":
            text = _without_hidden(str(context["error"]), value, item["loc"])
        case "missing":
            text = f"'{key}' is missing"
        case "extra_forbidden":
            text = f"unknown key '{key}'"
        case "frozen_instance" | "frozen_field":
            text = "cannot be changed"
        case "literal_error" | "enum":
            words = [word.strip(" '") for word in context["expected"].replace(" or ", ",").split(",")]
            end = f"{but_is(value, item['loc'])}{nearest(value, words, slips_only=True)}"
            text = f"must be {context['expected']}{end}"
        case "json_invalid":  # its value is a whole document
            text = f"must be {_NOUNS['json']}"
        case "string_pattern_mismatch" if hidden:
            is_name = context["pattern"] == NAME_PATTERN
            text = f"must be a name: {NAME_RULE}" if is_name else f"must match the pattern {context['pattern']}"
        case "string_pattern_mismatch" if context["pattern"] == NAME_PATTERN:
            text = f"{shown(value)} is not a name: {NAME_RULE}"
        case "string_pattern_mismatch":
            text = f"{shown(value)} does not match the pattern {context['pattern']}"
    if text:
        return text
    sweepable = sweepable and not (value and isinstance(value, list))
    is_length = kind in _LENGTHS and hasattr(value, "__len__")
    end = f", not {len(value)}" if is_length else but_is(value, item["loc"])
    return f"must {_must(kind, context, sweepable=sweepable)}{end}"


def _must(kind: str, context: Mapping[str, Any], *, sweepable: bool) -> str:
    allowed = context.get(ALLOWED, "")
    if kind == EITHER:
        return f"be {context['expected']}"
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"be {allowed or f'{words} {_number(context[bound])}'}"
    if kind in _LENGTHS:
        words, bound, one, several = _LENGTHS[kind]
        number = context[bound]
        return f"have {words} {number} {one if number == 1 else several}"
    noun = _NOUNS.get(kind.split("_", maxsplit=1)[0], "")
    if noun == "a whole number" and sweepable:
        return f"be {noun_of(noun, allowed)}, or a list to sweep: [10, 50]"
    return f"be {noun_of(noun, allowed)}" if noun else "be another value"


def noun_of(noun: str, allowed: str) -> str:
    """Return ``a whole number of at least 1`` or ``a whole number from 1 to 9``."""
    return f"{noun} {'' if allowed.startswith('from') else 'of '}{allowed}" if allowed else noun


def but_is(value: Any, place: Iterable[object]) -> str:
    """Return ``, not VALUE`` for the end of a sentence; empty if the value at this place is not to be shown."""
    return "" if is_hidden(value, place) else f", not {shown(value)}"


def is_hidden(value: Any, place: Iterable[object]) -> bool:
    """Return whether a value can be a secret, by its place or text; of lists and mappings, only the type is shown."""
    if value is None or not isinstance(value, _SCALARS):
        return False
    return is_secret_place(place) or (isinstance(value, str | bytes) and is_secret_text(str(value)))


def shown(value: Any) -> str:
    """Return a value that is not `is_hidden` as it is shown in a sentence: text in quotes, and not too long."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "empty"
    if not isinstance(value, _SCALARS):
        noun = "mapping" if isinstance(value, Mapping | BaseModel) else "list"
        return f"a {noun}" if value else f"an empty {noun}"
    try:
        text = " ".join(str(value).split())
    except ValueError:  # a whole number with more digits than Python prints
        return "a very long number"
    text = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return f"'{text}'" if isinstance(value, str | bytes) else text


def shown_key(key: Any) -> str:
    """Return a key as it is shown: of ``PASSWORD=VALUE``, only the name."""
    text = str(key)
    if not is_secret_text(text):
        return one_line(text, _LONGEST)
    name, equals, _ = text.partition("=")
    if equals and re.fullmatch(r"[\w.-]+", name):
        return f"{one_line(name, _LONGEST)}=..."
    return one_line(text, _LONGEST) if re.fullmatch(r"[\w.-]+", text) else "..."


def _without_hidden(text: str, value: Any, place: Iterable[object]) -> str:
    """Return a sentence without the hidden values that it shows, in full, shortened or in part."""
    for hidden in _hidden_in(value, tuple(place)):
        forms = {hidden, one_line(hidden), *(hidden[:width] for width in (200, 120, _LONGEST))}
        for form in sorted(filter(None, forms), key=len, reverse=True):
            text = text.replace(f"'{form}'", "'...'")
            text = text if is_ordinary(form) else text.replace(form, "...")
        for part in re.findall(r"'([^']{4,})'", text):
            text = text.replace(f"'{part}'", "'...'") if part in hidden else text
    return text


def _hidden_in(value: Any, place: tuple[object, ...]) -> Iterator[str]:
    """Yield the hidden values in what a YAML file has, which can contain itself."""
    waiting, visited = [(value, place)], set()
    while waiting:
        each, at = waiting.pop()
        if isinstance(each, Mapping | list | tuple):
            if id(each) in visited:
                continue
            visited.add(id(each))
            if isinstance(each, Mapping):
                waiting += [pair for key, entry in each.items() for pair in ((key, ()), (entry, (*at, key)))]
            else:
                waiting += [(entry, at) for entry in each]
        elif is_hidden(each, at) and not (isinstance(each, int) and each.bit_length() > _MOST_BITS):
            yield str(each)


def _number(number: Any) -> str:
    return f"{number:.12g}" if isinstance(number, float) else str(number)


def with_allowed(model: type[BaseModel], written: Mapping[Any, Any], error: ValidationError) -> ValidationError:
    """Return the error with what each option of ``model`` allows, and with its value as it was ``written``.

    The errors of the forms that one option can have (``auto``, or a whole number) become one.
    """
    items = error.errors(include_url=False)
    by_key = grouped(items, lambda item: item["loc"][:1])
    errors = [each for items_of_key in by_key.values() for each in _of_option(model, written, items_of_key)]
    return ValidationError.from_exception_data(error.title, errors)


def _of_option(
    model: type[BaseModel], written: Mapping[Any, Any], items: list[ErrorDetails]
) -> Iterator[InitErrorDetails]:
    key = str(items[0]["loc"][0]) if items[0]["loc"] else ""
    allowed = _allowed(model).get(key)
    if allowed is None or key not in written:
        yield from map(_again, items)
        return
    value = written[key]
    simple = isinstance(value, str | int | float)
    forms = [_form(item, allowed) for item in items]
    if simple and len(items) > 1 and all(len(item["loc"]) == 2 for item in items) and all(forms):
        merged = PydanticCustomError(EITHER, "{expected}", {"expected": " or ".join(dict.fromkeys(forms))})
        yield InitErrorDetails(type=merged, loc=(key,), input=value)
        return
    for item in items:
        if len(item["loc"]) > 1 or not allowed or (item["type"] not in _BOUNDS and not _is_number(item["type"])):
            yield _again(item)
            continue
        context = {**item.get("ctx", {}), ALLOWED: allowed}
        bounded = PydanticCustomError(item["type"], "{allowed}", context)
        yield InitErrorDetails(type=bounded, loc=item["loc"], input=value)


def _is_number(kind: str) -> bool:
    return kind.startswith(("int_", "float_"))


def _form(item: ErrorDetails, allowed: str) -> str:
    """Return one form that a value could have had; empty if it cannot be said in a few words."""
    kind, context = item["type"], item.get("ctx", {})
    if kind in ("literal_error", "enum"):
        return str(context["expected"])
    if kind in _BOUNDS or _is_number(kind):
        return noun_of(_NOUNS["float" if kind.startswith("float") else "int"], allowed)
    return _NOUNS.get(kind.split("_")[0], "")


def _again(item: ErrorDetails) -> InitErrorDetails:
    """Return the same error for another ValidationError."""
    kind, context = item["type"], item.get("ctx", {})
    if kind in _OF_PYDANTIC and ALLOWED not in context:
        return InitErrorDetails(type=kind, loc=item["loc"], input=item["input"], ctx=context)
    custom = PydanticCustomError(kind, item["msg"], context)
    return InitErrorDetails(type=custom, loc=item["loc"], input=item["input"])


@cache
def _allowed(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the numbers that each option allows, in words; empty for an option without bounds."""
    return {
        key: _range(field)
        for name, field in model.model_fields.items()
        for key in (
            field.validation_alias.choices
            if isinstance(field.validation_alias, AliasChoices)  # a key and its old name
            else (field.alias or name,)
        )
        if isinstance(key, str)
    }


def _range(field: FieldInfo) -> str:
    metadata = [*field.metadata, *_metadata(field.annotation)]
    unit = next((each for each in metadata if isinstance(each, Unit)), None)

    def text(number: Any) -> str:
        return unit.text(number) if unit else _number(number)

    bounds = {
        bound: getattr(each, bound)
        for each in metadata
        for bound in ("gt", "ge", "lt", "le")
        if getattr(each, bound, None) is not None
    }
    if {"ge", "le"} <= bounds.keys():
        return f"from {text(bounds['ge'])} to {text(bounds['le'])}"
    words = {bound: word for word, bound in _BOUNDS.values()}
    return " and ".join(
        f"{words[bound]} {text(bounds[bound])}" for bound in ("gt", "ge", "lt", "le") if bound in bounds
    )


def _metadata(annotation: Any) -> Iterator[Any]:
    """Yield the metadata of an optional type, or of a union."""
    for part in get_args(annotation):
        own = getattr(part, "__metadata__", ())
        for each in own:
            yield from each.metadata if isinstance(each, FieldInfo) else (each,)
        if own:
            yield from _metadata(part)
