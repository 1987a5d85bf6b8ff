"""Validates data of a study file, and reports every mistake as a place and a sentence."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from weighbridge import registry
from weighbridge.model.options import Options
from weighbridge.model.plugin import Plugin
from weighbridge.model.spelling import nearest
from weighbridge.study.mistakes import location_of, mistake
from weighbridge.study.source import StudyPlace

M = TypeVar("M", bound=BaseModel)


def option_models() -> Mapping[str, Mapping[str, type[Options]]]:
    """Return the option models of all plug-ins that options of a study can contain, by section and kind."""
    return {
        "adapter": _OptionModels(registry.adapters()),
        "hosts": _OptionModels(registry.hosts()),
        "storage": _OptionModels(registry.storage()),
        "userland": _OptionModels(registry.userlands()),
    }


class _OptionModels(Mapping[str, type[Options]]):
    """The option models of plug-ins by kind, and by the aliases of a storage. Loads only plug-ins that it needs."""

    def __init__(self, plugins: Mapping[str, Plugin]) -> None:
        self._plugins = plugins

    def __getitem__(self, name: str) -> type[Options]:
        named = name if name in self._plugins else self._names[name]
        return self._plugins[named].options

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @cached_property
    def _names(self) -> Mapping[str, str]:
        every = self._plugins.items()
        return {name: kind for kind, each in every for name in (kind, *getattr(each, "aliases", ()))}


def _is_misspelt(missing: StudyPlace, mistakes: Mapping[StudyPlace, tuple[StudyPlace, str]]) -> bool:
    """Return whether another mistake already suggests the missing key for an unknown key."""
    *_, key = missing
    return any(
        other[:-1] == missing[:-1] and text.endswith(hint)
        for other, (_, text) in mistakes.items()
        if (hint := nearest(other[-1], [key]))
    )


def validated(model: type[M], data: Any, place: StudyPlace, problems: list[tuple[StudyPlace, str]]) -> M | None:
    """Return the checked data, or None after adding the mistakes to ``problems``."""
    by_kind = option_models()
    try:
        return model.model_validate(data, context=by_kind)
    except ValidationError as error:
        mistakes: dict[StudyPlace, tuple[StudyPlace, str]] = {}
        missing: set[StudyPlace] = set()
        for item in error.errors():
            location = location_of(data, item)
            mistakes.setdefault(location, mistake(model, by_kind, data, item, place, location))
            if item["type"] == "missing":
                missing.add(location)
        for location in [each for each in missing if _is_misspelt(each, mistakes)]:
            del mistakes[location]
        inner = {location[:end] for location in mistakes for end in range(1, len(location))}
        problems += [mistake for location, mistake in mistakes.items() if location not in inner]
        return None
