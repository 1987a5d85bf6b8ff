"""Checks an OpenSSH configuration that a study names, before ssh reads it."""

import re
from collections.abc import Iterator

_REFUSED = {
    "include": "Include: copy what it includes into the file",
    "proxyjump": "ProxyJump: write it as a ProxyCommand",
}
"""Keywords, in lower case, that hide what ssh does. ``ProxyJump`` starts a second ssh without our options, which can
accept unknown machines."""
_TRUSTS = ("userknownhostsfile", "globalknownhostsfile", "knownhostscommand")


def lines(text: str) -> Iterator[str]:
    """Yield the lines of a configuration except comments."""
    for line in map(str.strip, text.split("\n")):
        if line and line[0] != "#":
            yield line


def refusal(text: str) -> str | None:
    """Return which keyword of a configuration is refused, and what to write in its place."""
    keywords = [_letters(line) for line in lines(text)]
    return next((why for word, why in _REFUSED.items() if any(each.startswith(word) for each in keywords)), None)


def has_own_host_keys(text: str) -> bool:
    """Return whether a configuration decides with host keys of its own which machines ssh trusts."""
    return any(_letters(line).startswith(_TRUSTS) for line in lines(text))


def _letters(line: str) -> str:
    """Return the letters of a line, because ssh accepts keywords with quotation marks, ``=`` and in any case."""
    return re.sub("[^a-z]", "", line.lower())
