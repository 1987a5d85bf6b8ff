"""A gate as a part of a page in Markdown, as job summaries and comments take it."""

from collections.abc import Sequence

from weighbridge.report.markdown import escaped
from weighbridge.report.text.gate import GateRow

_SIGNS = {"passed": "✅", "failed": "❌", "undecided": "❔"}


def gate_markdown(study: str, answer: str, rows: Sequence[GateRow]) -> str:
    """Return a heading, the answer and a table of every comparison; what comes from the run steers no renderer."""
    lines = [
        f"## Weighbridge: {escaped(study)}",
        "",
        escaped(answer),
        "",
        "| | comparison | budget | cost | blocks | |",
        "|---|---|---|---|---:|---|",
    ]
    for row in rows:
        name = f"change of {row.name}" if row.change else row.name
        cells = (f"{_SIGNS[row.outcome]} {row.outcome}", name, row.budget, row.cost or "–", str(row.blocks), row.why)
        lines.append(f"| {' | '.join(map(escaped, cells))} |")
    return "\n".join(lines) + "\n\n"
