"""From a study file to a checked Study: every sweep expanded, every mistake told with file, line and key."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar, get_origin

from pydantic import BaseModel, ValidationError

from weighbridge import registry
from weighbridge.errors import StudyError
from weighbridge.model.plugin import Plugin
from weighbridge.model.study import Arm, Cell, Level, Options, Study, StudyFile
from weighbridge.study.source import Place, Source, nearest, read

AA_SUFFIX = "-again"
M = TypeVar("M", bound=BaseModel)


def load(study: str) -> Study:
    """The study of a bundled name or a path. StudyError lists every mistake, a line each."""
    return check(read(study))


def check(source: Source) -> Study:
    """Check a parsed study file. StudyError lists every mistake, a line each."""
    problems: list[tuple[Place, str]] = []
    file = _validate(StudyFile, source.data, (), problems)
    arms: list[Arm] = []
    cells: list[Cell] = []
    if file is not None:
        for name, level, kind, options in _expand("environments", source, file, registry.environments(), problems):
            arms.append(Arm(name=_swept_name(name, level), kind=kind, options=options))
        for name, level, kind, options in _expand("workloads", source, file, registry.workloads(), problems):
            cells.append(Cell(workload=name, kind=kind, level=level, options=options))
        problems += _contradictions(file, arms, cells)
    if problems or file is None:
        raise StudyError("\n".join(f"{source.where(place)}: {message}" for place, message in problems))
    if file.aa:
        again = next(arm for arm in arms if arm.name == file.baseline)
        arms.append(again.model_copy(update={"name": file.baseline + AA_SUFFIX, "aa_of": file.baseline}))
    return Study(text=source.text, file=file, arms=tuple(arms), cells=tuple(cells))


def _swept_name(name: str, level: Level) -> str:
    return f"{name}[{','.join(f'{factor}={value}' for factor, value in level)}]" if level else name


def _expand(
    section: Literal["environments", "workloads"],
    source: Source,
    file: StudyFile,
    plugins: Mapping[str, Plugin],
    problems: list[tuple[Place, str]],
) -> Iterator[tuple[str, Level, str, Options]]:
    """Each entry of a section at each of its levels: name, level, kind, checked options."""
    for name in getattr(file, section):
        entry, place = dict(source.data[section][name]), (section, name)
        kind = entry.pop("kind", None)
        if kind is None:
            problems.append((place, f"'{name}' needs a kind (known: {', '.join(plugins)})"))
            continue
        if kind not in plugins:
            known = f"; known: {', '.join(plugins)}"
            problems.append(((*place, "kind"), f"unknown kind '{kind}'{nearest(kind, plugins) or known}"))
            continue
        model = plugins[kind].options
        seen = len(problems)
        for level, values in _levels(entry, model):
            options = _validate(model, values, place, problems)
            if options is None or len(problems) > seen:
                break  # the other levels of this entry would repeat the same mistakes
            yield name, level, kind, options


def _levels(entry: dict[str, Any], model: type[BaseModel]) -> Iterator[tuple[Level, dict[str, Any]]]:
    """Every combination of the listed values of an entry: (level, values). Options that are lists are not swept."""
    fields = model.model_fields
    swept = [
        key
        for key, value in entry.items()
        if isinstance(value, list) and value and not (key in fields and _takes_list(fields[key].annotation))
    ]
    for combination in itertools.product(*(entry[key] for key in swept)):
        chosen = dict(zip(swept, combination, strict=True))
        level = tuple(sorted((key, _as_written(value)) for key, value in chosen.items()))
        yield level, entry | chosen


def _takes_list(annotation: Any) -> bool:
    return get_origin(annotation) in (tuple, list, set, frozenset)


def _as_written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _validate(model: type[M], data: Any, place: Place, problems: list[tuple[Place, str]]) -> M | None:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        for item in error.errors():
            problems.append(_told(model, item, place))
        return None


def _told(model: type[BaseModel], item: Any, place: Place) -> tuple[Place, str]:
    """One validation error as a place and a sentence."""
    location: Place = tuple(part for part in item["loc"] if part != "[key]")
    key = str(location[-1]) if location else ""
    match item["type"]:
        case "extra_forbidden":
            known = _fields_at(model, location[:-1])
            hint = nearest(key, known) or f"; known: {', '.join(known)}"
            text = f"unknown key '{key}'{hint}"
        case "missing":
            text, location = f"'{key}' is missing", location[:-1]
        case "literal_error":
            expected = item["ctx"]["expected"]
            words = [word.strip(" '") for word in expected.replace(" or ", ",").split(",")]
            text = f"{key}: '{item['input']}' is not one of {expected}{nearest(item['input'], words)}"
        case "value_error":
            text = f"{key}: {item['ctx']['error']}" if key else str(item["ctx"]["error"])
        case "string_pattern_mismatch":
            text = (
                f"'{item['input']}' in {key}: a name starts with a letter and has letters, digits, '-', '_' and '.'"
            )
        case _:
            text = f"{key}: {item['msg'][0].lower()}{item['msg'][1:]} (it is {item['input']!r:.60})"
    return (*place, *location), text


def _fields_at(model: type[BaseModel], place: Place) -> list[str]:
    for key in place:
        annotation = model.model_fields[str(key)].annotation if str(key) in model.model_fields else None
        candidates = [annotation, *getattr(annotation, "__args__", ())]
        inner = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        if not inner:
            continue
        model = inner[0]
    return list(model.model_fields)


def _contradictions(file: StudyFile, arms: list[Arm], cells: list[Cell]) -> Iterator[tuple[Place, str]]:
    """What is wrong although every key is right."""
    names = [arm.name for arm in arms]
    if file.baseline not in file.environments:
        yield ("baseline",), f"baseline '{file.baseline}' is not an environment{nearest(file.baseline, names)}"
    elif file.baseline not in names and arms:
        yield ("baseline",), f"baseline '{file.baseline}' is swept or wrong: the baseline is one environment"
    if file.aa and file.baseline + AA_SUFFIX in names:
        yield ("environments", file.baseline + AA_SUFFIX), f"'{file.baseline + AA_SUFFIX}' is the A/A arm's own name"
    for role, host in file.placement.items():
        if host not in file.hosts:
            yield ("placement", role), f"placement: there is no host '{host}'{nearest(host, file.hosts)}"
    workloads = registry.workloads()
    networked = [cell.workload for cell in cells if workloads[cell.kind].transports]
    for arm in arms:
        for problem in registry.environments()[arm.kind].problems(arm.options, network=bool(networked)):
            yield ("environments", arm.name), f"{arm.name}: {problem}"
