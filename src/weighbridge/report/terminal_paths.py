"""What changes on the path, in the terminal."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from weighbridge.analysis.path_table import path_tables
from weighbridge.analysis.results import Analysis
from weighbridge.model.text import printable
from weighbridge.report.text.paths import HEADS, figure_cells, figure_heads, first_of_each_client, path_cells, title

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

_NOTHING = {"0", "none"}
_WORD = 12
"""Characters of a word that is not broken over two lines."""
_BETWEEN = 3
"""Characters between two columns."""


def path_parts(analysis: Analysis) -> "Iterator[RenderableType]":
    """Give a table of the paths for the clients in each place, and one of what a workload's trials used of them."""
    from rich.text import Text

    for group in first_of_each_client(path_tables(analysis)):
        yield Text(f"\n{title(group[0])}", style="bold")
        rows = [[*cells[:-1], cells[-1].split(" ")[0]] for cells in map(path_cells, group[0].rows)]
        yield _Columns(*_that_tell(HEADS, rows))
        for table in [each for each in group if each.metrics][:1]:  # the page has those of every workload
            rows = [[row.environment, *figure_cells(row)] for row in table.rows]
            yield Text(f"figures of {table.label}")
            yield _Columns(("environment", *figure_heads(table)), rows)


def _that_tell(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Leave out the columns in which no environment has anything; the page has them."""
    told = [at for at in range(len(heads)) if not all(row[at] in _NOTHING for row in rows)]
    return [heads[at] for at in told], [[row[at] for at in told] for row in rows]


class _Columns:
    """A table, or as many below each other as the terminal's width needs, each with the first column."""

    def __init__(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self._cells = [[printable(cell) for cell in column] for column in zip(heads, *rows, strict=True)]

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[RenderableType]":
        first, *others = self._cells
        alone = max(map(len, first)) + 2
        part, used = [first], alone
        for column in others:
            width = _BETWEEN + _narrowest(column)
            if used + width > options.max_width and len(part) > 1:
                yield _table(part)
                part, used = [first], alone
            part.append(column)
            used += width
        yield _table(part)


def _narrowest(column: Sequence[str]) -> int:
    """How many characters wide a column must be for its words to stay whole, if these are not very long."""
    return min(max((len(word) for cell in column for word in cell.split()), default=1), _WORD)


def _table(columns: Sequence[Sequence[str]]) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    first, *others = columns
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column(Text(first[0]), no_wrap=True)  # the others give way to it
    for column in others:
        table.add_column(Text(column[0]), overflow="fold", min_width=_narrowest(column))
    for cells in zip(*(column[1:] for column in columns), strict=True):
        table.add_row(*map(Text, cells))
    return table
