"""LaTeX: text that it prints as it is, and tables for the package booktabs."""

import re
from collections.abc import Iterator, Sequence

from weighbridge.model.text import one_line, printable
from weighbridge.report.text.formatting import SPACE

MOST_ROWS = 40
"""The most rows of a table that fits on one page. A longer one is a longtable."""
_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "“": "``", "”": "''", SPACE: "~", "±": r"$\pm$", "×": r"$\times$",
    "→": r"$\to$", "∞": r"$\infty$", "µ": r"\textmu{}", "·": r"\textperiodcentered{}", "–": r"\textendash{}",
    "…": r"\dots{}",
    "\N{MINUS SIGN}": "$-$", "\N{REPLACEMENT CHARACTER}": "?",
}  # fmt: skip
_NEGATIVE = re.compile(r"(?<![\w.])-(?=[0-9])")
"""The sign of a number, and no hyphen."""
_OPENING = re.compile(r'(?<![^\s(\[])"(?=\S)')
_DOUBLE = re.compile("-(?=-)")

Group = tuple[str, Sequence[Sequence[str]]]
"""Rows of cells below a heading, which can be empty."""


def latex(text: str) -> str:
    """Return a text that LaTeX prints as it is, in one line."""
    parts = _NEGATIVE.split(_OPENING.sub("“", re.sub(r"[ \t\r\n]+", " ", printable(text))))
    escaped = "$-$".join("".join(_ESCAPES.get(letter, letter) for letter in part) for part in parts)
    return _DOUBLE.sub("-{}", escaped)  # LaTeX would print two hyphens as a dash


def booktabs(heads: Sequence[str], alignment: str, groups: Sequence[Group], comments: Sequence[str] = ()) -> str:
    """Return a table with its comments above it. ``alignment`` has a letter for each column."""
    long = sum(len(rows) for _, rows in groups) > MOST_ROWS
    kind = "longtable" if long else "tabular"
    return "\n".join(
        [
            *(f"% {one_line(each)}" for each in comments),
            f"% \\usepackage{{booktabs,{'longtable,' if long else ''}textcomp}}",
            f"\\begin{{{kind}}}{{@{{}}{alignment}@{{}}}}", r"\toprule", _row(heads), r"\midrule",
            *([r"\endhead"] if long else []), *_body(groups, len(heads)), r"\bottomrule", f"\\end{{{kind}}}", "",
        ]
    )  # fmt: skip


def _body(groups: Sequence[Group], columns: int) -> Iterator[str]:
    for number, (title, rows) in enumerate(groups):
        if number:
            yield r"\addlinespace"
        if title:
            yield f"\\multicolumn{{{columns}}}{{@{{}}l@{{}}}}{{\\emph{{{latex(title)}}}}} \\\\"
        yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
    row = " & ".join(map(latex, cells))
    # LaTeX would read a bracket or a star here as an option of the end of the row above
    return f"{'{}' if row.lstrip().startswith(('[', '*')) else ''}{row} \\\\"
