"""The output of commands: results go to standard output, everything else to standard error."""

import functools
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError, to_json
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from weighbridge.cli.declared import later
from weighbridge.cli.messages import ANSWER, between_words, reader_gone
from weighbridge.errors import WeighbridgeError
from weighbridge.model.text import printable


@functools.cache
def err() -> Console:
    """Return the console for progress and messages."""
    return _Printable(highlight=False, stderr=True, soft_wrap=True)


@functools.cache
def out() -> Console:
    """Return the console for results."""
    return _Printable(highlight=False)


class _Printable(Console):
    """A console that escapes control characters, so that stored text cannot control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def print(self, *objects: Any, **options: Any) -> None:
        if ANSWER.json and not self.stderr:
            return  # the document is all of standard output
        if ANSWER.events and self.stderr:
            with self.capture() as captured:
                super().print(*objects, **options)
            later("weighbridge.cli.events:emit_message")(Text.from_ansi(captured.get()).plain)
            return
        if self.soft_wrap and self.is_terminal:
            objects = tuple(between_words(each, self.width) if isinstance(each, str) else each for each in objects)
        super().print(*objects, **options)

    def on_broken_pipe(self) -> None:
        if not self.stderr:
            reader_gone()
        super().on_broken_pipe()


def print_json(value: Any) -> None:
    """Print a value or a dataclass as JSON, in ASCII if the terminal cannot show the text safely."""
    ANSWER.printed = True
    try:
        text = to_json(value, indent=2).decode()  # a large run has 6 MB: two and a half times as fast as json
        as_it_is = printable(text) == text and _takes(text)
    except PydanticSerializationError:  # file names can contain half of a character
        as_it_is = False
    if not as_it_is:
        text = json.dumps(value, indent=2, allow_nan=False, default=vars).replace("\x7f", r"\u007f")
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


def write_new(file: Path, text: str) -> None:
    """Write a new file. Raises WeighbridgeError if it exists or cannot be written."""
    try:
        with file.open("x") as target:
            target.write(text)
    except FileExistsError:
        raise WeighbridgeError(f"{file} already exists: name another file") from None
    except OSError as error:
        raise WeighbridgeError(f"cannot write {file}: {error.strerror}") from None
