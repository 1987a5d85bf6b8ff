"""What a study brings from outside of Weighbridge: files that it reads, machines that it reaches, what it starts.

A study is code: an OpenSSH configuration starts programs, and whoever starts the run is root on many machines. `plan`
shows all of this, and `run` asks before it starts.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weighbridge.model.options import Brings, Options
from weighbridge.model.study import Study

_STARTS = (
    "proxycommand", "knownhostscommand", "localcommand", "remotecommand", "proxyjump", "include", "match",
    "pkcs11provider", "smartcarddevice", "securitykeyprovider", "xauthlocation", "identityagent",
)  # fmt: skip
"""Keywords of ssh_config(5) that start a program, load a library or read another file."""
_PASSED_OVER = re.compile(r'[\s"=]')
"""What ssh takes in or before a keyword, or between it and its argument (``Proxy"Command" sh``, ``=Include x``)."""
_TOGETHER = 10
"""Machines of a fleet that are shown in one line."""
_LARGEST = 256 * 2**10
_UNKNOWN = "it cannot be read: what it starts is not known"
_TOO_LARGE = f"it is larger than {_LARGEST >> 10} KiB: what it starts is not known"


@dataclass(frozen=True, slots=True)
class Brought:
    """One thing from outside. ``place`` is the key in the study that names it; files are absolute."""

    what: Brings
    place: str
    value: str
    lines: tuple[str, ...] = ()
    """Of an OpenSSH configuration: the lines that start programs or read further files; of a kubeconfig: programs."""


def brought_by(study: Study) -> tuple[Brought, ...]:
    """Everything that a study brings, each once, in the order of the study."""
    file = study.file
    parts: list[tuple[str, Options | None]] = [(f"hosts.{name}", host) for name, host in file.hosts.items()]
    parts += [*study.sources.items(), ("prometheus", file.prometheus)]
    parts += [(f"companions.{name}", companion) for name, companion in file.companions.items()]
    parts += [(f"environments.{arm.name}", arm.options) for arm in study.arms if arm.own]
    parts += [(f"workloads.{cell.workload}", cell.options) for cell in study.cells]
    for arm in study.arms:
        parts += [
            (f"environments.{arm.name}.workloads.{workload}", own) for (workload, _), own in arm.workloads.items()
        ]
    read = [Brought(Brings.COMPOSE, "compose.file", study.compose)] if study.compose else []
    return tuple(dict.fromkeys([*read, *(each for place, options in parts for each in _brought(place, options))]))


def brought_by_machines(hosts: Mapping[str, Options]) -> tuple[Brought, ...]:
    """Return what a fleet's machines bring, each file once, by the options of each one's host.

    Of their names in ssh or a queue, so many are one entry.
    """
    every = [each for name, options in hosts.items() for each in _brought(name, options)]
    reached = list(dict.fromkeys(each.value for each in every if each.what is Brings.MACHINE))
    parts = [reached[at : at + _TOGETHER] for at in range(0, len(reached), _TOGETHER)]
    files = {(each.what, each.value): each for each in reversed(every) if each.what is not Brings.MACHINE}
    return (*(Brought(Brings.MACHINE, "the fleet's", ", ".join(part)) for part in parts), *reversed(files.values()))


def _brought(place: str, options: Options | None) -> Iterator[Brought]:
    for key, field in type(options).model_fields.items() if options is not None else ():
        value = getattr(options, key)
        if value is None:
            continue
        if isinstance(value, Options):
            yield from _brought(f"{place}.{key}", value)
        for what in (each for each in field.metadata if isinstance(each, Brings)):
            for named, part in _parts(f"{place}.{key}", value):
                shown = str(Path(part).absolute()) if what.is_path else part
                lines = _STARTING_LINES[what](Path(shown)) if what in _STARTING_LINES else ()
                yield Brought(what, named, shown, lines)


def _parts(place: str, value: object) -> Iterator[tuple[str, str]]:
    """Each value of an option with its place: those of a mapping one by one, words as a shell would take them."""
    if isinstance(value, Mapping):
        yield from ((f"{place}.{key}", str(each)) for key, each in value.items())
    else:
        yield place, shlex.join(value) if isinstance(value, tuple) else str(value)


def _text(path: Path) -> str | None:
    """What a file says, "" where there is none; None where it is too large to be read for what it starts."""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                content = file.read(_LARGEST + 1)
            return None if len(content) > _LARGEST else content.decode(errors="replace")
    return ""


def _lines_of_ssh(path: Path) -> tuple[str, ...]:
    if (text := _text(path)) is None:
        return (_TOO_LARGE,)
    lines = [line.strip() for line in text.split("\n")]
    return tuple(each for each in lines if each[:1] != "#" and _PASSED_OVER.sub("", each.lower()).startswith(_STARTS))


def _programs_of_kubectl(path: Path) -> tuple[str, ...]:
    """The credential plug-ins of a kubeconfig: their names alone, as a line of it may hold a token."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    if (text := _text(path)) is None:
        return (_TOO_LARGE,)
    with suppress(YAMLError, ValueError, RecursionError):
        return tuple(dict.fromkeys(f"starts {program}" for program in _commands_in(YAML(typ="safe").load(text))))
    return (_UNKNOWN,)


def _commands_in(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key in ("command", "cmd-path") and isinstance(each, str):
                yield each
            else:
                yield from _commands_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _commands_in(each)


_STARTING_LINES = {Brings.SSH_CONFIGURATION: _lines_of_ssh, Brings.KUBECONFIG: _programs_of_kubectl}
