"""The contract of a feature: a part of the program in one folder of `weighbridge.features`, which can be removed.

The core finds features here and imports none of them by name.
"""

import functools
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, make_dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weighbridge.cli.declared import later

if TYPE_CHECKING:
    from weighbridge.model.study import Study
    from weighbridge.runner.session import Progress

_PACKAGE = "weighbridge.features"
Watch = Callable[["Progress", "Study | None", Path], AbstractContextManager["Progress"]]
"""Opens a context with the progress for a run to use. The study is None if a run in the directory is continued."""


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
class Watcher:
    """An option of the commands that run a study, with which a feature follows the run.

    ``option`` is a field from `weighbridge.cli.declared.option`. ``watches`` is ``module:function``. The function
    gets the value of the option before anything starts, and returns a `Watch`.
    """

    name: str
    option: Any
    watches: str


@dataclass(frozen=True, slots=True)
class Feature:
    """The additions of a feature to the command line.

    ``commands`` are the places of its commands, ``module:NAME``, by name. Help lists them after the command that
    ``after`` names, or last. ``documents`` are the JSON documents of its commands: ``module:type`` by the name for
    ``schema``. ``api`` are functions that the Python API needs: ``module:function`` by name.
    """

    commands: Mapping[str, str] = field(default_factory=dict)
    after: str = ""
    documents: Mapping[str, str] = field(default_factory=dict)
    pages: Sequence[FurtherPage] = ()
    watchers: Sequence[Watcher] = ()
    api: Mapping[str, str] = field(default_factory=dict)


@functools.cache
def features() -> tuple[Feature, ...]:
    """Return every feature by the name of its folder. A folder's ``__init__.py`` holds it as ``FEATURE``.

    A folder without this object adds only plug-ins, which the registry finds.
    """
    folders = sorted(module.name for module in pkgutil.iter_modules(import_module(_PACKAGE).__path__))
    found = (getattr(import_module(f"{_PACKAGE}.{name}"), "FEATURE", None) for name in folders)
    return tuple(each for each in found if each is not None)


def _watchers() -> Iterator[Watcher]:
    return (watcher for feature in features() for watcher in feature.watchers)


@functools.cache
def watching() -> type:
    """Return a dataclass with the options of all watchers."""
    return make_dataclass("Watching", [(each.name, str | None, each.option) for each in _watchers()], frozen=True)


def watches_of(options: Any) -> list[Watch]:
    """Return what follows a run with these values of `watching`. Exit with a message if one is wrong."""
    return [later(each.watches)(getattr(options, each.name)) for each in _watchers()]


@contextmanager
def watched(
    watches: Sequence[Watch], progress: "Progress", study: "Study | None", directory: Path
) -> Iterator["Progress"]:
    """Yield the progress that informs the user and everything that watches the run."""
    with ExitStack() as stack:
        for watch in watches:
            progress = stack.enter_context(watch(progress, study, directory))
        yield progress


def with_features(core: Mapping[str, str]) -> dict[str, str]:
    """Return the places of the core's commands and of all features' commands, in the order of help."""
    names, places = [*core], {**core}
    for feature in features():
        start = names.index(feature.after) + 1 if feature.after in names else len(names)
        names[start:start] = feature.commands
        places |= feature.commands
    return {name: places[name] for name in names}
