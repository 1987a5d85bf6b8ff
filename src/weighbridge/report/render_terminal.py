"""Renders a document in the terminal: on a first screen of 25 lines, or in full."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text as RichText

from weighbridge.report.document import (
    Block,
    Chart,
    Command,
    Document,
    Fold,
    Heading,
    Listing,
    Rank,
    Sentence,
    Table,
    Tone,
)
from weighbridge.report.screen import print_screen
from weighbridge.report.terminal_layout import (
    STYLES,
    keep_no_break_spaces,
    longest,
    narrowest,
    room_for,
    styled,
    table,
)
from weighbridge.report.terminal_layout import Column as Cells
from weighbridge.report.text.formatting import plural

TONES = {
    **STYLES, "gain": "cyan", Tone.PLAIN: "", Tone.STRONG: "bold", Tone.NOTICE: "yellow", Tone.WARNING: "bold yellow",
    Tone.FAILURE: "bold red",
}  # fmt: skip
"""The styles of tones; any other is dim."""
LONGEST_WORD = 16
"""Characters of a word that is not broken over two lines."""
ON_SCREEN = {Rank.SUMMARY, Rank.HINT, Rank.FIRST, Rank.REMARK}
IN_FULL = {Rank.FIRST, Rank.REMARK, Rank.FULL, Rank.EXTRA}
IF_ROOM = {Rank.HINT, Rank.REMARK}


def print_document(
    document: Document, console: Console, *, full: bool = False, details: bool = True, pages: Sequence[str] = ()
) -> None:
    """Print the first screen of a document, or all of it, with or without its blocks of rank EXTRA.

    `pages`: lines that name its pages.
    """
    keep_no_break_spaces()
    terminal = _Terminal(document, console.width, IN_FULL if details else IN_FULL - {Rank.EXTRA})
    if not full:
        terminal.print_screen(console, pages)
        return
    for part in terminal.full():
        console.print(part)
    for line in pages:
        console.print(styled(line), soft_wrap=True)


class _Terminal:
    def __init__(self, document: Document, width: int, ranks: set[Rank]) -> None:
        self._document, self._width, self._ranks = document, width, ranks

    # -- in full --

    def full(self) -> Iterator[RenderableType]:
        if self._document.heading:
            yield styled(self._document.heading, "bold")
        yield from self._blocks(self._document.blocks)

    def _blocks(self, blocks: Sequence[Block]) -> Iterator[RenderableType]:
        for block in blocks:
            if block.rank in self._ranks:
                yield from self._block(block)

    def _block(self, block: Block) -> Iterator[RenderableType]:
        match block:
            case Heading():
                yield styled(f"\n{block.text}{f' ({block.soft})' if block.soft else ''}", "bold")
            case Sentence():
                yield self._text(block)
            case Listing():
                yield from map(self._indented, block.items)
            case Table():
                yield from self._tables(block)
            case Command():
                yield styled(f"{block.label}{block.line}", "dim")
            case Chart():
                yield from self._blocks(block.fallback)
            case Fold():
                yield styled(f"\n{block.title}", "bold")
                yield from self._blocks(block.blocks)

    def _text(self, sentence: Sentence) -> RichText:
        return styled(self._document.text(sentence.parts), TONES.get(sentence.tone, "dim"))

    def _indented(self, sentence: Sentence) -> RenderableType:
        return Padding(self._text(sentence), (0, 0, 0, 2), expand=False)

    # -- tables --

    def _tables(self, block: Table) -> Iterator[RenderableType]:
        """Return a table that fits: first without details, then folded, at last in parts below each other."""
        cells = [
            [styled(column.head), *(self._text(row[number]) for row in block.rows)]
            for number, column in enumerate(block.columns)
        ]
        first, *others = range(len(cells))
        if sum(map(longest, cells)) > room_for(len(cells), self._width):
            others = [number for number in others if not block.columns[number].detail]
        while others:
            counts = range(len(others), 0, -1)
            parts = ([first, *others[:count]] for count in counts)
            part = next((each for each in parts if self._widths(block, cells, each)), [first, others[0]])
            widths = self._widths(block, cells, part) or self._widths(block, cells, part, word=0)
            right = [at for at, number in enumerate(part) if block.columns[number].align == "right"]
            yield table([cells[number] for number in part], widths or (), right)
            others = others[len(part) - 1 :]

    def _widths(
        self, block: Table, cells: Sequence[Cells], part: Sequence[int], word: int = LONGEST_WORD
    ) -> Sequence[int] | None:
        """Return the widths of some columns, which fold by priority; None if they do not fit.

        Words of up to `word` characters stay together; with 0 any word can be broken.
        """
        widths = {number: longest(cells[number]) for number in part}
        excess = sum(widths.values()) - room_for(len(part), self._width)
        for number in sorted(part, key=lambda number: -block.columns[number].priority):
            cut = max(0, min(excess, widths[number] - (narrowest(cells[number], word) if word else 1)))
            widths[number] -= cut
            excess -= cut
        return [*widths.values()] if excess <= 0 else None

    # -- the first screen --

    def print_screen(self, console: Console, pages: Sequence[str]) -> None:
        """Print at most 25 lines: sentences, as many rows of the tables as fit, and remarks if there is room."""
        shown = [block for block in self._document.blocks if block.rank in ON_SCREEN]
        head = [
            part for block in shown if block.rank not in IF_ROOM and isinstance(block, Sentence | Listing)
            for part in self._block(block)
        ]  # fmt: skip
        tables = [block for block in shown if isinstance(block, Table)]
        remarks = [part for block in shown if block.rank in IF_ROOM for part in self._remarks(block)]
        commands = [block for block in shown if isinstance(block, Command)]

        def foot(hidden: int) -> list[RichText]:
            lines = [f"{plural(hidden, 'more remark')}, "] if hidden else []
            for command in commands:
                label = f"{lines.pop() if lines else ''}{command.label}"
                fits = len(label) + len(command.line) <= console.width
                lines += [f"{label}{command.line}"] if fits else [label, command.line]
            return [*(styled(line.removesuffix(", "), "dim") for line in lines), *map(styled, pages)]

        print_screen(console, head, self._shorter(tables), remarks, foot)

    def _remarks(self, block: Block) -> Iterator[RenderableType]:
        if isinstance(block, Listing):
            yield from (self._indented(replace(each, parts=(block.label, *each.parts))) for each in block.items)
        elif isinstance(block, Sentence):
            yield self._indented(block)

    def _shorter(self, tables: Sequence[Table]) -> Iterator[Sequence[RenderableType]]:
        """Return the tables with fewer and fewer rows."""
        count = max((len(each.rows) for each in tables), default=0)
        for rows in range(count, 0, -1):
            yield [part for each in tables for part in self._first_rows(each, rows)]
        yield []

    def _first_rows(self, block: Table, count: int) -> Iterator[RenderableType]:
        rows, rest = block.rows[:count], len(block.rows) - count
        more: list[RenderableType] = [styled(f"  and {rest} more", "dim")] if rest > 0 else []
        if any(column.head for column in block.columns):
            yield from (*self._tables(replace(block, rows=rows)), *more)
            return
        grid = RichTable.grid(padding=(0, 2))
        grid.add_column(overflow="fold")
        for row in rows:
            grid.add_row(*map(self._text, row))
        yield from (RichText(), grid, *more, RichText())
