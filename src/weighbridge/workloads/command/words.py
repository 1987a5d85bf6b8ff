"""The words of a study's own command. It is split once and then filled, so that no value becomes two words."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from weighbridge.model.workload import Endpoint

OF_A_SERVER = ("address", "port", "data_port", "listen")
"""The placeholders of a server's place. Only commands of a server and its client have them."""
SHELL = ("/bin/sh", "-c")
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_BRACES = {"{{": "{", "}}": "}"}

CommandText = str | tuple[str, ...]
"""A command as the study contains it: one text, or its words."""


@dataclass(frozen=True, slots=True)
class Template:
    """A command with placeholders. With ``shell`` it is one text for /bin/sh, in which values are quoted."""

    written: CommandText
    shell: bool = False

    def words(self) -> tuple[str, ...]:
        """Return the words with their placeholders. The ValueError says in one sentence what is wrong."""
        if not isinstance(self.written, str):
            if self.shell:
                raise ValueError("with 'shell: true' it is one text for /bin/sh, not a list of words")
            return _check(self.written)
        if self.shell:
            return _check((self.written,))
        try:
            return _check(tuple(shlex.split(self.written)))
        except ValueError as error:
            problem = str(error)
            if problem in ("No closing quotation", "No escaped character"):
                problem = f"its words cannot be split ({problem.lower()}): quote them as in a shell, or write a list"
            raise ValueError(problem) from None

    def placeholders(self) -> Iterator[str]:
        """Yield the names in braces in their order."""
        for word in self.words():
            yield from (match[1] for match in _PLACEHOLDER.finditer(word) if match[0] not in _BRACES)

    def argv(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """Return the arguments. Every placeholder must have a value."""
        if self.shell:
            quoted = {name: shlex.quote(value) for name, value in values.items()}
            return (*SHELL, *(_fill(word, quoted) for word in self.words()))
        return tuple(_fill(word, values) for word in self.words())


def place_values(at: Endpoint) -> dict[str, str]:
    """Return the values of the placeholders of a server's place."""
    return {"address": at.address, "port": str(at.port), "data_port": str(at.data_port), "listen": at.listen}


def unknown_placeholder(template: Template, allowed: tuple[str, ...]) -> str:
    """Return a sentence about the first unknown placeholder, or ""."""
    for name in template.placeholders():
        if name in allowed:
            continue
        if name in OF_A_SERVER:
            return f"'{{{name}}}' needs a server: write 'server' and 'client', not 'run'"
        written = ", ".join(f"{{{each}}}" for each in allowed) or "none"
        return f"unknown placeholder '{{{name:.40}}}' (known: {written}); a brace itself is written '{{{{' or '}}}}'"
    return ""


def _check(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or not words[0].strip():
        raise ValueError("it names no program: write one")
    if any("\0" in word for word in words):
        raise ValueError("one of its words has a zero byte: remove it")
    return words


def _fill(word: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: _BRACES.get(match[0]) or values[match[1]], word)
