"""What changes on the path, in the terminal."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from weighbridge.analysis.path_table import path_tables
from weighbridge.analysis.results import Analysis
from weighbridge.model.text import printable
from weighbridge.report.text.paths import HEADS, figure_cells, figure_heads, first_of_each_client, path_cells, title

if TYPE_CHECKING:
    from rich.console import RenderableType


def path_parts(analysis: Analysis) -> "Iterator[RenderableType]":
    """Give a table of the paths for the clients in each place, and one of what a workload's trials used of them."""
    from rich.text import Text

    for group in first_of_each_client(path_tables(analysis)):
        yield Text(f"\n{title(group[0])}", style="bold")
        yield _table(HEADS, [[*cells[:-1], cells[-1].split(" ")[0]] for cells in map(path_cells, group[0].rows)])
        for table in [each for each in group if each.metrics][:1]:  # the page has those of every workload
            rows = [[row.environment, *figure_cells(row)] for row in table.rows]
            yield Text(f"in {table.label}")
            yield _table(("environment", *figure_heads(table)), rows)


_WORD = 12
"""Characters of a word that is not broken over two lines."""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> "RenderableType":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column(heads[0], no_wrap=True)  # the others give way to it
    for at, head in enumerate(heads[1:], 1):
        longest = max(len(word) for cell in (head, *(row[at] for row in rows)) for word in cell.split())
        table.add_column(head, overflow="fold", min_width=min(longest, _WORD))
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
