"""Text that others wrote, where it must stay what it is: in one line, in a word of a shell, in Markdown."""

import re
import shlex
from collections.abc import Sequence

from weighbridge.model.secret import SecretName, parts_of
from weighbridge.model.text import one_line

__all__ = ["compose_text", "kit_variable", "markdown", "one_line", "shell_line", "shell_word"]


def shell_word(text: str) -> str:
    """The text as a word of a shell. Each secret in it becomes a variable, which must be set in the environment."""
    parts = (shlex.quote(part) if isinstance(part, str) else f'"{_variable(*part)}"' for part in parts_of(text))
    return "".join(parts) or "''"


def shell_line(words: Sequence[str]) -> str:
    """The words of a command as a shell reads them."""
    return " ".join(map(shell_word, words))


def compose_text(text: str) -> str:
    """The text as a value of a Compose file: its dollar signs stay, and each secret in it is a variable."""
    return "".join(part.replace("$", "$$") if isinstance(part, str) else _variable(*part) for part in parts_of(text))


def kit_variable(name: SecretName) -> str:
    """Return the variable of a secret in a kit: its full name, because several can have the same last part."""
    return re.sub(r"\W|^(?=[0-9])", "_", name, flags=re.ASCII)


def _variable(name: SecretName) -> str:
    return f"${{{kit_variable(name)}:?its value is not in the kit}}"


def markdown(text: str) -> str:
    """The same, with nothing in it that Markdown or a browser would act on."""
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", one_line(text))
