"""Tables with set column widths: Rich takes from all columns alike, and cuts the words and figures of narrow ones."""

from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING

from weighbridge.model.text import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text

Column = Sequence["Text"]
"""The head, and the cells below it."""

_WORD = 12
"""Characters of a word, or of a figure with its unit, that is not broken over two lines."""
_BETWEEN, _EDGES = 3, 2
"""Characters between two columns, and beside the outermost."""


class SplitTable:
    """A table, or as many below each other as the terminal's width needs, each with the first column.

    This column takes at most half of the width, and folds what is longer. ``numbers``: the others end flush.
    """

    def __init__(self, heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = False) -> None:
        from rich.text import Text

        self._columns = [[Text(printable(cell)) for cell in cells] for cells in zip(heads, *rows, strict=True)]
        self._numbers = numbers

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[RenderableType]":
        first, *others = self._columns
        alone = min(longest_line(first), options.max_width // 2)
        part: list[Column] = []
        for column in others:
            if part and alone + sum(map(narrowest, [*part, column])) > room(len(part) + 2, options.max_width):
                yield self._table([first, *part], alone, options.max_width)
                part = []
            part.append(column)
        yield self._table([first, *part], alone, options.max_width)

    def _table(self, columns: Sequence[Column], first: int, width: int) -> "Table":
        least = [first, *map(narrowest, columns[1:])]
        right = range(1, len(columns)) if self._numbers else ()
        order = (*range(1, len(columns)), 0)
        return table(columns, widths(columns, least, room(len(columns), width), order), right)


def room(columns: int, width: int) -> int:
    """Return how many of a terminal's characters are left for what is in so many columns."""
    return width - _EDGES - _BETWEEN * (columns - 1)


def longest_line(column: Column) -> int:
    """Return how many characters wide a column is that folds nothing."""
    return max(len(line) for cell in column for line in cell.plain.split("\n"))


def narrowest(column: Column) -> int:
    """Return how many characters wide a column must be for its words to stay whole, if these are not very long."""
    words = (word for cell in column for line in cell.plain.split("\n") for word in line.split(" "))
    return min(max(map(len, words)), _WORD)


def widths(columns: Sequence[Column], least: Sequence[int], room: int, order: Sequence[int]) -> list[int]:
    """Return the columns' widths, `room` together at most: what the `least` leave goes to columns by `order`.

    Where the least are too much, it is taken from them in that order.
    """
    found = list(least)
    left = room - sum(least)
    for number in order:
        given = max(1 - found[number], min(left, longest_line(columns[number]) - found[number]))
        found[number] += given
        left -= given
    return found


def table(columns: Sequence[Column], widths: Sequence[int], right: Container[int] = ()) -> "Table":
    """Return a table that folds what is longer than its column; those whose numbers are in `right` end flush."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for number, (column, width) in enumerate(zip(columns, widths, strict=True)):
        made.add_column(column[0], overflow="fold", width=width, justify="right" if number in right else "left")
    for cells in zip(*(column[1:] for column in columns), strict=True):
        made.add_row(*cells)
    return made
