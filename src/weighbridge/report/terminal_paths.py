"""What changes on the path, in the terminal."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from weighbridge.analysis.paths import path_tables
from weighbridge.analysis.results import Analysis
from weighbridge.report.terminal_columns import SplitTable
from weighbridge.report.text.paths import HEADS, figure_cells, figure_heads, first_of_each_client, path_cells, title

if TYPE_CHECKING:
    from rich.console import RenderableType

_NOTHING = {"0", "none"}


def path_parts(analysis: Analysis) -> "Iterator[RenderableType]":
    """Give a table of the paths for the clients in each place, and one of what a workload's trials used of them."""
    from rich.text import Text

    for group in first_of_each_client(path_tables(analysis)):
        yield Text(f"\n{title(group[0])}", style="bold")
        rows = [[*cells[:-1], cells[-1].split(" ")[0]] for cells in map(path_cells, group[0].rows)]
        yield SplitTable(*_that_tell(HEADS, rows))
        for table in [each for each in group if each.metrics][:1]:  # the page has those of every workload
            rows = [[row.environment, *figure_cells(row)] for row in table.rows]
            yield Text(f"figures of {table.label}")
            yield SplitTable(("environment", *figure_heads(table)), rows)


def _that_tell(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Leave out the columns in which no environment has anything; the page has them."""
    told = [at for at in range(len(heads)) if not all(row[at] in _NOTHING for row in rows)]
    return [heads[at] for at in told], [[row[at] for at in told] for row in rows]
