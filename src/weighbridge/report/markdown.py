"""Text of others in Markdown: GitHub, GitLab and plain CommonMark show it as it is, and follow nothing in it.

A backslash keeps what CommonMark itself would read. Platforms look for some things only in the text that is left then
(mentions, references to issues, shortcodes of emoji, mathematics, bare links): an empty comment parts these, which no
reader sees.
"""

import re
from collections.abc import Iterator, Sequence

from weighbridge.model.text import one_line

_SPECIAL = re.compile(r"[\\`*_{}\[\]()<>#+!|~$@&]")
_PART = "<!-- -->"
_FOLLOWED = re.compile(r"""(?<=[#!@$&~^])(?=\S)|(?<=%)(?=[\w"])|(?<=:)(?=[\w+-]+:|//)""")
"""The start of a mention (``@name``), a reference (``#1``), a shortcode (``:name:``) or a formula (``$x$``)."""
_BARE = re.compile(r"(?<=www)(?=\.)|(?<=GH)(?=-[0-9])", re.IGNORECASE)
"""Bare links, and references without a sign."""
_MARKER = re.compile(r"^(?=-(?:[-\s]|$)|/)|^[0-9]{1,9}(?=\.(?:\s|$))")
"""The start of a list, whose other signs are special anywhere, or of a command to the platform (``/close``)."""


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is, in one line: in a paragraph, a heading, a list or a table."""
    parts = _FOLLOWED.sub("\0", _BARE.sub("\0", one_line(text).replace("\0", "")))
    marked = _MARKER.sub(r"\g<0>" "\\\\", _SPECIAL.sub(r"\\\g<0>", parts))
    return marked.replace("\0", _PART)


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Return the lines of a table, whose cells are escaped."""
    yield f"| {' | '.join(escaped(each) for each in heads)} |"
    yield f"|{' --- |' * len(heads)}"
    yield from (f"| {' | '.join(escaped(each) for each in row)} |" for row in rows)
