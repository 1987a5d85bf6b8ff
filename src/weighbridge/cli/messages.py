"""How a command answers, and how it ends early: a message on standard error and an exit code.

Imports no library that prints results.
"""

import io
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import NoReturn

from weighbridge.model.text import printable
from weighbridge.secret_values import redacted

WRONG_COMMAND_LINE = 2
READER_GONE = 141
PREFIX = "weighbridge: "
"""The beginning of every message."""
_KINDS = {WRONG_COMMAND_LINE: "command-line", 4: "unavailable"}
"""The kind of a failure that has no class, by its exit code."""


@dataclass(slots=True)
class Answer:
    """The form of a command's output."""

    json: bool = False
    """Whether standard output gets one JSON document and nothing else (``--json``)."""
    events: bool = False
    """Whether standard error gets events and nothing else (``--progress json``)."""
    printed: bool = False
    """Whether the document has been printed."""


ANSWER = Answer()
"""The form of the output of this process."""


@contextmanager
def answering(*, json: bool, events: bool) -> Iterator[None]:
    """Answer in this form until the context ends."""
    before = ANSWER.json, ANSWER.events
    ANSWER.json, ANSWER.events = json, events
    try:
        yield
    finally:
        ANSWER.json, ANSWER.events = before


@contextmanager
def answering_as(words: Sequence[str]) -> Iterator[None]:
    """Answer in the form that a command line asks for, also if it cannot be parsed."""
    ours = words[: words.index("--")] if "--" in words else words
    ANSWER.printed = False
    events = "--progress=json" in ours or ("--progress", "json") in pairwise(ours)
    with answering(json="--json" in ours, events=events):
        yield


def take_any_character() -> None:
    """Let standard output and error escape characters that their encoding cannot represent, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def fail(
    message: str, code: int, *, kind: str = "", continue_with: Sequence[str] = (), help_with: Sequence[str] = ()
) -> NoReturn:
    """Print a message for each line on standard error, and exit.

    With ``--json``, also print an error document, unless the command has already printed its document.
    ``continue_with`` and ``help_with`` are the words of commands that continue the run and that show the options.
    """
    message, kind = redacted(message), kind or _KINDS.get(code, "failure")
    continue_with = [redacted(word) for word in continue_with]
    if ANSWER.json and not ANSWER.printed:
        print_failure = import_module("weighbridge.cli.failure").print_failure
        print_failure(message, code, kind, continue_with=continue_with, help_with=help_with)
    if ANSWER.events:
        import_module("weighbridge.cli.events").emit_end(code, kind, message)
    else:
        for line in (
            *message.splitlines(),
            *([f"to continue: {shlex.join(continue_with)}"] if continue_with else []),
        ):
            text = f"{PREFIX}{printable(line)}"
            width = shutil.get_terminal_size().columns
            print(between_words(text, width) if sys.stderr.isatty() else text, file=sys.stderr)
    sys.exit(code)


def one_format(formats: Mapping[str, bool]) -> str | None:
    """Return the name of the chosen format, or None. Exit with a message if there are several."""
    chosen = [name for name, is_chosen in formats.items() if is_chosen]
    if len(chosen) > 1:
        named = " and ".join(f"--{each}" for each in chosen)
        fail(f"{named} both use standard output: choose one", WRONG_COMMAND_LINE)
    return chosen[0] if chosen else None


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
