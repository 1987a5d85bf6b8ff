"""Commands as data: the options as a frozen dataclass, examples, and the name of the function that does the work.

``--help`` imports only declarations. The module with the function is imported when the command runs.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.main

from weighbridge.cli.help import Command, Group
from weighbridge.cli.messages import answering

_OPTION = "option"
"""The key of typer's description of an option in the metadata of a field."""
_DEFERRED = "deferred"
"""The key of the place that returns the type of a field, in the metadata of the field."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A command. ``runs`` is ``module:function``; the function gets an instance of ``options``.

    A field of the options is an option or an argument, or a dataclass with more of them. The docstring is the help.
    ``documents`` are the documents that the command prints with ``--json``, by their names for ``schema``. Every
    command has the field ``as_json`` from `json_flag`. With it, text for standard output is not shown, and a failure
    becomes a document: the command only has to print its result with `print_json` if ``ANSWER.json`` is true.
    """

    runs: str
    options: type
    examples: Sequence[str]
    documents: Sequence[str] = ()
    cls: type[Command] = Command
    hidden: bool = False


class App(typer.Typer):
    """A group of commands: by name, the place ``module:NAME`` of a `Declared` or of another group.

    A command's module is imported when the command is looked up, so one command does not wait for the others.
    """

    def __init__(self, name: str, about: str, commands: Mapping[str, str]) -> None:
        loaded = _Commands(commands)
        cls = type(Group.__name__, (Group,), {"commands": property(lambda _: loaded, lambda _, none: None)})
        super().__init__(name=name, help=about, cls=cls, pretty_exceptions_enable=False, rich_markup_mode=None)


class _Commands(Mapping[str, Any]):
    """The commands of a group for typer, by name."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _command(name, _at(self._places[name]))
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _command(name: str, declared: Declared | App) -> Any:
    """Return the command or group that typer makes."""
    if isinstance(declared, App):
        return typer.main.get_group(declared)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    alone.command(
        name,
        cls=declared.cls,
        help=inspect.getdoc(declared.options),
        epilog="\n".join(declared.examples),
        hidden=declared.hidden,
    )(_callback(declared))
    made: Any = typer.main.get_command(alone)
    made.documents = declared.documents
    return made


def _at(place: str) -> Any:
    """Return the object at ``module:name``."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def later(place: str) -> Callable[..., Any]:
    """Return a function that calls ``module:function``, and imports the module only then."""

    def call(*arguments: Any, **named: Any) -> Any:
        return _at(place)(*arguments, **named)

    return call


def option(spelling: str, about: str, panel: str | None = None, *, default: Any = None, **settings: Any) -> Any:
    """Return a field for an option. ``spelling`` has its names and, if it has a value, the metavar: ``--out DIR``."""
    names = [word for word in spelling.split() if word.startswith("-")]
    metavar = spelling.rpartition(" ")[2]
    shown = None if metavar in names else metavar
    return _field(typer.Option(*names, metavar=shown, help=about, rich_help_panel=panel, **settings), default)


def flag(spelling: str, about: str, panel: str | None = None, **settings: Any) -> Any:
    """Return a field for an option without a value."""
    return option(spelling, about, panel, default=False, **settings)


def argument(
    metavar: str | None, about: str, panel: str | None = None, *, default: Any = MISSING, **settings: Any
) -> Any:
    """Return a field for an argument, which is required if it has no default."""
    return _field(typer.Argument(metavar=metavar, help=about, rich_help_panel=panel, **settings), default)


def deferred(place: str) -> Any:
    """Return a field for more options: ``module:function`` returns their dataclass when the commands are made."""
    return field(default=None, metadata={_DEFERRED: place})


def _type_of(option: "Field[Any]") -> Any:
    return later(option.metadata[_DEFERRED])() if _DEFERRED in option.metadata else option.type


def _field(info: Any, default: Any) -> Any:
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata={_OPTION: info})
    return field(default=default, metadata={_OPTION: info})


def _callback(declared: Declared) -> Callable[..., None]:
    """Return the function of a command for typer, with a parameter for each option."""

    def run(**given: Any) -> None:
        with answering(json=given.get("as_json", False), events=given.get("progress") == "json"):
            later(declared.runs)(_filled(declared.options, given))

    run.__signature__ = inspect.Signature([*_parameters(declared.options)])  # type: ignore[attr-defined]
    return run


def _parameters(options: Any) -> Iterator[inspect.Parameter]:
    for each in fields(options):
        if is_dataclass(group := _type_of(each)):
            yield from _parameters(group)
        else:
            annotation = Annotated[each.type, each.metadata[_OPTION]] if each.metadata else each.type
            kind = inspect.Parameter.KEYWORD_ONLY
            yield inspect.Parameter(each.name, kind, default=_default(each), annotation=annotation)


def _default(option: "Field[Any]") -> Any:
    if option.default_factory is not MISSING:
        return option.default_factory()
    return inspect.Parameter.empty if option.default is MISSING else option.default


def _filled(options: Any, given: Mapping[str, Any]) -> Any:
    """Return an instance of the options, with the values that typer gives."""
    return options(
        **{
            each.name: _filled(group, given) if is_dataclass(group := _type_of(each)) else given[each.name]
            for each in fields(options)
        }
    )
