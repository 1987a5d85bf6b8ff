"""The level of a workload: the value of each swept factor, and its text."""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, Json, TypeAdapter
from pydantic_core import CoreSchema, core_schema

_FACTORS: TypeAdapter[dict[str, str]] = TypeAdapter(Json[dict[str, str]])


class Level(tuple[tuple[str, str], ...]):
    """The swept factors of one cell with their values as written, sorted by factor; empty if nothing is swept.

    Levels with the same factors are equal, so a level can be part of a key. A stored study has it as a list of pairs;
    the tables and decisions of a run have its `text`.
    """

    __slots__ = ()

    def __new__(cls, factors: Iterable[tuple[str, str]] = ()) -> "Level":
        """Create a level from factors with their values, in any order."""
        return super().__new__(cls, sorted(factors))

    @classmethod
    def from_text(cls, text: str) -> "Level":
        """Read a level's `text`. Raises ValueError (pydantic's ValidationError) if it is something else."""
        return _read(text)

    @property
    def text(self) -> str:
        """The JSON of its factors, an empty object if nothing is swept."""
        return _written(self)

    @property
    def factors(self) -> dict[str, str]:
        """The value of each factor, by its name."""
        return dict(self)

    @property
    def label(self) -> str:
        """The label for users: ``clients=50, size=1KiB``; empty if nothing is swept."""
        return level_label(self)

    def value_of(self, factor: str) -> str | None:
        """Return the value of a factor; None if the factor is not swept."""
        return next((value for name, value in self if name == factor), None)

    def with_value(self, factor: str, value: str) -> "Level":
        """Return the level with one more factor."""
        return Level((*self, (factor, value)))

    def without(self, factor: str) -> "Level":
        """Return the level without a factor."""
        return Level(pair for pair in self if pair[0] != factor)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        pairs = handler.generate_schema(tuple[tuple[str, str], ...])
        return core_schema.no_info_after_validator_function(cls, pairs)


NO_LEVEL = Level()
"""The level of a workload without swept factors."""


@lru_cache(1024)  # a run has few levels, and each of its rows names one
def _read(text: str) -> Level:
    return Level(_FACTORS.validate_python(text).items())


@lru_cache(1024)
def _written(level: Level) -> str:
    return json.dumps(dict(level), sort_keys=True)


class _AsText:
    """Marks an annotation: the model reads and writes the level as its text."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        read = core_schema.no_info_after_validator_function(Level.from_text, core_schema.str_schema())
        return core_schema.no_info_wrap_validator_function(
            lambda raw, read: raw if isinstance(raw, Level) else read(raw),
            read,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda level: level.text, return_schema=core_schema.str_schema()
            ),
        )


LevelText = Annotated[Level, _AsText()]
"""A level in a model that stores its `Level.text`."""


def level_label(factors: Mapping[str, object] | Iterable[tuple[str, object]]) -> str:
    """Return factors with their values in this order, as text for users: ``clients=50, size=1KiB``."""
    pairs = factors.items() if isinstance(factors, Mapping) else factors
    return ", ".join(f"{factor}={value}" for factor, value in pairs)


DISK_SPEED = "disk_speed"
"""The factor of a level with the speed of the data disks, if the study sweeps it."""
SITES = "sites"
"""The factor of a level with the number of sites in which a workload runs at a time, if the study sweeps it."""
CLIENT = "client"
"""The factor of a level with the host of the client, if the study's placement sweeps it."""
