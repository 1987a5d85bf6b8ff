"""Checks that LaTeX reads nothing in a text as its own."""

import re

_ALLOWED = re.compile(
    r"\\[{}&%$#_]|\\(?:text[a-z]+|dots)\{\}|\$(?:-|\\pm|\\times|\\to|\\infty)\$|-\{\}|~"
)  # fmt: skip
"""What `weighbridge.report.latex` makes of special characters."""


def is_plain(text: str) -> bool:
    """Return whether every special character is escaped, and no control character is left."""
    return not re.search(r'[\\{}&%$#_^"\x00-\x09\x0b-\x1f\x7f]', _ALLOWED.sub("", text))


def is_plain_table(text: str) -> bool:
    """Return whether the cells of a table are plain, its lines are those of a table, and no row begins an option."""
    frame = re.compile(
        r"% .*|\\(?:begin|end)\{(?:tabular|longtable)\}(?:\{@\{\}[lr]+@\{\}\})?|\\(?:top|mid|bottom)rule|\\endhead"
        r"|\\addlinespace"
    )
    for line in text.splitlines():
        if frame.fullmatch(line):
            continue
        row = re.fullmatch(r"(?:\\multicolumn\{\d\}\{@\{\}l@\{\}\}\{\\emph\{(.*)\}\}|(?:\{\})?(.*)) \\\\", line)
        if row is None or line.startswith(("[", "*")):
            return False
        if not all(is_plain(cell) for cell in (row[1] or row[2] or "").split(" & ")):
            return False
    return True
