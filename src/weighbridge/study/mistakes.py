"""What pydantic finds wrong in a study file, as a place in the file and a sentence for people."""

from collections.abc import Collection, Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from weighbridge.model.options import NAME_PATTERN, Options
from weighbridge.model.quantity import RATE_UNITS, SHARE_UNITS, SIZE_UNITS, TIME_UNITS
from weighbridge.model.study import DISK_SPEED, SITES, Resources
from weighbridge.study.source import Place, nearest, plain

_NAME_RULE = "a name starts with a letter and has at most 40 letters, digits, '-', '_' and '.'"


def location_of(data: Any, item: Any) -> Place:
    """The part of pydantic's path that is in the file, and a key that is missing there: no labels of unions."""
    location: Place = ()
    for part in item["loc"]:
        key = part
        if isinstance(data, Mapping) and part not in data:  # keys that are no text are reported as text
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
"""What an entry of a section may say, whatever its kind."""


ByKind = Mapping[str, Mapping[str, type[Options]]]
"""The options of each kind, by the section of a study that names the kind."""


def sentence(
    model: type[BaseModel], by_kind: ByKind, data: Any, item: Any, place: Place, location: Place
) -> tuple[Place, str]:
    """One validation error as a place and a sentence."""
    value = _value_at(data, location)
    written = plain(str(value).lower() if isinstance(value, bool) else value, 60)
    quoted = f"'{written}'" if isinstance(value, str) else written
    key = next((str(part) for part in reversed(location) if not isinstance(part, int)), "")
    start = f"{key}: " if key else ""
    match item["type"]:
        case "extra_forbidden":
            allowed = [
                *_known_keys(model, by_kind, data, location[:-1]),
                *(OF_EVERY_KIND.get(str(place[0]), ()) if len(place) == 2 == len(location) + 1 else ()),
            ]
            hint = _of_resources(place, location) or nearest(key, allowed) or f"; known: {', '.join(allowed)}"
            text = f"unknown key '{key}'{hint}"
        case "missing":
            text, location = f"'{key}' is missing", location[:-1]
        case kind if _is_cpu_list(location) and item["loc"][-1] != "[key]":
            text = _told_of_cpus(kind, key, written, quoted)
        case "unknown_kind":
            kind, kinds = plain(item["ctx"]["tag"], 60), item["ctx"]["known"]
            text = f"{start}unknown kind '{kind}'{nearest(kind, kinds.split(', ')) or f'; known: {kinds}'}"
        case "without_kind":
            text = f"{start}{item['msg']}"
        case "literal_error":
            expected = item["ctx"]["expected"]
            words = [word.strip(" '") for word in expected.replace(" or ", ",").split(",")]
            wrong = plain(item["input"], 60)  # a key's own name, where it is the key that is wrong
            text = f"{key}: '{wrong}' is not one of {expected}{nearest(wrong, words)}"
        case "value_error":
            text = f"{start}{item['ctx']['error']}".replace("% (%)", "%")  # its only unit needs no list
        case "string_pattern_mismatch":
            is_key = item["loc"][-1] == "[key]"
            is_name = is_key or key in ("study", "baseline", "client", "server", "ladder")
            pattern = item["ctx"]["pattern"]
            rule = _NAME_RULE if is_name else "not a valid value"
            rule = f"a name here matches {pattern}" if is_key and pattern != NAME_PATTERN else rule
            text = f"'{plain(item['input'], 60)}'{'' if is_key else f' in {key}'}: {rule}"
        case "string_type" if item["loc"][-1] == "[key]":
            text = f"the name {plain(item['input'], 60)} is not text: {_NAME_RULE}"
        case "model_type" if key == "repetitions" and isinstance(value, int) and not isinstance(value, bool):
            text = f"repetitions: write {{rounds: {written}}}"
        case "dict_type" | "model_type":
            instead = "below it, indented further" if value is None else f"here, not '{written}'"
            text = f"{key}: write 'key: value' pairs {instead}"
        case _:
            text = start + (_expected(item, value, quoted, sweepable=bool(place)) or _as_pydantic_says(item, written))
    return (*place, *location), text


def _of_resources(place: Place, location: Place) -> str:
    """Where limits are to be written that stand in an environment's or a workload's own options, or at the top."""
    inside = (place or location)[0] in ("environments", "workloads") or len(location) == 1
    if not inside or location[-1] not in Resources.model_fields:
        return ""
    return f": write it as 'resources: {{{location[-1]}: ...}}', in the study or in an environment"


def _is_cpu_list(location: Place) -> bool:
    return "pin" in location or (location[:1] == ("hosts",) and location[-1] == "cpus")


def _told_of_cpus(kind: str, key: str, written: str, quoted: str) -> str:
    if key == "pin":
        return f'pin: spread, or {{server: "0", client: "1"}}, not {quoted}{nearest(written, ["spread"])}'
    if kind == "string_type":
        return f'{key}: write CPUs in quotes, like "0" or "0-1", not {quoted}'
    return f"{key}: '{written}' is not a list of CPUs: write it like 0, 0-1 or 0,2"


_TYPES = {
    "bool": "true or false", "int": "a whole number", "float": "a number", "string": "text",
    "list": "a list", "tuple": "a list",
}  # fmt: skip
_EXPLAIN = "true, environments ([bridge]) or mechanisms of one ({bridge: [seccomp, own-network]})"
_BOUNDS = {
    "greater_than": ("more than", "gt"), "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"), "less_than_equal": ("at most", "le"),
}  # fmt: skip


def _expected(item: Any, value: Any, quoted: str, *, sweepable: bool) -> str:
    """What is expected instead of ``value``; empty where pydantic has to say it."""
    kind, context = item["type"], item.get("ctx", {})
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"{words} {_with_unit(context[bound], quoted)}, not {quoted}"
    if kind in ("too_long", "too_short", "string_too_short"):
        return _of_length(kind, context, value)
    expected = _TYPES.get(kind.split("_")[0])
    if item["loc"][0] == "explain":
        expected = _EXPLAIN if len(item["loc"]) <= 2 else "a list of mechanisms ([seccomp])"
    if expected is None or not kind.endswith(("_type", "_parsing", "_from_float")):
        return ""
    if expected == "a list":
        return f"a list is expected: [{plain(value, 60)}]" if isinstance(value, str) else "a list is expected"
    if expected == "text":
        return f"text is expected, not {quoted}"
    if expected == "a whole number" and sweepable:
        expected += ", or a list to sweep: [10, 50]"
    return f"{expected}, not {quoted}"


def _of_length(kind: str, context: Mapping[str, Any], value: Any) -> str:
    if kind == "too_long":
        return f"at most {context['max_length']} entries, not {len(value)}"
    least = context["min_length"]
    one, several = ("character", "characters") if kind == "string_too_short" else ("entry", "entries")
    return f"at least {least} {one if least == 1 else several} {'is' if least == 1 else 'are'} needed"


def _as_pydantic_says(item: Any, written: str) -> str:
    return f"{item['msg'][0].lower()}{item['msg'][1:]} (it is {written})"


def _with_unit(bound: float, written: str) -> str:
    """A bound in the unit family in which the value is written: 16777216 as 16MiB."""
    unit = written.strip("'").lstrip(" .0123456789").strip()
    families: tuple[tuple[Mapping[str, float], tuple[str, ...]], ...] = (
        (SIZE_UNITS, ("GiB", "MiB", "KiB", "B")),
        (TIME_UNITS, ("h", "min", "s", "ms", "us")),
        (RATE_UNITS, ("Gbit/s", "Mbit/s", "kbit/s", "bit/s")),
        (SHARE_UNITS, ("%",)),
    )
    for units, shown in families:
        if written.startswith("'") and unit in units:
            best = next((name for name in shown if bound >= units[name]), shown[-1])
            return f"{round(bound / units[best], 9):g}{best}"
    return f"{bound:g}" if isinstance(bound, float) else str(bound)


def _value_at(data: Any, location: Place) -> Any:
    for key in location:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):  # what is missing
            return None
    return data


def _known_keys(annotation: Any, by_kind: ByKind, value: Any, place: Place) -> list[str]:
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
