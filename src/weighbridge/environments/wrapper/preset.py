"""Presets: sandboxes as data. Each is a YAML file in ``presets/``; docs/howto/sandboxes.md explains every key.

All presets have the same policy as far as they can: programs read everything, write only the working folder, ``/srv``
and ``/tmp``, and have no network (``none``) or the network of the host (``host``).
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from weighbridge.errors import StudyError, WeighbridgeError
from weighbridge.model.facts import CONFINEMENT
from weighbridge.model.validation import problem_of

FOLDER = Path(__file__).parent / "presets"
RULES = "/run/weighbridge-rules"
"""The folder with a file for each additional rule (launcher/source/site.h)."""
Network = Literal["none", "host"]
Denial = Literal["write", "connect"]
"""``write``: programs cannot write outside of the policy. ``connect``: without a network, they reach no program."""
_PLACES = ("data", "folder", "home", "launcher", "settings", "outside")
_PLACE = re.compile("{(" + "|".join(_PLACES) + ")}")
_PART = re.compile(r"\{([a-z][a-z0-9-]*)\}")
_RULE = "{rule}"
_INSTALLERS = {
    "pypi": "pip install {}", "npm": "npm install --global {}", "crates": "cargo install {}",
    "go": "go install {}@latest",
}  # fmt: skip


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern[:60]!r} is not a regular expression: {error}") from None
    return pattern


_Fact = Annotated[str, Field(pattern=f"^({'|'.join(CONFINEMENT)})$")]
_Claims = Mapping[_Fact, Annotated[str, AfterValidator(_compiles)]]
_Words = tuple[Annotated[str, Field(min_length=1)], ...]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class PresetNetwork(_Data):
    """One of the networks of a preset."""

    options: Annotated[_Words, Field(description="Words that stand for `{network}` in the command")] = ()
    settings: Annotated[
        Mapping[str, Any] | None,
        Field(description="The settings file, which Weighbridge writes as JSON. `{settings}` is its path"),
    ] = None
    confines: Annotated[_Claims, Field(description="As in a preset, with this network")] = Field(default_factory=dict)


class PresetSwitch(_Data):
    """A mechanism that a preset can leave out, for ``explain``."""

    on: Annotated[_Words, Field(description="Words for the mechanism's name in the command, while it is on")] = ()
    off: Annotated[_Words, Field(description="Words for its name while it is off")] = ()
    confines: Annotated[_Claims, Field(description="As in a preset, while it is on")] = Field(default_factory=dict)
    denies: Annotated[frozenset[Denial], Field(description="As in a preset, while it is on")] = frozenset()


class Preset(_Data):
    """A program that runs another one with the common policy."""

    summary: Annotated[
        str, Field(min_length=10, max_length=110, description="The means of its confinement, in a few words")
    ]
    source: Annotated[str, Field(min_length=3, description="Its project page or manual")]
    programs: Annotated[
        _Words, Field(min_length=1, description="The programs that must be installed, the wrapper itself first")
    ]
    get: Annotated[
        Mapping[Literal["pypi", "npm", "crates", "go"], str],
        Field(
            description="The wrapper's name in a registry, by `pypi`, `npm`, `crates` or `go`. If distributions "
            "package it, leave this out, and add a line to `src/weighbridge/linux/packages.txt`"
        ),
    ] = Field(default_factory=dict)
    command: Annotated[
        _Words,
        Field(
            min_length=1,
            description="The command line, up to the program that the wrapper starts, with the words `{network}` and "
            "`{NAME}` for each switch",
        ),
    ]
    network: Annotated[
        Mapping[Network, PresetNetwork],
        Field(min_length=1, description="The networks that it can give: `none`, `host`"),
    ]
    confines: Annotated[
        _Claims,
        Field(description="Facts that Weighbridge reads inside, each with a regular expression for its value"),
    ] = Field(default_factory=dict)
    denies: Annotated[
        frozenset[Denial],
        Field(
            description="Denials that Weighbridge tries: `write` outside of the policy, and `connect` to a program "
            "of the host"
        ),
    ] = frozenset()
    lacks: Annotated[
        Mapping[
            Literal["read", "write", "shared memory", "network"],
            Annotated[str, Field(pattern=r"^[^\n]{10,200}[^.\n]$")],
        ],
        Field(
            description="Parts of the policy that it does not cover, by `read`, `write`, `shared memory` or "
            "`network`, each with what it allows or refuses instead"
        ),
    ] = Field(default_factory=dict)
    switches: Annotated[
        Mapping[str, PresetSwitch], Field(description="Mechanisms that it can leave out, by their names in `explain`")
    ] = Field(default_factory=dict)
    version: Annotated[_Words, Field(description="The command that prints its version, if it has one")] = ()
    rule: Annotated[
        _Words,
        Field(
            description="Words that add a rule that changes nothing: `{rule}` is a file of its own, which programs "
            "can read anyway. `{rules}` in the command stands for all additional rules"
        ),
    ] = ()
    only_root: Annotated[
        bool, Field(description="Whether it is a setuid program, which cannot work in a user's namespace")
    ] = False
    unverified: Annotated[str, Field(description="The part that was never tested, if any")] = ""

    @model_validator(mode="after")
    def _consistent(self) -> "Preset":
        known = {"network", *self.switches, *(["rules"] if self.rule else [])}
        parts = {word: _PART.findall(_PLACE.sub("", word)) for word in self.command}
        used = [name for names in parts.values() for name in names]
        if unknown := [name for name in used if name not in known]:
            raise ValueError(f"the command has the unknown placeholder {{{unknown[0]}}}")
        if missing := sorted(known - {*used}):
            raise ValueError(f"the command lacks {{{missing[0]}}}")
        if inside := [word for word, names in parts.items() if names and not _PART.fullmatch(word)]:
            raise ValueError(f"{inside[0]!r}: a part of the command must be a word of its own")
        if self.rule and not any(_RULE in word for word in self.rule):
            raise ValueError(f"'rule' must contain {_RULE}")
        if "connect" in self.denied(frozenset()) and "none" not in self.network:
            raise ValueError("it can only deny connections if it has the network 'none'")
        return self

    def installers(self) -> dict[str, str]:
        """Return the command that installs the wrapper from a package registry, by its program; {} if none has it."""
        commands = [_INSTALLERS[registry].format(name) for registry, name in self.get.items()]
        return {self.programs[0]: commands[0]} if commands else {}

    def chosen(self, network: Network | None, *, networked: bool) -> Network:
        """Return the network that a study asks for, or else none, unless programs need one or always have one."""
        if network is not None:
            return network
        return "none" if "none" in self.network and not (networked and "host" in self.network) else "host"

    def claims(self, network: Network, without: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Yield the facts that must be in force, each with the regular expression that its value must match."""
        parts = (each.confines for name, each in self.switches.items() if name not in without)
        for claims in (self.confines, self.network[network].confines, *parts):
            yield from claims.items()

    def denied(self, without: frozenset[str]) -> frozenset[Denial]:
        """Return the denials that must be in force."""
        return self.denies.union(*(each.denies for name, each in self.switches.items() if name not in without))

    def words(self, network: Network, without: frozenset[str], places: "Places", rules: int = 0) -> tuple[str, ...]:
        """Return its command line up to the program, with ``rules`` additional rules."""
        parts = {name: each.off if name in without else each.on for name, each in self.switches.items()}
        parts["network"] = self.network[network].options
        paths = [f"{RULES}/{number}" for number in range(rules)]
        parts["rules"] = tuple(word.replace(_RULE, path) for path in paths for word in self.rule)

        def expanded() -> Iterator[str]:
            for word in self.command:
                match = _PART.fullmatch(word)
                yield from parts[match[1]] if match and match[1] in parts else (word,)

        return tuple(map(places.filled, expanded()))

    def settings(self, network: Network, places: "Places") -> str:
        """Return the text of its settings file, or "" if it has none."""
        data = self.network[network].settings
        return "" if data is None else json.dumps(_filled(data, places.filled))


@dataclass(frozen=True, slots=True)
class Places:
    """The paths that placeholders stand for.

    ``data`` is the folder of the data: ``/srv`` if there is storage, else ``folder``. ``folder`` is the working
    folder, or ``/tmp`` if programs start in ``/``. ``home`` is a folder for the wrapper's own files. ``launcher`` is
    Weighbridge's program, which the wrapper must start. ``outside`` is a folder with a random name, to which programs
    must not write: a mount of its own.
    """

    data: str
    folder: str
    home: str
    launcher: str
    settings: str
    outside: str

    def filled(self, text: str) -> str:
        """Return a text with the paths in the place of their names. All other braces stay."""
        return _PLACE.sub(lambda match: str(getattr(self, match[1])), text)


def _filled(value: Any, fill: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _filled(each, fill) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(each, fill) for each in value]
    return fill(value) if isinstance(value, str) else value


class PresetError(WeighbridgeError):
    """The file of a preset is wrong or unreadable. It is not a StudyError, because no study has the mistake."""

    exit_code = StudyError.exit_code


def names() -> list[str]:
    """Return the names of all presets, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


@cache
def preset(name: str) -> Preset:
    """Return a preset by its name. Raises PresetError if its file is wrong, and KeyError if there is none."""
    if name not in names():
        raise KeyError(name)
    try:
        text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or "it is not UTF-8"
        raise PresetError(f"the preset file {name}.yaml cannot be read: {why}") from None
    return parsed(name, text)


def parsed(name: str, text: str) -> Preset:
    """Return the preset in a text. Raises PresetError."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return Preset.model_validate(YAML(typ="safe", pure=True).load(text))
    except ValidationError as error:
        raise PresetError(f"the preset file {name}.yaml: {problem_of(error)}") from None
    except YAMLError as error:
        why, mark = getattr(error, "problem", None) or str(error), getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark else ""
        raise PresetError(f"the preset file {name}.yaml is not valid YAML{line}: {' '.join(why.split())}") from None
