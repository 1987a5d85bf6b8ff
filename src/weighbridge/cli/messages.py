"""How a command ends early: a message on standard error and an exit code. Imports no library that prints results."""

import io
import os
import shutil
import sys
import textwrap
from typing import NoReturn

from weighbridge.model.text import printable
from weighbridge.secret_values import redacted

WRONG_COMMAND_LINE = 2
READER_GONE = 141
PREFIX = "weighbridge: "
"""The beginning of every message."""


def take_any_character() -> None:
    """Let standard output and error escape characters that their encoding cannot represent, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def fail(message: str, code: int) -> NoReturn:
    """Print a message for each line on standard error, and exit."""
    for line in redacted(message).splitlines():
        text = f"{PREFIX}{printable(line)}"
        print(
            between_words(text, shutil.get_terminal_size().columns) if sys.stderr.isatty() else text, file=sys.stderr
        )
    sys.exit(code)


def reader_gone() -> NoReturn:
    """Exit quietly after the reader of the output has gone (``| head``)."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())  # for the output that is still buffered
    sys.exit(READER_GONE)


def between_words(text: str, width: int) -> str:
    """Break a text into lines of the terminal's width, between words only."""
    return "\n".join(
        textwrap.fill(line, max(40, width), break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    )
