"""The contract of a feature: a part of the program in one folder of `weighbridge.features`, which can be removed.

The core finds features here and imports none of them by name.
"""

import functools
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from weighbridge.cli.declared import App, Declared

_PACKAGE = "weighbridge.features"


@dataclass(frozen=True, slots=True)
class FurtherPage:
    """A page that a feature writes next to a run's report.

    ``writes`` is ``module:function``. The function gets the store and the analysis of a run that has the ``file``,
    writes it again, and returns its document and its path.
    """

    file: str
    title: str
    writes: str


@dataclass(frozen=True, slots=True)
class Feature:
    """The additions of a feature to the command line.

    ``documents`` are the JSON documents of its commands, as ``module:type`` by the name for ``schema``.
    """

    commands: Sequence[Declared] = ()
    groups: Sequence[App] = ()
    documents: Mapping[str, str] = field(default_factory=dict)
    pages: Sequence[FurtherPage] = ()


@functools.cache
def features() -> tuple[Feature, ...]:
    """Return every feature by the name of its folder. A folder's ``__init__.py`` holds it as ``FEATURE``."""
    folders = sorted(module.name for module in pkgutil.iter_modules(import_module(_PACKAGE).__path__))
    return tuple(import_module(f"{_PACKAGE}.{name}").FEATURE for name in folders)


def ordered(core: Sequence[Declared]) -> list[Declared]:
    """Return the commands of the core and of all features, each after the command that it names."""
    commands = list(core)
    for command in (each for feature in features() for each in feature.commands):
        names = [each.name for each in commands]
        place = names.index(command.after) + 1 if command.after in names else len(commands)
        commands.insert(place, command)
    return commands
