"""The option ``--env``, whose values are never shown or stored."""

import os
import re
import shlex
from collections.abc import Sequence

from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.secret_values import offer

_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"


def offered(env: list[str]) -> list[str]:
    """Offer the given values to the study that runs, and return the names of the variables."""
    given = given_variables(env)
    for name, value in given.items():
        offer(name, value)
    return [*given]


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
