"""Repeat the tables of all claims of docs/methods on one page, docs/methods/evidence.md.

    python docs/evidence.py

The tables of the claims are the original; `tests/test_docs.py` checks that the page has them.
"""

import re
from collections.abc import Iterator
from pathlib import Path

METHODS = Path(__file__).parent / "methods"
PAGE = METHODS / "evidence.md"
CLAIMS = (
    "design", "estimate", "control", "verdicts", "stopping", "comparing-runs", "gates", "fleets", "explanations",
)  # fmt: skip
BEGIN, END = "<!-- tables of the claims, by docs/evidence.py -->\n", "<!-- end of the tables -->\n"
SECTION = re.compile(r"^## (Claim [\d.]+: .+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
TABLE = re.compile(r"^\| question \|.*\n(?:\|.*\n)+", re.MULTILINE)


def tables() -> Iterator[str]:
    """Yield each claim that has figures, as a link, with its table."""
    for page in CLAIMS:
        for title, section in SECTION.findall((METHODS / f"{page}.md").read_text()):
            anchor = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
            yield from (f"### [{title}]({page}.md#{anchor})\n\n{table}" for table in TABLE.findall(section))


def filled(text: str) -> str:
    """Return the page with the present tables."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + "\n".join(tables()) + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
