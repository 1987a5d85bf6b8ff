"""What the terminal's outputs share: text that cannot steer it, lines that break at words, tables that fit its width.

Rich takes the width of a table from all columns alike, and cuts the words and figures of narrow ones: here their
widths are set.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from rich import _wrap, box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from weighbridge.model.text import printable

STYLES = {"different": "bold yellow", "broke": "yellow", "hidden": "magenta", "equivalent": "green"}
"""Style by `Comparison.shown_as`; any other is dim."""

Column = Sequence[Text]
"""The head, and the cells below it."""

_WORD = 12
"""Characters of a word that is not broken over two lines."""
_FIGURE = re.compile(r"[\[(±<>-]*[0-9]")
"""The beginning of a figure or of an interval, which is never broken over two lines."""
_VERDICT = len("(exploratory)")
"""Characters of a verdict that have room before anything else."""
_BETWEEN, _EDGES = 3, 2
"""Characters between two columns, and beside the outermost."""
_BREAKABLE = re.compile(r"[ \t\r\n]*[^ \t\r\n]+[ \t\r\n]*")


def keep_no_break_spaces() -> None:
    """From here on Rich breaks no line at a no-break space, which holds a number together."""
    _wrap.re_word = _BREAKABLE


def styled(text: str, style: str = "") -> Text:
    """Return a text without control characters."""
    return Text(printable(text), style=style)


def indented(text: str, style: str = "") -> RenderableType:
    """Return a paragraph of its own, all of whose lines are indented."""
    return Padding(styled(text, style), (0, 0, 0, 2), expand=False)


def verdict_text(words: str, shown_as: str) -> Text:
    """Return a verdict in its style."""
    return styled(words, STYLES.get(shown_as, "dim"))


def stacked(first: Text, second: Text) -> Text:
    """Return a cell with another one below it."""
    return first.copy().append("\n").append(second.plain, style="not bold dim")


# -- tables ----------------------------------------------------------------------------------------


def table(columns: Sequence[Column], widths: Sequence[int] = (), right: Collection[int] = ()) -> Table:
    """Return a table that folds what is longer than its column; without `widths` Rich sets them.

    Columns whose numbers are in `right` end flush.
    """
    rich_table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for number, column in enumerate(columns):
        width = widths[number] if widths else None
        rich_table.add_column(column[0], overflow="fold", width=width, justify="right" if number in right else "left")
    for cells in zip(*(column[1:] for column in columns), strict=True):
        rich_table.add_row(*cells)
    return rich_table


def fits(rows: Sequence[Sequence[Text]], width: int) -> bool:
    """Return whether a `fitted_table` of these rows folds nothing but names and verdicts."""
    columns = _columns(rows)
    return sum(_least(columns, width)) <= room_for(len(columns), width)


def fitted_table(
    rows: Sequence[Sequence[Text]], width: int, narrowed: Collection[int], right: Collection[int] = ()
) -> Table:
    """Return a table of rows (the first are the heads) with names in the first column and verdicts in the last.

    Where `width` characters are too few, names and verdicts fold, then the columns `narrowed`; what is left goes to
    the columns in the order of `narrowed`, then to the names.
    """
    columns = _columns(rows)
    least = _least(columns, width)
    if not fits(rows, width):
        least = [narrowest(each) if number in narrowed else least[number] for number, each in enumerate(columns)]
    order = dict.fromkeys([*narrowed, 0, *range(len(columns))])
    return table(columns, _widths(columns, least, room_for(len(columns), width), [*order]), right)


class SplitTable:
    """A table, or as many below each other as the terminal's width needs, each with the first column.

    This column takes at most half of the width, and folds what is longer. ``numbers``: the others end flush.
    """

    def __init__(self, heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = False) -> None:
        self._columns = _columns([[styled(cell) for cell in cells] for cells in (heads, *rows)])
        self._numbers = numbers

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        first, *others = self._columns
        alone = min(longest(first), options.max_width // 2)
        part: list[Column] = []
        for column in others:
            if part and alone + sum(map(narrowest, [*part, column])) > room_for(len(part) + 2, options.max_width):
                yield self._table([first, *part], alone, options.max_width)
                part = []
            part.append(column)
        yield self._table([first, *part], alone, options.max_width)

    def _table(self, columns: Sequence[Column], first: int, width: int) -> Table:
        least = [first, *map(narrowest, columns[1:])]
        order = (*range(1, len(columns)), 0)
        right = range(1, len(columns)) if self._numbers else ()
        return table(columns, _widths(columns, least, room_for(len(columns), width), order), right)


def _columns(rows: Sequence[Sequence[Text]]) -> list[Column]:
    return [[*cells] for cells in zip(*rows, strict=True)]


def _least(columns: Sequence[Column], width: int) -> list[int]:
    """Return the width of each column that folds nothing but names and verdicts."""
    least = [longest(column) for column in columns]
    least[0] = min(least[0], max(width // 4, narrowest(columns[0])))
    least[-1] = min(least[-1], _VERDICT)
    return least


def room_for(columns: int, width: int) -> int:
    """Return the width that remains for the content of a number of columns."""
    return width - _EDGES - _BETWEEN * (columns - 1)


def longest(column: Column) -> int:
    """Return the width of a column that folds nothing, in characters."""
    return max(len(line) for cell in column for line in cell.plain.split("\n"))


def narrowest(column: Column, word: int = _WORD) -> int:
    """Return the width that a column needs to keep words of up to `word` characters and figures together."""
    words = (word for cell in column for line in cell.plain.split("\n") for word in line.split(" "))
    return max(len(each) if _FIGURE.match(each) else min(len(each), word) for each in words)


def _widths(columns: Sequence[Column], least: Sequence[int], room: int, order: Sequence[int]) -> list[int]:
    """Return the columns' widths, `room` together at most: what the `least` leave goes to columns by `order`.

    Where the least are too much, it is taken from them in that order.
    """
    widths, left = list(least), room - sum(least)
    for number in order:
        change = max(1 - widths[number], min(left, longest(columns[number]) - widths[number]))
        widths[number] += change
        left -= change
    return widths
