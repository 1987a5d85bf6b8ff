"""How commands talk: results to standard output, everything else to standard error."""

import functools
import json
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console

JsonFlag = typer.Option(False, "--json", help="Print JSON on standard output, and nothing else there.")
ProfileOption = typer.Option(
    None, "--profile", help="One of the study's profiles; without it, the study as it stands."
)
WRONG_COMMAND_LINE = 2
READER_GONE = 141


@functools.cache
def err() -> "Console":
    """The console for progress and messages."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


@functools.cache
def out() -> "Console":
    """The console for results."""
    from rich.console import Console

    class Results(Console):
        def on_broken_pipe(self) -> None:
            reader_gone()

    return Results(highlight=False)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    try:
        print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False), flush=True)
    except BrokenPipeError:
        reader_gone()


def reader_gone() -> NoReturn:
    """End quietly where the reader of our output has gone (``| head``): nobody is left to tell."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())  # what is still to be flushed
    sys.exit(READER_GONE)


def fail(message: str, code: int) -> NoReturn:
    """Say what went wrong, and exit."""
    for line in message.splitlines():
        print(f"weighbridge: {line}", file=sys.stderr)
    sys.exit(code)


def plural(number: int, thing: str) -> str:
    """``1 block``, ``2 blocks``."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def examples(*lines: str) -> str:
    """The end of a command's help: its examples, a line each."""
    head = "Example:" if len(lines) == 1 else "Examples:"
    return "\n\n".join((head, *(f"- {line}" for line in lines)))
