"""The base classes of all commands: their ``--help``, the panels of options, and old spellings of options.

`panels_of` is the one list of a command's arguments and options. ``--help``, the manual page and the documentation
are made from it.
"""

import shutil
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

WHAT: Final = "What to run"
WHERE: Final = "Where"
MEASURE: Final = "What to measure"
LIMITS: Final = "Limits"
DURATION: Final = "How long"
OUTPUT: Final = "Output"
OLD_NAMES: Final[Mapping[str, str]] = {
    "--blocks": "--rounds",
    "--rehearsal": "--quick-test",
    "--beside-others": "--allow-concurrent",
}
"""Old spellings of options, which still work but are shown nowhere, with the present names."""
_ARGUMENTS, _OPTIONS, _COMMANDS = "Arguments", "Options", "Commands"
_INDENT, _COLUMN = 2, 28
"""The columns of options and of their descriptions."""
_NARROWEST, _WIDEST = 40, 100
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


class Entry(NamedTuple):
    """An argument or option of a command: its names, its value as it is written, and its description."""

    names: str
    value: str
    description: str

    @property
    def usage(self) -> str:
        """The names and the value: ``--out DIR``."""
        return f"{self.names} {self.value}".strip()


def panels_of(command: Any) -> dict[str, list[Entry]]:
    """Return the arguments and options of a command by panel. Within a panel they have the order of the signature."""
    panels: dict[str, list[Entry]] = {}
    for each in command.params:
        if getattr(each, "hidden", False):
            continue
        is_argument = each.param_type_name == "argument"
        panel = getattr(each, "rich_help_panel", None) or (_ARGUMENTS if is_argument else _OPTIONS)
        panels.setdefault(panel, []).append(_argument(each) if is_argument else _option(each))
    order = [_ARGUMENTS, WHAT, WHERE, MEASURE, LIMITS, DURATION, OUTPUT]
    last = len(order)
    ordered = sorted(panels.items(), key=lambda item: order.index(item[0]) if item[0] in order else last)
    return dict(ordered) | getattr(command, "provider_panels", dict)()


class Example(NamedTuple):
    """An example of a command. ``--help`` shows it in its panel, or at the end if that is empty."""

    line: str
    panel: str


def examples_of(command: Any) -> list[Example]:
    """Return the examples of a command. Each is a line of its epilog, with the panel as a comment."""
    lines = [line.partition("  # ") for line in (command.epilog or "").splitlines()]
    return [Example(line, panel) for line, _, panel in lines]


def _argument(argument: Any) -> Entry:
    return Entry(argument.metavar or argument.name.upper(), "", _about(argument))


def _option(option: Any) -> Entry:
    names = ", ".join(sorted(option.opts, key=len) + option.secondary_opts)
    is_flag = getattr(option, "is_flag", False)
    return Entry(names, "" if is_flag else option.metavar or option.name.upper(), _about(option))


def _about(parameter: Any) -> str:
    about, default = parameter.help or "", parameter.default
    is_value = isinstance(default, str | float | int | PurePath) and not isinstance(default, bool)
    if parameter.show_default and is_value and str(default):
        return f"{about} Default: {default:g}." if isinstance(default, float) else f"{about} Default: {default}."
    return about


class _Helpful:
    """A command that writes its own ``--help``: plain text in the width of the terminal.

    An example that ends with the comment ``# PANEL`` is shown in that panel.
    """

    def format_help(self: Any, ctx: Any, formatter: Any) -> None:
        """Write usage, description, panels and examples."""
        width = max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))
        formatter.write("\n".join(self.help_lines(ctx, width)) + "\n")

    def collect_usage_pieces(self: Any, ctx: Any) -> list[str]:  # the name is typer's
        """Return the parts of the usage line: optional arguments are in brackets."""
        pieces = ["[OPTIONS]"]
        for each in (each for each in self.params if each.param_type_name == "argument"):
            name = _argument(each).names
            pieces.append((name if each.required else f"[{name}]") + "..." * (each.nargs == -1 and name[-1] != "."))
        return pieces + ["COMMAND [ARGUMENTS]..."] * hasattr(self, "commands")

    def help_lines(self: Any, ctx: Any, width: int) -> Iterator[str]:
        """Yield the lines of the help."""
        usage = f"Usage: {ctx.command_path} {' '.join(self.collect_usage_pieces(ctx))}"
        yield from textwrap.wrap(usage, width, subsequent_indent=" " * len("Usage: "), break_on_hyphens=False)
        for text in (self.help or "").split("\n\n"):
            yield from ("", *_wrapped(text, width))
        examples = examples_of(self)
        for name, entries in panels_of(self).items():
            yield from ("", f"{_BOLD}{name}{_PLAIN}")
            for entry in entries:
                yield from _two_columns(entry.usage, entry.description, width)
            for each in (each for each in examples if each.panel == name):
                yield from ("", *_wrapped(f"Example: {each.line}", width, indent=_INDENT, hanging=_INDENT + 2))
        commands = getattr(self, "commands", {})
        if shown := {name: each for name, each in commands.items() if not each.hidden}:
            yield from ("", f"{_BOLD}{_COMMANDS}{_PLAIN}")
            for name, each in shown.items():
                yield from _two_columns(name, (each.help or "").partition("\n\n")[0], width)
        if last := [each.line for each in examples if not each.panel]:
            yield from ("", f"{_BOLD}{'Example' if len(examples) == 1 else 'Examples'}{_PLAIN}")
            for line in last:
                yield from _wrapped(line, width, indent=_INDENT, hanging=_INDENT + 2)


def _wrapped(text: str, width: int, *, indent: int = 0, hanging: int = 0) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()), width, initial_indent=" " * indent, subsequent_indent=" " * hanging,
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip


def _two_columns(left: str, right: str, width: int) -> Iterator[str]:
    """Yield an option and its description: on the same line if the option is short, otherwise below it."""
    lines = _wrapped(right, width, indent=_COLUMN, hanging=_COLUMN) or [""]
    if len(left) <= _COLUMN - _INDENT - 2:
        yield f"{' ' * _INDENT}{left:{_COLUMN - _INDENT}}{lines[0][_COLUMN:]}".rstrip()
        yield from lines[1:]
    else:
        yield " " * _INDENT + left
        yield from lines


class Command(_Helpful, TyperCommand):
    """A command that also accepts the old spellings of its options."""

    def make_parser(self, ctx: Any) -> Any:
        """Add the old spellings to the parser alone, so that nothing shows them."""
        parser = super().make_parser(ctx)
        known = parser._long_opt  # the only place that maps a spelling to its option
        known.update({old: known[new] for old, new in OLD_NAMES.items() if new in known})
        return parser

    @property
    def spellings(self) -> set[str]:
        """Every long option of the command, the old spellings too."""
        names = {name for each in self.params for name in each.opts if name.startswith("--")}
        return names | {old for old, new in OLD_NAMES.items() if new in names}


class Group(_Helpful, TyperGroup):
    """A group of commands; without arguments it shows its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show the help if the command line is empty. Shell completion also parses an empty one."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit(2)
        return super().parse_args(ctx, args)
