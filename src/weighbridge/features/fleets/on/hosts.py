"""Machines in a list that OpenSSH reaches from this one, without a scheduler."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weighbridge.errors import StudyError, Unavailable
from weighbridge.features.fleets.driven_here import DrivenHere, DrivenHereOptions
from weighbridge.features.fleets.machine_provider import MACHINE_NAME
from weighbridge.model.options import ABSOLUTE, External

_LARGEST = 2**20
_SHOWN = 60


class HostsOptions(DrivenHereOptions):
    """The machines in a list, which was read from a file when the fleet was planned."""

    kind: Literal["hosts"] = "hosts"
    file: Annotated[str, ABSOLUTE, Field(description="The file, with one ssh host per line"), External.FILE]
    listed: Annotated[tuple[dict[str, Any], ...], Field(min_length=1, description="The ssh hosts of the file")]
    nodes: Annotated[
        int | None, Field(ge=1, description="Use only this many machines, from the start of the file; default: all")
    ] = None
    sudo: Annotated[bool, Field(description="Become root on each machine with sudo, without a password")] = False
    config: Annotated[
        Annotated[str, ABSOLUTE] | None,
        Field(description="An OpenSSH configuration file to use instead of your own"),
        External.SSH_CONFIGURATION,
    ] = None

    @property
    def description(self) -> str:
        """Return words for the plan."""
        return f"{self.nodes or len(self.listed)} ssh machines of {self.file}"


class Hosts(DrivenHere):
    """Each run is driven from this machine, with ssh hosts instead of the study's; so is the fleet."""

    kind = "hosts"
    summary = "ssh machines, one per line of a file"
    options = HostsOptions
    word = "FILE"
    programs: ClassVar = ("ssh", "setpriv")

    def named_by(self, word: str) -> Mapping[str, Any] | None:
        """Return the machines in a file: per line a destination and options of ssh hosts (``address=10.0.0.7``)."""
        path = Path(word)
        if not (path.is_file() or "/" in word or path.suffix):
            return None
        return {"file": word, "listed": _read(path)}

    def count(self, options: Any) -> int:
        """Return the requested number, else all of the list."""
        if options.nodes is not None and options.nodes > len(options.listed):
            raise Unavailable(
                f"{options.file} lists fewer machines ({len(options.listed)}) than the {options.nodes} of --nodes"
            )
        return options.nodes or len(options.listed)

    def machines(self, options: Any) -> tuple[str, ...]:
        """Return the machines of the list, each by its destination."""
        return tuple(_by_name(options))[: self.count(options)]

    def allotted(self, options: Any) -> tuple[str, ...]:
        """Return the machines of the list."""
        return self.machines(options)

    def host(self, options: Any, machine: str) -> Mapping[str, Any]:
        """Return an ssh host, by the machine's line in the list. Raises Unavailable if it is missing."""
        if (line := _by_name(options).get(machine)) is None:
            raise Unavailable(f"{options.file} has no machine {machine}")
        named = {"sudo": True} if options.sudo else {}
        named |= {"config": options.config} if options.config else {}
        return {"kind": "ssh", **named, **line}


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the ssh hosts of a list. Raises StudyError with the file and the line that is wrong."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1).decode()
    except UnicodeDecodeError:
        raise StudyError(f"{path} is not a text file: write one ssh host per line") from None
    except OSError as error:
        raise StudyError(f"cannot read the list of machines {path}: {error.strerror}") from None
    if len(text) > _LARGEST:
        raise StudyError(f"{path} is not a list of machines: it is larger than 1 MiB")
    listed: list[dict[str, Any]] = []
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        destination, *settings = line.partition("#")[0].split() or [""]
        if not destination:
            continue
        if destination in lines:
            where = f"lines {lines[destination]} and {number}"
            raise StudyError(f"{path}: {_shown(destination)} is listed twice ({where}): remove one")
        lines[destination] = number
        listed.append({"destination": destination, **_settings(f"{path}:{number}", settings)})
    if not listed:
        raise StudyError(f"{path} lists no machine: write one ssh host per line")
    return listed


def _settings(where: str, words: Sequence[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key or not value:
            raise StudyError(
                f"{where}: {_shown(word)} is not an option of an ssh host: write DESTINATION KEY=VALUE ..., such as "
                "address=10.0.0.7"
            )
        settings[key] = {"true": True, "false": False}.get(value, value)
    return settings


def _shown(word: str) -> str:
    printed = "".join(c if c.isprintable() else repr(c)[1:-1] for c in word)
    return printed if len(printed) <= _SHOWN else f"{printed[:_SHOWN]}..."


def _by_name(options: HostsOptions) -> dict[str, dict[str, Any]]:
    """Return the hosts of the list by the names of their machines: the host of ``user@host:port``.

    If several share one, each is named by its full destination, and the later ones also by a number.
    """
    short = [_plain(str(host["destination"]).rpartition("@")[2]) for host in options.listed]
    counts = Counter(short)
    names: dict[str, dict[str, Any]] = {}
    for name, host in zip(short, options.listed, strict=True):
        unique_name = name if counts[name] == 1 else _plain(str(host["destination"]))
        number = 2
        while unique_name in names:
            unique_name = f"{name[:50]}.{number}"
            number += 1
        names[unique_name] = host
    return names


def _plain(text: str) -> str:
    name = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9_.-]", "_", text))[:60].strip("-_.") or "machine"
    return name if re.match(MACHINE_NAME, name) else f"{name}_"


PLUGIN = Hosts()
