"""Text that others wrote, where it must stay what it is: in one line, in a word of a shell, in Markdown."""

import re

from weighbridge.model.text import one_line

__all__ = ["markdown", "one_line"]


def markdown(text: str) -> str:
    """The same, with nothing in it that Markdown or a browser would act on."""
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", one_line(text))
