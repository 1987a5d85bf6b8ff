"""Sizes, rates, times and shares as people write them in a study file, always with their unit."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ%/]+)\s*")

TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
SIZE_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
RATE_UNITS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
SHARE_UNITS = {"%": 0.01}


def parse_quantity(value: object, units: dict[str, Any], what: str) -> float:
    """A number with a unit as a float in the base unit; ValueError names the units that are understood."""
    known = ", ".join(units)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{what} is written as a number with a unit ({known})")
    if not isinstance(value, str):
        raise ValueError(f"{value} has no unit: {what} is written like {value}{next(iter(units))} ({known})")
    match = _NUMBER.fullmatch(value)
    if match is None:
        raise ValueError(f"'{value}' is not {what}: write a number with a unit ({known})")
    number, unit = match.groups()
    if unit not in units:
        nearest = [name for name in units if name.lower() == unit.lower()]
        hint = f"; did you mean '{number}{nearest[0]}'?" if nearest else ""
        raise ValueError(f"unknown unit '{unit}' in '{value}' (known: {known}){hint}")
    return float(number) * float(units[unit])


def _quantity(units: dict[str, Any], what: str, example: str, *, whole: bool = False) -> Any:
    """The pieces of an annotated type: a validator that parses, and a JSON Schema that editors can check."""

    def parse(value: object) -> float | int:
        number = parse_quantity(value, units, what)
        return round(number) if whole else number

    pattern = r"^\s*[0-9]+(\.[0-9]+)?\s*(" + "|".join(re.escape(unit) for unit in units) + r")\s*$"
    schema = {"type": "string", "pattern": pattern, "examples": [example], "description": what}
    return BeforeValidator(parse), WithJsonSchema(schema)


_DURATION = _quantity(TIME_UNITS, "a time", "10s")
_SIZE = _quantity(SIZE_UNITS, "a size", "1GiB", whole=True)
_RATE = _quantity(RATE_UNITS, "a rate", "10Mbit/s")
_SHARE = _quantity(SHARE_UNITS, "a share", "2%")

Duration = Annotated[float, *_DURATION]
"""Seconds."""
Size = Annotated[int, *_SIZE]
"""Bytes."""
Rate = Annotated[float, *_RATE]
"""Bits per second."""
Share = Annotated[float, *_SHARE]
"""A fraction: 2% is 0.02."""
