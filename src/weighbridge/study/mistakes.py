"""Turns pydantic's errors about a study file into places in the file and sentences for people."""

from collections.abc import Collection, Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from weighbridge.model.level import DISK_SPEED, SITES
from weighbridge.model.options import Options
from weighbridge.model.spelling import nearest
from weighbridge.model.study import Resources
from weighbridge.model.validation import EITHER, NAME_RULE, but_is, is_hidden, sentence, shown, shown_key
from weighbridge.study.source import StudyPlace, plain


def location_of(data: Any, item: Any) -> StudyPlace:
    """Return the part of pydantic's path that is in the file, plus a missing key, without labels of unions."""
    location: StudyPlace = ()
    for part in item["loc"]:
        key = part
        if isinstance(data, Mapping) and part not in data:  # pydantic reports numbers as text
            key = next((name for name in data if str(name) == str(part)), part)
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            continue
        location = (*location, key)
    return (*location, item["loc"][-1]) if item["type"] == "missing" else location


OF_EVERY_KIND = {
    "environments": ("workloads", "userland", "clients", "optional", "resources", "shm_size", "sysctls"),
    "workloads": ("link", SITES, DISK_SPEED),
}
"""The keys of an entry that do not depend on its kind, by section."""


ByKind = Mapping[str, Mapping[str, type[Options]]]
"""The options of each kind, by the section of a study that names the kind."""


def mistake(
    model: type[BaseModel], by_kind: ByKind, data: Any, item: Any, place: StudyPlace, location: StudyPlace
) -> tuple[StudyPlace, str]:
    """Return the place and the sentence for a validation error."""
    value = _value_at(data, location)
    is_key = item["loc"][-1:] == ("[key]",)
    key = next((str(part) for part in reversed(location) if not isinstance(part, int)), "")
    start = f"{shown_key(key)}: " if key and not is_key else ""
    match item["type"]:
        case "extra_forbidden":
            allowed = [
                *_known_keys(model, by_kind, data, location[:-1]),
                *(OF_EVERY_KIND.get(str(place[0]), ()) if len(place) == 2 == len(location) + 1 else ()),
            ]
            hint = _of_resources(place, location) or nearest(key, allowed) or f". Known keys: {', '.join(allowed)}"
            text = f"unknown key '{shown_key(key)}'{hint}"
        case "missing":
            text, location = sentence(item, value), location[:-1]
        case "string_type" if _is_cpu_list(location) and key != "pin":
            text = f'{start}must be CPUs in quotes, like "0" or "0-1"{but_is(value, location)}'
        case _ if _is_cpu_list(location) and key == "pin":
            text = f'pin: must be spread, or {{server: "0", client: "1"}}{but_is(value, location)}'
            text += nearest(value, ["spread"])
        case "string_type" if is_key:
            text = f"the name {shown(item['input'])} is not text: {NAME_RULE}"
        case "model_type" if key == "repetitions" and isinstance(value, int) and not isinstance(value, bool):
            text = f"repetitions: write {{rounds: {shown(value)}}}"
        case kind if kind.endswith(_TYPE_ERRORS) and item["loc"][0] == "explain":
            expected = _EXPLAIN if len(item["loc"]) <= 2 else "a list of mechanisms ([seccomp])"
            text = f"{start}must be {expected}{but_is(value, location)}"
        case "dict_type" | "model_type" if value is None:
            text = f"{start}must be 'key: value' pairs below it, indented further"
        case "list_type" | "tuple_type" if isinstance(value, str) and not is_hidden(value, location):
            text = f"{start}must be a list: [{plain(value, 60)}]"
        case _:
            text = start + sentence(item, item["input"] if is_key else value, sweepable=bool(place))
    return (*place, *location), text


def _of_resources(place: StudyPlace, location: StudyPlace) -> str:
    """Return where a limit belongs that is among the options of an entry, or at the top of the study."""
    inside = (place or location)[0] in ("environments", "workloads") or len(location) == 1
    if not inside or location[-1] not in Resources.model_fields:
        return ""
    return f". Write it as 'resources: {{{location[-1]}: ...}}' in the study or in an environment"


def _is_cpu_list(location: StudyPlace) -> bool:
    return "pin" in location or (location[:1] == ("hosts",) and location[-1] == "cpus")


_TYPE_ERRORS = ("_type", "_parsing", "_from_float", EITHER)
_EXPLAIN = "true, environments ([bridge]) or mechanisms of one ({bridge: [seccomp, own-network]})"


def _value_at(data: Any, location: StudyPlace) -> Any:
    for key in location:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):  # a missing value
            return None
    return data


def _known_keys(annotation: Any, by_kind: ByKind, value: Any, place: StudyPlace) -> list[str]:
    """Return the keys that are allowed at ``place`` within ``value``, whose type is ``annotation``.

    If the options depend on the kind, these are the keys of the kind that ``value`` names. If the type is a union,
    these are the keys of all its models.
    """
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        kind = str(_value_at(value, ("kind",)))
        models = (models[kind] for models in by_kind.values() if kind in models)
        model = next((model for model in models if issubclass(model, annotation)), annotation)
        types = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
        if not place:
            return list(types)
        parts, value, place = (types.get(str(place[0])),), _value_at(value, place[:1]), place[1:]
    else:
        parts, origin = get_args(annotation), get_origin(annotation)
        if place and isinstance(origin, type) and issubclass(origin, Collection):
            value, place = _value_at(value, place[:1]), place[1:]
    return list(dict.fromkeys(key for part in parts for key in _known_keys(part, by_kind, value, place)))
