"""Sweeps: the lists in an entry of a study, every combination of whose values is a level."""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from weighbridge.model.level import CLIENT, Level
from weighbridge.model.options import Factors
from weighbridge.model.validation import is_hidden
from weighbridge.study.mistakes import OF_EVERY_KIND
from weighbridge.study.source import StudyPlace, plain

MOST_LEVELS = 1000
"""The largest number of levels of one entry. More would run for weeks."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A list in an entry: its name, its values, and the keys that lead to it."""

    name: str
    values: tuple[Any, ...]
    place: tuple[Any, ...]


def levels(entry: Mapping[str, Any], model: type[BaseModel]) -> Iterator[tuple[Level, dict[str, Any]]]:
    """Yield every combination of the listed values of an entry: (level, values)."""
    swept = factors(entry, model)
    for combination in itertools.product(*(factor.values for factor in swept)):
        chosen = list(zip(swept, combination, strict=True))
        level = Level((factor.name, _as_written(value)) for factor, value in chosen)
        yield level, _with_values(entry, chosen)


def at_level(entry: Mapping[str, Any], model: type[BaseModel], level: Level) -> dict[str, Any]:
    """Return an entry with the values of one of its levels. All other options stay as they are."""
    level_factors = level.factors
    chosen = [
        (factor, value)
        for factor in factors(entry, model)
        for value in factor.values
        if level_factors.get(factor.name) == _as_written(value)
    ]
    return _with_values(entry, chosen)


def with_own(entry: Mapping[str, Any], model: type[BaseModel], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with some options replaced. In a mapping of factors, single keys are replaced."""
    joined = {
        key: {**entry[key], **value}
        for key, value in own.items()
        if holds_factors(model, key) and isinstance(value, Mapping) and isinstance(entry.get(key), Mapping)
    }
    return {**entry, **own, **joined}


def factors(entry: Mapping[str, Any], model: type[BaseModel]) -> list[Factor]:
    """Return the lists of an entry that sweep something, in their order."""
    swept = []
    for key, value in entry.items():
        if holds_factors(model, key) and isinstance(value, Mapping):
            inner = ((name, each) for name, each in value.items() if isinstance(each, list) and each)
            swept += [Factor(str(name), tuple(each), (key, name)) for name, each in inner]
        elif isinstance(value, list) and value and not takes_list(model, key):
            swept.append(Factor(str(key), tuple(value), (key,)))
    return swept


def sweep_problem(entry: Mapping[str, Any], model: type[BaseModel]) -> tuple[StudyPlace, str] | None:
    """Return the place of the list whose levels make a sweep impossible, and why."""
    swept = factors(entry, model)
    reserved = {*model.model_fields, *OF_EVERY_KIND["workloads"], CLIENT}
    for factor in swept:
        if len(factor.place) > 1 and factor.name in reserved:
            return (
                factor.place,
                f"{factor.name}: the workload already has an option of this name. Choose another name",
            )
        written = [_as_written(level) for level in factor.values]
        if len(set(written)) < len(written):
            twice = next(level for level in written if written.count(level) > 1)
            level = "a level" if is_hidden(twice, factor.place) else f"the level {plain(twice, 60)}"
            return factor.place, f"{factor.name}: {level} is listed twice. Remove one"
    if (count := math.prod(len(factor.values) for factor in swept)) > MOST_LEVELS:
        last = swept[-1]
        return last.place, f"{last.name}: the swept keys make {count} combinations. At most {MOST_LEVELS} are allowed"
    return None


def place_of(entry: Mapping[str, Any], model: type[BaseModel], name: str) -> StudyPlace:
    """Return the keys that lead to the factor of this name."""
    return next(factor.place for factor in factors(entry, model) if factor.name == name)


def takes_list(model: type[BaseModel], key: str) -> bool:
    """Return whether the option accepts a list, so that a list does not sweep it."""
    return key in model.model_fields and _is_list(model.model_fields[key].annotation)


def holds_factors(model: type[BaseModel], key: str) -> bool:
    """Return whether lists inside of this option are factors of their own."""
    return key in model.model_fields and any(isinstance(each, Factors) for each in model.model_fields[key].metadata)


def _is_list(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _is_list(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return any(map(_is_list, get_args(annotation)))
    return origin in (tuple, list, set, frozenset)


def _with_values(entry: Mapping[str, Any], chosen: list[tuple[Factor, Any]]) -> dict[str, Any]:
    values = dict(entry)
    for factor, value in chosen:
        key, *inner = factor.place
        values[key] = {**values[key], inner[0]: value} if inner else value
    return values


def _as_written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
