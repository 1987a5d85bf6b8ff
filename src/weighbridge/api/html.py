"""Tables for notebooks as HTML. Every text is escaped."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from weighbridge.model.text import printable
from weighbridge.report.text.formatting import plain, with_unit


def table_html(heads: Sequence[object], rows: Iterable[Sequence[object]], *, title: str = "", note: str = "") -> str:
    """Return a table with a title above it and a note below it."""
    head = Markup("").join(Markup("<th>{}</th>").format(_text(each)) for each in heads)
    lines = (Markup("").join(Markup("<td>{}</td>").format(_text(each)) for each in row) for row in rows)
    body = Markup("\n").join(Markup("<tr>{}</tr>").format(line) for line in lines)
    above = Markup("<caption>{}</caption>\n").format(_text(title)) if title else ""
    below = Markup("\n<p>{}</p>").format(_text(note)) if note else ""
    return str(
        Markup("<table>\n{}<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody>\n</table>{}").format(
            above, head, body, below
        )
    )


def cost_text(cost: float | None, low: float | None, high: float | None, unit: str | None) -> str:
    """Return a cost with its interval: ``5.82% [2.96, 9.01]``; a dash if there is none."""
    if cost is None:
        return "–"
    limits = "" if low is None or high is None else f" [{plain(low)}, {plain(high)}]"
    return f"{with_unit(plain(cost), unit or '')}{limits}"


def _text(value: object) -> Markup:
    """Return a value as one escaped line; numbers with three digits."""
    if isinstance(value, float):
        value = plain(value)
    return escape(" ".join(printable("–" if value is None else str(value)).split()))
