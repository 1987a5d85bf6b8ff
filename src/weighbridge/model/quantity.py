"""Sizes, rates, times and shares in a study file, always with their unit, and lists of CPUs."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema

from weighbridge.model.options import is_stored
from weighbridge.model.validation import Unit

_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ%/]+)\s*")
TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
SIZE_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
RATE_UNITS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
SHARE_UNITS = {"%": 0.01}
LARGEST = {"a time": 1e8, "a size": 1e15, "a rate": 1e15, "a share": 1e3}
"""The largest plausible values in the base unit, such as three years or a petabyte. Larger ones are typing errors."""
_SHOWN_UNITS = {
    "us", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "%",
}  # fmt: skip
_USUAL = {"a time": "s", "a size": "MiB", "a rate": "Mbit/s"}


def parse_quantity(value: object, units: dict[str, Any], what: str) -> float:
    """Return a number with a unit as a float in the base unit. Raises ValueError with the known units."""
    unit_names = ", ".join(units)
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if what == "a share" and (match is None or match[2] not in units):
        raise ValueError("write a percentage, such as 2%")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{what} needs a number with a unit ({unit_names})")
    if not isinstance(value, str):
        raise ValueError(f"{value} has no unit: write {what} like {value}{_USUAL[what]} ({unit_names})")
    if match is None:
        raise ValueError(f"'{value:.60}' is not {what}: write a number with a unit ({unit_names})")
    number, unit = match.groups()
    if unit not in units:
        meant = [f"'{number}{each}'" for each in _nearest_units(unit, units)]
        hint = f"Did you mean {' or '.join(meant)}?" if meant else f"Known units: {unit_names}"
        raise ValueError(f"unknown unit '{unit:.60}' in '{value:.60}'. {hint}")
    quantity = float(number) * float(units[unit])
    if quantity > LARGEST[what]:
        raise ValueError(f"'{value:.60}' is too large for {what}")
    return quantity


def parse_percent(text: str) -> float:
    """Return a percentage that is not negative, in percent: 3.0 for "3%". Raises ValueError for any other text."""
    match = _NUMBER.fullmatch(text)
    if match is None or match[2] != "%" or float(match[1]) > 100 * LARGEST["a share"]:
        raise ValueError(f"'{text:.60}' is not a percentage: write it like 3%")
    return float(match[1])


def _stored(value: object, what: str) -> float:
    """Return a number that was checked and stored, in the base unit. Raises ValueError if it cannot have been."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST[what]:
        raise ValueError(f"{value!r:.60} is not {what} in its base unit")
    return value


def _nearest_units(unit: str, units: dict[str, Any]) -> list[str]:
    """Return the units that were probably meant: other case, a longer word (minutes), a typing error, MB for M."""
    by_lower = {name.lower(): name for name in reversed(units)}
    word = unit.lower()
    if word in by_lower:
        return [by_lower[word]]
    if len(word) == 1:  # 'm' can be a minute or a millisecond: a wrong guess is worse than the list
        return [by_lower[each] for each in (f"{word}b", f"{word}ib") if each in by_lower]
    begins = sorted((name for name in by_lower if word.startswith(name)), key=len)
    nearest = begins[-1:] or get_close_matches(word, by_lower, n=1)
    return [by_lower[each] for each in nearest]


def _quantity(units: dict[str, Any], what: str, example: str, *, integer: bool = False) -> Any:
    """Return the pieces of an annotated type: a validator that parses, and a JSON Schema that editors can check."""

    def parse(value: object, info: ValidationInfo) -> float | int:
        number = _stored(value, what) if is_stored(info) else parse_quantity(value, units, what)
        return round(number) if integer else number

    pattern = r"^\s*[0-9]+(\.[0-9]+)?\s*(" + "|".join(re.escape(unit) for unit in units) + r")\s*$"
    schema = {"type": "string", "pattern": pattern, "examples": [example], "description": what}
    return BeforeValidator(parse), unit_of(units), WithJsonSchema(schema)


def unit_of(units: Mapping[str, float]) -> Unit:
    """Return the units in which bounds are shown, smallest first."""
    return Unit(tuple((unit, units[unit]) for unit in units if unit in _SHOWN_UNITS))


def _packet_size() -> Any:
    def parse(value: object, info: ValidationInfo) -> object:
        if value == "mtu":
            return value
        return round(_stored(value, "a size") if is_stored(info) else parse_quantity(value, SIZE_UNITS, "a size"))

    units = "|".join(re.escape(unit) for unit in SIZE_UNITS)
    schema = {
        "type": "string",
        "pattern": rf"^(mtu|\s*[0-9]+(\.[0-9]+)?\s*({units})\s*)$",
        "examples": ["1468B", "mtu"],
        "description": "a size, or mtu: the largest UDP payload that does not fragment on the path, probed",
    }
    return BeforeValidator(parse), unit_of(SIZE_UNITS), WithJsonSchema(schema)


_DURATION = _quantity(TIME_UNITS, "a time", "10s")
_SIZE = _quantity(SIZE_UNITS, "a size", "1GiB", integer=True)
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
PacketSize = Annotated[int | Literal["mtu"], *_packet_size()]
"""Bytes of UDP payload, or ``mtu``: the largest that does not fragment on the path (``Endpoint.udp_payload``)."""
MOST_CPUS = 8192
_RANGE = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")


def cpus_in(listed: str) -> list[int]:
    """Return the CPUs in a list: "0-1,3" is [0, 1, 3]. Raises ValueError if it is not a list, or too long."""
    ranges = [_RANGE.fullmatch(part) for part in listed.split(",")]
    ends = [(int(each[1]), int(each[2] or each[1])) for each in ranges if each]
    counts = [last - first + 1 for first, last in ends]
    # summed before any range is expanded: a short text can name more numbers than fit into memory
    if len(ends) < len(ranges) or min(counts) < 1 or sum(counts) > MOST_CPUS or max(ends)[1] >= MOST_CPUS:
        raise ValueError(f"'{listed:.60}' is not a list of CPUs: write it like 0 or 0-1 or 0,2")
    return [cpu for first, last in ends for cpu in range(first, last + 1)]


def _list_of_cpus(listed: str) -> str:
    cpus_in(listed)
    return listed


CpuList = Annotated[
    str,
    AfterValidator(_list_of_cpus),
    Field(examples=["0", "0-1"], json_schema_extra={"pattern": r"^\d{1,4}([,-]\d{1,4})*$"}),
]
