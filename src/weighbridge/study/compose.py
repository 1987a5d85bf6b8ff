"""Turns the services of a Compose file into keys of a study: a measured service and its supporting services. Pure.

The input is the normalised file that ``docker-compose config`` prints. It has no variables, anchors, extends or
env_file any more.
"""

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from weighbridge.errors import StudyError
from weighbridge.model.spelling import nearest
from weighbridge.study.source import plain

_SETTINGS = ("shm_size", "sysctls")
_MEASURED = frozenset({"image", "command", "entrypoint", "environment", "depends_on", "ports", "expose", *_SETTINGS})
"""The supported keys of the measured service. Environments differ in its port on the host."""
_SUPPORTING_SERVICE = frozenset((
    "image", "command", "entrypoint", "environment", "depends_on", "expose", "healthcheck", "volumes", "tmpfs",
    "user", "working_dir", "read_only", "init", *_SETTINGS,
))  # fmt: skip
_CONDITIONS = ("service_started", "service_healthy")
Normalised = Callable[[str], str]
"""Returns the output of ``docker-compose config`` for a Compose file. Raises StudyError, Unavailable."""
Hidden = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Returns services with references instead of secrets."""
_CHECK = {"test", "interval", "timeout", "retries", "start_period", "disable"}


class MissingInFile(StudyError):
    """The Compose file does not contain something that ``key`` of the study names."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"compose: {problem}")
        self.key = key


class Unhonoured(StudyError):
    """The file has unsupported keys (SERVICE.KEY) that the study does not leave out."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.listed = f"compose: the file has unsupported keys ({', '.join(keys)}). To ignore them, use "
        self.shortly = tuple(dict.fromkeys(each.partition(".")[2] for each in keys))
        super().__init__(f"{self.listed}without: [{', '.join(self.shortly)}]")


@dataclass(frozen=True, slots=True)
class Composed:
    """The parts of a study. ``without`` lists the ignored keys by service."""

    image: str
    server: tuple[str, ...] | None
    """The words of the service's own command line, or None if the image defines them."""
    entrypoint: tuple[str, ...] | None
    environment: Mapping[str, str]
    port: int | None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of its container, as written for an environment in a study: ``shm_size``, ``sysctls``."""
    companions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    without: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def composed(text: str, service: str, without: Collection[str] = (), hidden: Hidden = dict) -> Composed:
    """Return the parts of a study from a normalised Compose file.

    ``without`` are keys that the study leaves out (KEY, SERVICE.KEY). ``hidden`` replaces the values of secrets.
    Raises StudyError, which lists every unsupported key.
    """
    data = _read(text)
    services = _mapping(data.get("services"), "services")
    if service not in services:
        raise MissingInFile("service", f"there is no service '{plain(service, 60)}'{nearest(service, services)}")
    used = {name: _mapping(each, name) for name, each in services.items()}
    used = {name: each for name, each in used.items() if name == service or not each.get("profiles")}
    lacking = {
        name: tuple(dict.fromkeys((*_unsupported(name, each, data, service), *_left_out(name, each, without))))
        for name, each in used.items()
    }
    used = {
        name: {key: value for key, value in each.items() if not (key in _SETTINGS and key in lacking[name])}
        for name, each in used.items()
    }
    refused = [
        f"{name}.{key}"
        for name, keys in lacking.items()
        for key in keys
        if key not in without and f"{name}.{key}" not in without
    ]
    if refused:
        raise Unhonoured(refused)
    used = hidden(used)
    mine = used[service]
    return Composed(
        image=_image(service, mine),
        server=_words(mine.get("command"), f"{service}.command"),
        entrypoint=_words(mine.get("entrypoint"), f"{service}.entrypoint"),
        environment=_environment(mine, service),
        port=_port(mine, service),
        settings=_settings(mine, service),
        companions={name: _supporting_service(name, each, service) for name, each in used.items() if name != service},
        without={name: keys for name, keys in lacking.items() if keys},
    )


def server_words(parts: Composed, entry_point: Sequence[str], default_command: Sequence[str]) -> tuple[str, ...]:
    """Return the command line of the service, combined from the service and its image by the rules of an engine.

    Raises StudyError if it is empty.
    """
    if parts.entrypoint:  # the image's command is for the image's entry point
        words = (*parts.entrypoint, *(parts.server or ()))
    else:
        before = entry_point if parts.entrypoint is None else ()
        words = (*before, *(parts.server or default_command))
    if not words:
        raise StudyError(f"compose: neither the service nor its image {plain(parts.image, 100)} names a program")
    return words


def with_saved(parts: Composed, saved: Mapping[str, str]) -> Composed:
    """Return the parts with supporting services from files, by image. Raises StudyError for an unused image."""
    images = [str(each["image"]) for each in parts.companions.values()]
    for image in saved:
        if image not in (*images, parts.image):
            hint = nearest(image, [*images, parts.image])
            raise MissingInFile("saved", f"saved: no service has the image '{plain(image, 100)}'{hint}")
    companions = {
        name: {**each, "saved": saved[each["image"]]} if each["image"] in saved else each
        for name, each in parts.companions.items()
    }
    return replace(parts, companions=companions)


def _read(text: str) -> Mapping[str, Any]:
    try:
        data = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise StudyError(f"compose: docker-compose did not print YAML ({plain(error)})") from None
    return _mapping(data, "the file")


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise StudyError(f"compose: {plain(what, 60)} is not a mapping of names")
    return value


def _unsupported(name: str, service: Mapping[str, Any], data: Mapping[str, Any], measured: str) -> Iterator[str]:
    honoured = _MEASURED if name == measured else _SUPPORTING_SERVICE
    for key, value in service.items():
        if value in (None, [], {}) or key == "profiles":
            continue
        if key == "networks":
            if {*value} != {"default"} or (isinstance(value, Mapping) and any(value.values())):
                yield key
        elif (key == "ports" and name != measured) or key not in honoured:
            yield key
        elif key == "volumes":
            yield from _unsupported_volumes(value, data)
        elif key == "healthcheck" and {*_mapping(value, f"{name}.{key}")} - _CHECK:
            yield key
        elif key == "depends_on":
            waits = value.items() if isinstance(value, Mapping) else ((each, None) for each in value)
            conditions = [(each, (how or {}).get("condition", _CONDITIONS[0])) for each, how in waits]
            if any(each == measured or how not in _CONDITIONS for each, how in conditions):
                yield key


def _left_out(name: str, service: Mapping[str, Any], without: Collection[str]) -> Iterator[str]:
    """Yield the supported settings that the study leaves out."""
    yield from (key for key in _SETTINGS if service.get(key) and (key in without or f"{name}.{key}" in without))


def _unsupported_volumes(value: Any, data: Mapping[str, Any]) -> Iterator[str]:
    for volume in value:
        source, _, mode = _volume(volume)
        named = not source.startswith("/")
        about = (data.get("volumes") or {}).get(source) or {}
        if not source or (named and (mode != "rw" or {*about} - {"name"})) or (not named and mode != "ro"):
            yield "volumes"


def _volume(volume: Any) -> tuple[str, str, str]:
    """Return source, target and mode of a volume in the short or the long form."""
    if isinstance(volume, Mapping):
        if volume.get("type") not in ("bind", "volume"):
            return "", "", ""
        mode = "ro" if volume.get("read_only") else "rw"
        return str(volume.get("source", "")), str(volume.get("target", "")), mode
    source, _, rest = str(volume).rpartition(":") if str(volume).count(":") == 1 else str(volume).partition(":")
    place, _, mode = rest.partition(":")
    return source, place, mode or "rw"


def _image(name: str, service: Mapping[str, Any]) -> str:
    if not isinstance(service.get("image"), str):
        raise StudyError(f"compose: service {name} has no image. Build one, and name it as 'image: NAME'")
    return _plain_text(service["image"])


def _plain_text(value: object) -> str:
    """Return a value as text. The normalised file writes a dollar sign twice."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("$$", "$")


def _words(value: Any, what: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(map(_plain_text, value))
    try:
        return tuple(shlex.split(_plain_text(value)))
    except ValueError as error:
        raise StudyError(f"compose: {what}: {error}") from None


def _environment(service: Mapping[str, Any], name: str) -> dict[str, str]:
    variables = service.get("environment") or {}
    if isinstance(variables, list):
        variables = dict(str(each).partition("=")[::2] for each in variables)
    by_name = _mapping(variables, f"{name}.environment")
    return {key: _plain_text(value) for key, value in by_name.items() if value is not None}


def _port(service: Mapping[str, Any], name: str) -> int | None:
    """Return the published or exposed port of a container, or None if there is not exactly one."""
    ports = [*(service.get("ports") or ()), *(service.get("expose") or ())]
    targets = [each.get("target") if isinstance(each, Mapping) else str(each).rpartition(":")[2] for each in ports]
    numbers = {str(each).removesuffix("/tcp") for each in targets}
    if len(numbers) != 1:
        return None
    if not (only := numbers.pop()).isdigit():
        raise StudyError(f"compose: {name}: the port {plain(only, 60)} is not a TCP port")
    return int(only)


_BYTES = re.compile(r"([0-9]+)(?:([kmg])?b?)", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3}


def _settings(service: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return ``shm_size`` and ``sysctls`` as written in a study."""
    settings: dict[str, Any] = {}
    if (size := service.get("shm_size")) is not None:
        match = _BYTES.fullmatch(str(size).strip())
        if match is None:
            raise StudyError(f"compose: {name}: shm_size {plain(size, 60)} is not a size. Write it like 64m")
        settings["shm_size"] = f"{int(match[1]) * 1024 ** _POWERS[(match[2] or '').lower()]}B"
    if sysctls := service.get("sysctls"):
        if isinstance(sysctls, list):
            sysctls = dict(str(each).partition("=")[::2] for each in sysctls)
        by_name = _mapping(sysctls, f"{name}.sysctls")
        settings["sysctls"] = {key: _plain_text(value) for key, value in by_name.items()}
    return settings


def _supporting_service(name: str, service: Mapping[str, Any], measured: str) -> dict[str, Any]:
    waits = [each for each in service.get("depends_on") or () if each != measured]
    mounts = [_volume(each) for each in service.get("volumes") or ()]
    files = {place: source for source, place, mode in mounts if source.startswith("/") and mode == "ro"}
    volumes = {place: source for source, place, mode in mounts if source and source[0] != "/" and mode == "rw"}
    memory = service.get("tmpfs") or ()
    check = _healthcheck(service.get("healthcheck"), name)
    values = {
        "image": _image(name, service),
        "command": _words(service.get("command"), f"{name}.command"),
        "entrypoint": _words(service.get("entrypoint"), f"{name}.entrypoint"),
        "environment": _environment(service, name),
        "volumes": volumes,
        "files": files,
        "tmpfs": (memory,) if isinstance(memory, str) else tuple(memory),
        "healthcheck": check,
        "port": _port(service, name) if check is None else None,
        "after": tuple(waits),
        **_settings(service, name),
        **{key: service[key] for key in ("user", "working_dir", "read_only", "init") if key in service},
    }
    return {key: value for key, value in values.items() if value not in (None, {}, ())}


def _healthcheck(check: Any, name: str) -> dict[str, Any] | None:
    if not check or check.get("disable"):
        return None
    test = check.get("test")
    if isinstance(test, str):
        words: tuple[str, ...] = ("/bin/sh", "-c", _plain_text(test))
    else:
        how, *rest = map(_plain_text, test or ("NONE",))
        if how == "NONE" or not rest:
            return None
        words = tuple(rest) if how == "CMD" else ("/bin/sh", "-c", *rest)
    times = ("interval", "timeout", "start_period", "retries")
    return {"test": words, **{key: check[key] for key in times if check.get(key) is not None}}
