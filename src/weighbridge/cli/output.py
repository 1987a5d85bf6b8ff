"""The output of commands: results go to standard output, everything else to standard error."""

import functools
import io
import json
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from weighbridge.errors import WeighbridgeError
from weighbridge.model.text import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

WRONG_COMMAND_LINE = 2
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"


def given_variables(env: Sequence[str]) -> dict[str, str]:
    """Return the values of ``--env``: ``NAME`` is a variable of this process. No message repeats a value."""
    variables = {}
    for each in env:
        name, equals, value = each.partition("=")
        if not re.fullmatch(_VARIABLE, name):
            fail(f"--env {shlex.quote(name)}: write NAME or NAME=VALUE", WRONG_COMMAND_LINE)
        if not equals and name not in os.environ:
            fail(
                f"--env {name}: no such variable: set it in your environment, or write {name}=VALUE",
                WRONG_COMMAND_LINE,
            )
        variables[name] = value if equals else os.environ[name]
    for name, value in variables.items():
        try:
            value.encode()
        except UnicodeEncodeError:
            fail(f"--env {name}: its value is not UTF-8: write it in UTF-8", WRONG_COMMAND_LINE)
    return variables


def without_values(words: Sequence[str]) -> list[str]:
    """Return the words of a command line without the values that ``--env`` gives to variables."""
    pairs = zip(("", *words), words, strict=False)
    return [
        re.sub(r"^(--env=|-e)?([A-Za-z_]\w*)=.*", r"\1\2", word, flags=re.DOTALL)
        if before in ("--env", "-e") or word.startswith(("--env=", "-e"))
        else word
        for before, word in pairs
    ]


READER_GONE = 141


@functools.cache
def err() -> "Console":
    """Return the console for progress and messages."""
    return _console(stderr=True, soft_wrap=True)


@functools.cache
def out() -> "Console":
    """Return the console for results."""
    return _console()


def _console(*, stderr: bool = False, soft_wrap: bool = False) -> "Console":
    """Return a console that escapes control characters, so that stored text cannot control the terminal."""
    from rich.console import Console
    from rich.segment import Segment

    class Printable(Console):
        def render(
            self, renderable: "RenderableType", options: "ConsoleOptions | None" = None
        ) -> "Iterable[Segment]":
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

        def print(self, *objects: Any, **options: Any) -> None:
            if soft_wrap and self.is_terminal:
                objects = tuple(
                    _between_words(each, self.width) if isinstance(each, str) else each for each in objects
                )
            super().print(*objects, **options)

        def on_broken_pipe(self) -> None:
            if not self.stderr:
                reader_gone()
            super().on_broken_pipe()

    return Printable(highlight=False, stderr=stderr, soft_wrap=soft_wrap)


def take_any_character() -> None:
    """Let standard output and error escape characters that their encoding cannot represent, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(value: Any) -> None:
    """Print a value as JSON, in ASCII if the terminal cannot show the text safely."""
    from pydantic_core import PydanticSerializationError, to_json  # only for commands that print JSON

    try:
        text = to_json(value, indent=2).decode()  # a large run has 6 MB: two and a half times as fast as json
        as_it_is = printable(text) == text and _takes(text)
    except PydanticSerializationError:  # file names can contain half of a character
        as_it_is = False
    if not as_it_is:
        text = json.dumps(value, indent=2, allow_nan=False).replace("\x7f", r"\u007f")
    try:
        print(text, flush=True)
    except BrokenPipeError:
        reader_gone()


def _takes(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def reader_gone() -> NoReturn:
    """Exit quietly after the reader of the output has gone (``| head``)."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())  # for the output that is still buffered
    sys.exit(READER_GONE)


def fail(message: str, code: int) -> NoReturn:
    """Print a message for each line on standard error, and exit."""
    from weighbridge.secret_values import redacted

    for line in redacted(message).splitlines():
        text = f"weighbridge: {printable(line)}"
        print(
            _between_words(text, shutil.get_terminal_size().columns) if sys.stderr.isatty() else text, file=sys.stderr
        )
    sys.exit(code)


def _between_words(text: str, width: int) -> str:
    """Break a text into lines of the terminal's width, between words only."""
    return "\n".join(
        textwrap.fill(line, max(40, width), break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    )


def write_new(file: Path, text: str) -> None:
    """Write a new file. Raises WeighbridgeError if it exists or cannot be written."""
    try:
        with file.open("x") as target:
            target.write(text)
    except FileExistsError:
        raise WeighbridgeError(f"{file} already exists: name another file") from None
    except OSError as error:
        raise WeighbridgeError(f"cannot write {file}: {error.strerror}") from None


def examples(*lines: str) -> str:
    """Return the epilog of a command's help, one example per line."""
    head = "Example:" if len(lines) == 1 else "Examples:"
    return "\n\n".join((head, *(f"- {line}" for line in lines)))
