"""The matrix in the terminal: in bands of environments where they have no room beside one another."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weighbridge.analysis.results import Analysis
from weighbridge.model.text import printable
from weighbridge.report.text.matrix import Matrix, cost_range, large, matrix, native, small

if TYPE_CHECKING:
    from rich.console import RenderableType

STYLES = {"different": "bold yellow", "broke": "yellow", "hidden": "magenta", "equivalent": "green"}
"""Style by `Cell.shown_as`; any other is dim."""

HEAD, CELL = 26, 13
"""Columns of a row's head and of an environment, below which it wraps badly."""


def matrix_tables(analysis: Analysis, width: int) -> "Iterator[RenderableType]":
    """Give the matrix as one table, or several where `width` columns are too few; none without environments."""
    whole = matrix(analysis)
    at_once = max(1, (width - HEAD) // (CELL + 2))
    bands = -(-len(whole.environments) // at_once)
    each = -(-len(whole.environments) // bands) if bands else 0  # as many in each
    for first in range(0, len(whole.environments), each or 1):
        yield _table(analysis, whole, range(first, min(first + each, len(whole.environments))))


def _table(analysis: Analysis, whole: Matrix, columns: range) -> "RenderableType":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_lines=False)
    table.add_column("", overflow="fold")
    for number in columns:
        table.add_column(printable(whole.environments[number]), overflow="fold")
    quiet = {"equivalent", "inconclusive", *(["few"] if analysis.few else [])}
    for row in whole.rows:
        head = Text(printable(row.title)).append(f"\n{printable(native(analysis, row))}", style="dim")
        cells = []
        for number in columns:
            cell = row.cells[number]
            below = ""
            if cell is not None:
                below = cost_range(row, cell) if cell.shown_as in quiet else small(row, cell)
            text = Text(large(row, cell), style=STYLES.get(cell.shown_as, "") if cell else "dim")
            cells.append(text.append(f"\n{printable(below)}", style="not bold dim") if below else text)
        table.add_row(head, *cells)
    return table
