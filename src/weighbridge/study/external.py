"""The external dependencies of a study: the files that it reads, the machines and the programs that it uses.

A study is code: an OpenSSH configuration starts programs, often as root. `plan` shows all of this, and `run` asks
before it starts.
"""

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from weighbridge.errors import StudyError
from weighbridge.model import ssh_configuration
from weighbridge.model.options import External, Options
from weighbridge.model.study import Arm, Study
from weighbridge.model.userland_source import own_userland_key

_COMPOSE_READS = (
    "docker-compose reads it and every file that it includes, extends or names as env_file, and inserts variables "
    "of your shell",
)
_KUBECONFIG_FIELDS = (
    "server", "proxy-url", "insecure-skip-tls-verify", "certificate-authority", "tls-server-name", "tokenFile",
    "client-certificate", "client-key",
)  # fmt: skip
"""Fields of a kubeconfig that send data to another machine, weaken its identification or name further files."""
_PROGRAMS = ("command", "cmd-path")
"""Fields of a kubeconfig that name a program which kubectl starts."""
_TOGETHER = 10
"""Machines of a fleet that are shown in one line."""
_ON = "--on"
_LONGEST_WORD = 200
"""Characters of an argument that are shown."""
_LARGEST = 256 * 2**10
_UNKNOWN = "it cannot be read, so the programs that it starts are unknown"
_OWN_HOST_KEYS = "(this configuration decides with its own host keys which machines ssh trusts)"
_TOO_LARGE = f"it is larger than {_LARGEST >> 10} KiB, so the programs that it starts are unknown"


@dataclass(frozen=True, slots=True)
class ExternalResource:
    """An external dependency. ``place`` is the key in the study that names it. Paths of files are absolute."""

    kind: External
    place: str
    value: str
    lines: tuple[str, ...] = ()
    """The effects of a file: all lines of an OpenSSH configuration except comments, fields of a kubeconfig, or the
    files that docker-compose reads."""

    @property
    def is_of_fleet(self) -> bool:
        """Whether the command line names it instead of a study: --on and the options of the provider."""
        return self.place.startswith(_ON)


def external_resources(study: Study) -> tuple[ExternalResource, ...]:
    """Return all external dependencies of a study, each once, in the order of the study.

    An A/A arm and an arm that explains a cost usually have the dependencies of their environment. Only the others
    are listed for them.
    """
    file = study.file
    entries = [compose_resource(study.compose)] if study.compose else []
    for name, host in file.hosts.items():
        of_host = [*_external(f"hosts.{name}", host)]
        if not host.traits.here and not any(each.kind is External.MACHINE for each in of_host):
            of_host.append(ExternalResource(External.MACHINE, f"hosts.{name}", host.description))
        entries += of_host
    parts: list[tuple[str, Options | None]] = [*study.sources.items(), ("prometheus", file.prometheus)]
    parts += [(f"companions.{name}", service) for name, service in file.companions.items()]
    own = [arm for arm in study.arms if arm.declared]
    parts += [(f"environments.{arm.name}", arm.options) for arm in own]
    entries += [each for arm in own for each in _settings(arm)]
    parts += [(f"workloads.{cell.workload}", cell.options) for cell in study.cells]
    parts += [part for arm in own for part in _own_workloads(arm)]
    entries += [each for place, options in parts for each in _external(place, options)]
    listed = {(each.kind, each.value) for each in entries}
    for arm in (arm for arm in study.arms if not arm.declared):
        parts = [(f"environments.{arm.name}", arm.options), (own_userland_key(arm.name), arm.userland)]
        of_arm = [each for place, options in (*parts, *_own_workloads(arm)) for each in _external(place, options)]
        entries += [each for each in (*of_arm, *_settings(arm)) if (each.kind, each.value) not in listed]
    return tuple(dict.fromkeys(entries))


def compose_resource(file: str) -> ExternalResource:
    """Return a Compose file as an external dependency."""
    return ExternalResource(External.COMPOSE, "compose.file", str(Path(file).absolute()), _COMPOSE_READS)


def runtimes_by_path(study: Study) -> tuple[str, ...]:
    """Return the OCI runtimes that a study names by path, which engines that the run starts must know."""
    return tuple(each.value for each in external_resources(study) if each.kind is External.RUNTIME)


def names_external(options: Options | None, *kinds: External) -> bool:
    """Return whether options name an external dependency, or one of these kinds. Does not read files."""
    return any(value and (not kinds or what in kinds) for what, _, value in _named(options))


def _settings(arm: Arm) -> Iterator[ExternalResource]:
    place = f"environments.{arm.name}.sysctls"
    yield from (
        ExternalResource(External.SETTING, f"{place}.{key}", f"{key}={value}") for key, value in arm.sysctls.items()
    )


def _own_workloads(arm: Arm) -> list[tuple[str, Options]]:
    return [(f"environments.{arm.name}.workloads.{cell.workload}", own) for cell, own in arm.workloads.items()]


def external_resources_of_machines(hosts: Mapping[str, Options]) -> tuple[ExternalResource, ...]:
    """Return the external dependencies of a fleet's machines, by the options of each host. Each file is listed once.

    One entry lists up to `_TOGETHER` names of machines.
    """
    every = [each for name, options in hosts.items() for each in _external(f"{_ON}, {name}", options)]
    reached = list(dict.fromkeys(each.value for each in every if each.kind is External.MACHINE))
    parts = [reached[at : at + _TOGETHER] for at in range(0, len(reached), _TOGETHER)]
    files = {(each.kind, each.value): each for each in reversed(every) if each.kind is not External.MACHINE}
    return (*(ExternalResource(External.MACHINE, _ON, ", ".join(part)) for part in parts), *reversed(files.values()))


def _external(place: str, options: Options | None) -> Iterator[ExternalResource]:
    for what, key, value in _named(options):
        for named, part in _parts(f"{place}.{key}", value):
            shown = str(Path(part).absolute()) if what.is_path else part
            if what in (External.VARIABLE, External.SETTING):
                shown = f"{named.removeprefix(f'{place}.{key}.')}={part}"
            lines = _LINES[what](Path(shown)) if what in _LINES else ()
            yield ExternalResource(what, named, shown, lines)


def _named(options: Options | None) -> Iterator[tuple[External, str, object]]:
    """Yield the external dependencies that options name, with the key of each option and its value."""
    for key, field in type(options).model_fields.items() if options is not None else ():
        value = getattr(options, key)
        if isinstance(value, Options):
            yield from ((what, f"{key}.{inner}", each) for what, inner, each in _named(value))
        if value is not None:
            yield from (
                (what, key, value)
                for what in field.metadata
                if isinstance(what, External) and (what is not External.RUNTIME or str(value).startswith("/"))
            )


def _parts(place: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield each value of an option with its place: each value of a mapping, and words quoted for a shell."""
    if isinstance(value, Mapping):
        yield from ((f"{place}.{key}", str(each)) for key, each in value.items())
    else:
        yield place, shlex.join(value) if isinstance(value, tuple) else str(value)


def _text(path: Path) -> str | None:
    """Return the contents of a file, "" without a file, or None if the file is too large to check."""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                content = file.read(_LARGEST + 1)
            return None if len(content) > _LARGEST else content.decode(errors="replace")
    return ""


def _lines_of_ssh(path: Path) -> tuple[str, ...]:
    if (text := _text(path)) is None:
        return (_TOO_LARGE,)
    if reason := ssh_configuration.refusal(text):
        raise StudyError(f"the ssh configuration {path} is refused because of {reason}")
    trust = (_OWN_HOST_KEYS,) if ssh_configuration.has_own_host_keys(text) else ()
    return (*ssh_configuration.lines(text), *trust)


def _fields_of_kubeconfig(path: Path) -> tuple[str, ...]:
    """Return the fields of a kubeconfig that matter, without tokens and without variables of programs.

    One path can name several files, like the variable KUBECONFIG.
    """
    lines = (line for part in str(path).split(os.pathsep) for line in _fields_of_file(Path(part)))
    return tuple(dict.fromkeys(lines))


def _fields_of_file(path: Path) -> tuple[str, ...]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    if (text := _text(path)) is None:
        return (_TOO_LARGE,)
    with suppress(YAMLError, ValueError, RecursionError):
        return tuple(_shown_fields(YAML(typ="safe").load(text)))
    return (_UNKNOWN,)


def _shown_fields(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key in _PROGRAMS and isinstance(each, str):
                yield " ".join(("starts", each, *_arguments(value)))
            elif key in _KUBECONFIG_FIELDS and isinstance(each, str | bool):
                yield f"{key}: {_without_password(str(each))}"
            else:
                yield from _shown_fields(each)
    elif isinstance(value, list):
        for each in value:
            yield from _shown_fields(each)


def _arguments(program: Mapping[Any, object]) -> Iterator[str]:
    """Yield the arguments of a program in a kubeconfig, long ones cut."""
    written = program.get("args", program.get("cmd-args"))
    for each in written if isinstance(written, list) else str(written).split() if written is not None else ():
        word = str(each)
        yield word if len(word) <= _LONGEST_WORD else f"{word[:_LONGEST_WORD]}..."


def _without_password(value: str) -> str:
    """Return a URL without the user and the password that can stand before its host."""
    with suppress(ValueError):
        parts = urlsplit(value)
        if "@" in parts.netloc:
            return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return value


_LINES = {External.SSH_CONFIGURATION: _lines_of_ssh, External.KUBECONFIG: _fields_of_kubeconfig}
