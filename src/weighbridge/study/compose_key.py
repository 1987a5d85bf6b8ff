"""Replaces the key ``compose`` of a study by a workload, its root filesystems and its supporting services.

This happens before any check, so a run needs neither the Compose file nor its reader afterwards.
"""

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml.comments import CommentedMap

from weighbridge import registry
from weighbridge.errors import StudyError, Unavailable
from weighbridge.model.options import Options
from weighbridge.model.supporting_service import ComposedService, ComposeOptions
from weighbridge.study.compose import Composed, MissingInFile, Normalised, composed, server_words, with_saved
from weighbridge.study.compose_secrets import WrittenServices
from weighbridge.study.source import Source, StudyPlace, plain, written
from weighbridge.study.validated import validated
from weighbridge.study.weighed import literal, settings_of, written_out

KEY = "compose"


@dataclass(frozen=True, slots=True)
class Service:
    """The measured service of a Compose file with its supporting services, as written in a study."""

    userland: Mapping[str, Any]
    server: tuple[str, ...]
    environment: Mapping[str, str]
    port: int | None
    companions: Mapping[str, Mapping[str, Any]]
    remark: str
    """The keys that are left out, and the keys that are stored with values of variables, in one line."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of its container, as written for an environment in a study."""


def service_of(options: ComposedService, normalised: Normalised) -> Service:
    """Return a service of a Compose file with its supporting services.

    Raises StudyError or Unavailable. Raises UserlandError if the command line of an image is needed and unknown.
    """
    for image, path in options.saved.items():
        if not Path(path).is_file():
            raise MissingInFile("saved", f"saved: there is no file {plain(path, 200)} for {plain(image, 100)}")
    if not Path(options.file).is_file():
        raise MissingInFile("file", f"there is no file {plain(options.file, 200)}")
    text = normalised(options.file)
    written, plainly = WrittenServices(Path(options.file)), list[str]()

    def hidden(services: Mapping[str, Any]) -> dict[str, Any]:
        plainly.extend(written.stored_with_values(services))
        return written.hidden(services)

    parts = composed(text, options.service, options.without, hidden)
    parts = with_saved(parts, options.saved)
    where = image_userland(options.image or options.saved.get(parts.image, parts.image))
    left_out = [f"{service}.{key}" for service, each in parts.without.items() for key in each]
    return Service(
        userland=where,
        server=_server(parts, where),
        environment=parts.environment,
        port=options.port or parts.port,
        companions=parts.companions,
        remark="; ".join(
            f"{what}: {', '.join(keys)}"
            for what, keys in (
                ("Left out of the Compose file", left_out),
                ("Keys whose ${VAR} values are stored", plainly),
            )
            if keys
        ),
        settings=parts.settings,
    )


def image_userland(image: str) -> dict[str, Any]:
    """Return the root filesystem of an image: a file of ``docker save``, or an image of the engine."""
    if Path(image).is_file():
        return {"kind": "saved-image", "path": str(Path(image).absolute())}
    return {"kind": "image", "image": image}


def expanded(source: Source, normalised: Normalised | None) -> tuple[Source, str]:
    """Return the study with its key ``compose`` replaced, and the Compose file. Without the key, return it as it is.

    The lines of the study's file stay known. The new entries have the line of the key.
    """
    if source.data.get(KEY) is None:
        return source, ""
    options = _compose_options(source)
    if normalised is None:
        raise Unavailable(f"{source.where((KEY,))}: compose: a Compose file cannot be read here")
    try:
        service = service_of(options, normalised)
        if service.port is None:
            raise MissingInFile(
                "service", f"{plain(options.service, 60)} does not have exactly one port. Add 'port: NUMBER'"
            )
    except StudyError as error:
        raise StudyError(f"{source.where((KEY, getattr(error, 'key', 'file')))}: {error}") from None
    except Unavailable as error:
        raise Unavailable(f"{source.where((KEY, 'file'))}: {error}") from None
    conflicting = [name for name in _entries(source, "companions") if name in (*service.companions, options.service)]
    problem = "is a service of the Compose file: choose another name"
    _refuse(source, [(("companions", name), f"'{plain(name, 60)}' {problem}") for name in conflicting])
    kinds = [each.get("kind") for each in _entries(source, "environments").values() if isinstance(each, Mapping)]
    _refuse(source, [((KEY, "file"), problem) for problem in unsettable(options.service, service.settings, kinds)])
    return _expanded(source, options, service), options.file


def unsettable(service: str, settings: Mapping[str, Any], kinds: Iterable[object]) -> list[str]:
    """Return a sentence for each setting of a service that none of the kinds of environments supports."""
    settable = {name for kind in kinds for name in settings_of(settings, str(kind))}
    every = registry.environments().items()
    return [
        f"{plain(service, 60)}.{name}: no environment of the study supports it. Supported by: "
        f"{', '.join(kind for kind, plugin in every if name in plugin.takes)}. To leave it out: without: [{name}]"
        for name in settings
        if name not in settable
    ]


class _Key(Options):
    compose: ComposeOptions


def _compose_options(source: Source) -> ComposeOptions:
    """Return the checked options of the key. Raises StudyError for wrong options and for contradicting keys."""
    problems: list[tuple[StudyPlace, str]] = []
    key = validated(_Key, {KEY: source.data[KEY]}, (), problems)
    if "userland" in source.data:
        problem = "userland: the Compose service already has an image. Remove it, or write 'compose: {image: NAME}'"
        problems.append((("userland",), problem))
    if key is not None and key.compose.service in _entries(source, "workloads"):
        name = plain(key.compose.service, 60)
        problem = f"'{name}' is the workload that 'compose' makes. Write its options as 'compose: {{load: {{...}}}}'"
        problems.append((("workloads", key.compose.service), problem))
    _refuse(source, problems)
    assert key is not None
    return key.compose


def _refuse(source: Source, problems: Sequence[tuple[StudyPlace, str]]) -> None:
    if problems:
        raise StudyError("\n".join(f"{source.where(place)}: {plain(message, 500)}" for place, message in problems))


def _entries(source: Source, section: str) -> Mapping[str, Any]:
    entries = source.data.get(section)
    return entries if isinstance(entries, Mapping) else {}


def _server(parts: Composed, where: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the service's command line. The image is read only if the service does not define all of it."""
    if parts.entrypoint or (parts.entrypoint is not None and parts.server):
        return server_words(parts, (), ())
    source = registry.userlands()[where["kind"]]
    try:
        options = source.options.model_validate(where)
    except ValidationError:
        named = where.get("image") or where.get("path")
        raise MissingInFile(
            "image", f"image: '{plain(named, 100)}' is neither a file nor the name of an image"
        ) from None
    return server_words(parts, source.entry_point(options), source.default_command(options))


def _expanded(source: Source, options: ComposeOptions, service: Service) -> Source:
    data = copy.deepcopy(source.data)
    key, at = data[KEY], list(data).index(KEY)
    line, of_load = (key.lc.data.get(option, data.lc.data[KEY]) for option in ("file", "load"))
    del data[KEY]
    for name, value in (("userland", dict(service.userland)), ("client_userland", {"kind": "host"})):
        if name not in data:
            at = _insert(data, name, value, at, line)
    for entry in _entries(source, "environments"):
        written_entry = data["environments"][entry]
        if isinstance(written_entry, CommentedMap):
            for name, value in settings_of(service.settings, str(written_entry.get("kind"))).items():
                if name not in written_entry:  # else the study says its own
                    _insert(written_entry, name, written_out(value), len(written_entry), line)
    companions = {name: written_out(each) for name, each in service.companions.items()}
    workloads = {options.service: _workload(key, service)}
    for section, entries, its_line in (("companions", companions, line), ("workloads", workloads, of_load)):
        if section not in data and entries:
            at = _insert(data, section, CommentedMap(), at, its_line)
        if isinstance(data.get(section), CommentedMap):  # otherwise, the check of the section reports the mistake
            for name, value in entries.items():
                _insert(data[section], name, value, len(data[section]), its_line)
    text = written(data)
    title = source.text.partition("\n")[0]  # of a profile; another one is in the data
    above = [title] if title.startswith("#") and not text.startswith(title) else []
    above += [f"# From {plain(options.file, 500)}, service {plain(options.service, 60)}"]
    above += [f"# {plain(service.remark, 1000)}"] if service.remark else []
    return replace(source, text="\n".join([*above, text]), data=data)


def names_compose_file(text: str) -> bool:
    """Return whether the text of an expanded study says that a study file with the key ``compose`` was its origin."""
    return re.search(r"^# From .*, service ", text, re.MULTILINE) is not None


def _workload(key: CommentedMap, service: Service) -> CommentedMap:
    """Return the service with its load, each option with its line."""
    load = key["load"] if isinstance(key["load"], CommentedMap) else CommentedMap({"client": key["load"]})
    service_options: dict[str, Any] = {"kind": "command", "server": [literal(word) for word in service.server]}
    service_options |= {"server_env": dict(service.environment)} if service.environment else {}
    service_options |= {"port": service.port}
    lines, of_load = key.lc.data, load.lc.data or {}
    workload = CommentedMap({**service_options, **load})
    workload.lc.data = {option: lines.get("service", [key.lc.line]) for option in service_options}
    workload.lc.data |= {option: of_load.get(option, lines.get("load", [key.lc.line])) for option in load}
    return workload


def _insert(data: CommentedMap, key: str, value: Any, at: int, line: Sequence[int]) -> int:
    """Insert a key at a position, with its line in the study's file; return the next position."""
    data.insert(at, key, value)
    if data.lc.data is None:
        data.lc.data = {}
    data.lc.data[key] = line
    return at + 1
