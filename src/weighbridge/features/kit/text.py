"""Escapes other authors' text for one line, for a word of a shell, and for Markdown."""

import re
import shlex
from collections.abc import Sequence

from weighbridge.model.secret import SecretName, parts_of
from weighbridge.model.text import one_line

__all__ = ["compose_text", "kit_variable", "markdown", "one_line", "shell_line", "shell_word"]


def shell_word(text: str) -> str:
    """Return the text as a word of a shell. Each secret in it becomes a variable, which must be set."""
    parts = (shlex.quote(part) if isinstance(part, str) else f'"{_variable(*part)}"' for part in parts_of(text))
    return "".join(parts) or "''"


def shell_line(words: Sequence[str]) -> str:
    """Return the words of a command in shell syntax."""
    return " ".join(map(shell_word, words))


def compose_text(text: str) -> str:
    """Return the text as a value of a Compose file: dollar signs are escaped, and each secret becomes a variable."""
    return "".join(part.replace("$", "$$") if isinstance(part, str) else _variable(*part) for part in parts_of(text))


def kit_variable(name: SecretName) -> str:
    """Return the variable of a secret in a kit: its full name, because several can have the same last part."""
    return re.sub(r"\W|^(?=[0-9])", "_", name, flags=re.ASCII)


def _variable(name: SecretName) -> str:
    return f"${{{kit_variable(name)}:?its value is not in the kit}}"


def markdown(text: str) -> str:
    """Return one line of text without any markup for Markdown or a browser."""
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", one_line(text))
