"""Which values of a Compose file come from outside of it, and the references that a study has in their place.

Docker Compose resolves ``${VAR}``, ``env_file`` and variables of the shell. A value that the file itself does not
spell out is a secret: its value is kept in memory, and the study gets a reference to it.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from weighbridge.errors import StudyError
from weighbridge.model.secret import SecretName, reference, secret_name
from weighbridge.secret_values import keep, keep_as
from weighbridge.study.source import plain

_DOLLAR = re.compile(r"\$(?:\$|\{[^{}]*\}|[A-Za-z_][A-Za-z0-9_]*)?")
_ONE_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)(?::?\?[^{}]*)?\}|([A-Za-z_][A-Za-z0-9_]*))")
_DEEPEST, _LARGEST = 20, 2**20
"""Services that extend one another in a file; bytes of a file."""
_COMMANDS = ("command", "entrypoint")
_HIDDEN = {"environment", "healthcheck", *_COMMANDS}


class WrittenServices:
    """The services of a Compose file as they are written, with the parts that they extend or include."""

    def __init__(self, file: Path) -> None:
        self._files: dict[Path, dict[str, Any]] = {}
        self._services = self._read(file)

    def hidden(self, services: Mapping[str, Any]) -> dict[str, Any]:
        """Return the services of the normalised file, with references in the place of values from outside.

        Raises StudyError if a command cannot be compared with the file.
        """
        return {name: _hidden_service(name, service, self._service(name)) for name, service in services.items()}

    def stored_with_values(self, services: Mapping[str, Any]) -> list[str]:
        """Return the keys that have variables in the file but can hold no reference: ``shop.image``."""
        return [
            f"{name}.{key}"
            for name, service in services.items()
            for key in service
            if key not in _HIDDEN and any(_expressions(text) for text in _texts(self._service(name).get(key)))
        ]

    def _service(self, name: str) -> Mapping[str, Any]:
        service = self._services.get(name)
        return service if isinstance(service, Mapping) else {}

    def _read(self, file: Path) -> dict[str, Any]:
        """Return the services of a file, or {} if it cannot be read. Its values then count as from outside."""
        file = file.absolute()
        if file in self._files:
            return self._files[file]
        services = self._files[file] = dict[str, Any]()
        document = _document(file)
        for included in document.get("include") or ():
            paths = included.get("path") if isinstance(included, Mapping) else included
            for path in paths if isinstance(paths, list) else [paths]:
                services |= self._read(file.parent / str(path))
        own = document.get("services")
        services |= dict(own) if isinstance(own, Mapping) else {}
        services |= {
            name: self._with_extended(service, services, file, _DEEPEST) for name, service in services.items()
        }
        return services

    def _with_extended(self, service: Any, services: Mapping[str, Any], file: Path, depth: int) -> Any:
        if not isinstance(service, Mapping) or not service.get("extends") or not depth:
            return service
        extends = service["extends"]
        extends = extends if isinstance(extends, Mapping) else {"service": extends}
        name = str(extends.get("service"))
        if extends.get("file") is None:
            base = self._with_extended(services.get(name), services, file, depth - 1)
        else:
            base = self._read(file.parent / str(extends["file"])).get(name)
        if not isinstance(base, Mapping):
            return service
        environment = {**_written_variables(base), **_written_variables(service)}
        return {**base, **service, "environment": environment}


def _document(file: Path) -> Mapping[str, Any]:
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST:
            return {}
        document = YAML(typ="safe", pure=True).load(file.read_text())
    except Exception:  # the parser itself stumbles over some texts: assertions, attributes, recursion
        return {}
    return document if isinstance(document, Mapping) else {}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _hidden_service(name: str, service: Any, written: Mapping[str, Any]) -> Any:
    hidden = dict(service)
    if service.get("environment"):
        as_written = _written_variables(written)
        hidden["environment"] = {
            variable: None
            if value is None
            else _kept_text(secret_name(name, variable), _scalar(value), as_written.get(variable))
            for variable, value in _variables(service["environment"]).items()
        }
    for key in _COMMANDS:
        if service.get(key):
            hidden[key] = _kept_words(f"{name}.{key}", service[key], written.get(key))
    check, written_check = service.get("healthcheck"), written.get("healthcheck")
    if isinstance(check, Mapping) and check.get("test"):
        test = written_check.get("test") if isinstance(written_check, Mapping) else None
        if isinstance(test, str) and isinstance(check["test"], list):  # as newer versions of Docker Compose print it
            test = ["CMD-SHELL", test]
        hidden["healthcheck"] = {**check, "test": _kept_check(f"{name}.healthcheck", check["test"], test)}
    return hidden


def _kept_check(place: str, test: Any, written: Any) -> Any:
    if isinstance(test, str):
        return _kept_text(_word_name(place, "test"), test, written if isinstance(written, str) else None)
    return _kept_words(place, test, written)


def _kept_words(place: str, value: Any, written: Any) -> list[str]:
    """Return the words of a command as the study keeps them; a word from outside of the file is a reference."""
    words, as_written = _words(place, value), _words(place, written) if written is not None else None
    if as_written is None:
        raise StudyError(
            f"compose: Weighbridge cannot tell which values of {plain(place, 100)} are secret. "
            f"Write {plain(place, 100)} directly in the Compose file."
        )
    if len(words) != len(as_written):
        return [_kept_text(_word_name(place, number), word, None) for number, word in enumerate(words)]
    pairs = zip(words, as_written, strict=True)
    return [_kept_text(_word_name(place, number), *pair) for number, pair in enumerate(pairs)]


def _word_name(place: str, word: object) -> SecretName:
    """Return the name of a secret in a command, which is the name of a variable: ``shop_command_2``."""
    return SecretName(re.sub(r"\W", "_", f"{place}.{word}", flags=re.ASCII))


def _words(place: str, value: Any) -> list[str]:
    try:
        return [_scalar(each) for each in value] if isinstance(value, list) else shlex.split(_scalar(value))
    except ValueError as error:
        raise StudyError(f"compose: {plain(place, 100)}: {error}") from None


def _kept_text(place: SecretName, normalised: str, written: str | None) -> str:
    """Return a value in its normalised form: as it is if the file spells it out, else the reference to it.

    ``postgres://app:${DB_PASSWORD}@db`` keeps the words around its one variable, which then names the secret. Any
    other value is a secret as a whole, with its place as the name.
    """
    value = normalised.replace("$$", "$")
    variables = _expressions(written) if written is not None else []
    if written is not None and not variables and written.replace("$$", "$") == value:
        return normalised
    if written is not None and len(variables) == 1 and (match := _ONE_VARIABLE.fullmatch(variables[0][0])):
        before, after = (
            text.replace("$$", "$") for text in (written[: variables[0].start()], written[variables[0].end() :])
        )
        name = SecretName(match[1] or match[2])
        inner = value.removeprefix(before).removesuffix(after)
        if f"{before}{inner}{after}" == value and keep_as(name, inner, place) == name:
            return f"{before.replace('$', '$$')}{reference(name)}{after.replace('$', '$$')}"
    keep(place, value)
    return reference(place)


def _expressions(text: str) -> list[re.Match[str]]:
    """Return every place in a text that Docker Compose replaces, and every other single dollar sign."""
    return [match for match in _DOLLAR.finditer(text) if match[0] != "$$"]


def _variables(environment: Any) -> Mapping[str, Any]:
    if isinstance(environment, Mapping):
        return environment
    return dict(str(each).partition("=")[::2] for each in environment)


def _written_variables(service: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the variables that a service sets in the file itself; None for one that it takes from the shell."""
    environment = service.get("environment") or {}
    if isinstance(environment, Mapping):
        return {str(name): None if value is None else _scalar(value) for name, value in environment.items()}
    if not isinstance(environment, list):
        return {}
    pairs = (str(each).partition("=") for each in environment)
    return {name: value if equals else None for name, equals, value in pairs}


def _scalar(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
