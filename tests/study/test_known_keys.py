"""Everywhere in a study file, the message about an unknown key lists the keys that are allowed there."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from weighbridge import registry
from weighbridge.model.study import StudyFile
from weighbridge.study.loader import _OfEnvironment
from weighbridge.study.source import StudyPlace
from weighbridge.study.validated import option_models, validated

PLUGINS = {f"environments: {kind}": plugin.options for kind, plugin in registry.environments().items()} | {
    f"workloads: {kind}": plugin.options for kind, plugin in registry.workloads().items()
}
TOP: dict[str, type[BaseModel]] = {"study": StudyFile, "environment": _OfEnvironment, **PLUGINS}
UNKNOWN = "zzzzzz"


def mappings(
    annotation: Any, place: StudyPlace = ()
) -> Iterator[tuple[StudyPlace, dict[StudyPlace, str], type[BaseModel]]]:
    """Yield each mapping below an annotation: its place, the kinds by the places that name them, and its model."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for kind, model in kinds(annotation):
            named = {place: kind} if kind else {}
            yield place, named, model
            for name, field in model.model_fields.items():
                for inner, others, inner_model in mappings(field.annotation, (*place, field.alias or name)):
                    yield inner, named | others, inner_model
        return
    origin = get_origin(annotation)
    is_collection = isinstance(origin, type) and issubclass(origin, Collection)
    step = () if not is_collection else ("name",) if issubclass(origin, Mapping) else (0,)
    for part in get_args(annotation):
        yield from mappings(part, (*place, *step))


def kinds(model: type[BaseModel]) -> list[tuple[str, type[BaseModel]]]:
    """Return the kinds whose options are subclasses of a model; the model itself if it has no kinds."""
    named = chain.from_iterable(models.items() for models in option_models().values())
    return [(kind, options) for kind, options in named if issubclass(options, model)] or [("", model)]


def data_with(place: StudyPlace, kind_by_place: Mapping[StudyPlace, str], inner: Any) -> Any:
    """Return nested mappings and lists that hold ``inner`` at a place, and name the kinds around it."""
    for end in range(len(place), -1, -1):
        if place[:end] in kind_by_place:
            inner = {"kind": kind_by_place[place[:end]], **inner}
        if end:
            inner = [inner] if isinstance(place[end - 1], int) else {place[end - 1]: inner}
    return inner


PLACES = [(name, *mapping) for name, model in TOP.items() for mapping in mappings(model)]


def test_the_places_reach_into_kinds_mappings_and_options():
    reached = {(name, place, *kinds.values()) for name, place, kinds, _ in PLACES}
    assert reached >= {
        ("study", ("hosts", "name", "images"), "kubernetes"),
        ("study", ("companions", "name", "healthcheck")),
        ("study", ("prometheus", "queries", "name")),
        ("environments: docker", ("storage", "disk"), "volume"),
        ("workloads: command", ("metrics", "name")),
    }


@pytest.mark.parametrize(
    ("top", "place", "kind_by_place", "model"),
    PLACES,
    ids=["-".join(map(str, (name, *place, *kinds.values()))) for name, place, kinds, _ in PLACES],
)
def test_an_unknown_key_is_answered_with_the_known_ones(
    top: str, place: StudyPlace, kind_by_place: Mapping[StudyPlace, str], model: type[BaseModel]
):
    problems: list[tuple[StudyPlace, str]] = []
    assert validated(TOP[top], data_with(place, kind_by_place, {UNKNOWN: 1}), (), problems) is None
    known = [field.alias or name for name, field in model.model_fields.items()]
    assert known
    assert dict(problems)[(*place, UNKNOWN)] == f"unknown key '{UNKNOWN}'. Known keys: {', '.join(known)}"
