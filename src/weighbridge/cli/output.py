"""How commands talk: results to standard output, everything else to standard error."""

import functools
import json
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console

JsonFlag = typer.Option(False, "--json", help="Print JSON on standard output, and nothing else there.")


@functools.cache
def err() -> "Console":
    """The console for progress and messages."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


@functools.cache
def out() -> "Console":
    """The console for results."""
    from rich.console import Console

    return Console(highlight=False)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def fail(message: str, code: int) -> NoReturn:
    """Say what went wrong, and exit."""
    for line in message.splitlines():
        print(f"weighbridge: {line}", file=sys.stderr)
    sys.exit(code)
