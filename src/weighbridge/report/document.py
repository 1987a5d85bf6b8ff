"""A report as a document: a tree of blocks whose names, amounts and costs stay values until they are rendered.

A builder makes the document of a result (`features/gate/compare_document.py`). `render_terminal`, `render_page` and
`render_markdown` render any document.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, ClassVar, Literal

from weighbridge.report.text.formatting import (
    Shown,
    difference_estimate,
    difference_interval,
    percent_estimate,
    percent_interval,
    quantity,
)
from weighbridge.statistics import Interval

if TYPE_CHECKING:
    from weighbridge.report.charts.base import Chart as Drawing
    from weighbridge.report.charts.base import MarkStyle


class Rank(Enum):
    """The place of a block: the first screen of a terminal, the full report, or both."""

    SUMMARY = "summary"
    """Only on the first screen."""
    HINT = "hint"
    """Only on the first screen, if there is room."""
    FIRST = "first"
    """On the first screen and in the full report."""
    REMARK = "remark"
    """In the full report, and on the first screen if there is room."""
    FULL = "full"
    """Only in the full report."""
    EXTRA = "extra"
    """Only in the full report, and in Markdown only with all details."""


class Tone(StrEnum):
    """The meaning of a text, besides verdicts: any value of ``shown_as`` is a tone too."""

    PLAIN = ""
    STRONG = "answer"
    DIM = "soft"
    NOTICE = "notice"
    WARNING = "warning"
    FAILURE = "failure"


# -- the parts of a text ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Env:
    """An environment, by its name in the study."""

    name: str


@dataclass(frozen=True, slots=True)
class Amount:
    """A value in its unit; ``shown_in`` is the unit of its column."""

    value: float | None
    unit: str
    shown_in: Shown | None = None


@dataclass(frozen=True, slots=True)
class CostOf:
    """A cost or a change with its interval: in percent, or in `unit` if the scale is a difference."""

    interval: Interval
    scale: str
    unit: str
    short: bool = False
    """Whether the interval is left out."""


@dataclass(frozen=True, slots=True)
class Code:
    """A text that users type."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A text that leads to a place on the page, ``#m1``, or to another file in its folder."""

    text: str
    to: str


@dataclass(frozen=True, slots=True)
class Break:
    """The end of a line inside of a cell."""


Inline = str | Env | Amount | CostOf | Code | Link | Break
Text = tuple[Inline, ...]


def inline_text(part: Inline, names: Mapping[str, str]) -> str:
    """Return one part of a text in words. `names` are the display names of environments."""
    match part:
        case Env():
            return names.get(part.name, part.name)
        case Amount():
            return quantity(part.value, part.unit, part.shown_in)
        case CostOf():
            return _cost_text(part)
        case Code() | Link():
            return part.text
    return "\n" if isinstance(part, Break) else part


def _cost_text(cost: CostOf) -> str:
    if cost.scale == "ratio":
        return (percent_estimate if cost.short else percent_interval)(cost.interval)
    return (difference_estimate if cost.short else difference_interval)(cost.interval, cost.unit)


def plain_text(parts: Sequence[Inline], names: Mapping[str, str] | None = None) -> str:
    """Return a text in words."""
    return "".join(inline_text(part, names or {}) for part in parts)


# -- blocks ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sentence:
    """A paragraph, an item of a list, or a cell of a table."""

    kind: ClassVar = "sentence"
    parts: Text
    tone: str = Tone.PLAIN
    rank: Rank = Rank.FULL


def say(*parts: Inline | Text, tone: str = Tone.PLAIN, rank: Rank = Rank.FULL) -> Sentence:
    """Return a sentence of parts and of texts in sequence."""
    flat = (inline for part in parts for inline in (part if isinstance(part, tuple) else (part,)))
    return Sentence(tuple(flat), tone, rank)


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of the blocks that follow, from level 2 on; `soft` is an explanation behind it."""

    kind: ClassVar = "heading"
    text: str
    level: int = 2
    soft: str = ""
    anchor: str = ""
    rank: Rank = Rank.FULL


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column. In a narrow terminal the columns with the highest priority fold first."""

    head: str
    priority: int = 0
    align: Literal["left", "right"] = "left"
    detail: bool = False
    """Whether a narrow terminal leaves it out."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; the first cell of a row is its name. With an anchor each row has a link."""

    kind: ClassVar = "table"
    columns: tuple[Column, ...]
    rows: tuple[tuple[Sentence, ...], ...]
    anchor: str = ""
    rank: Rank = Rank.FULL


@dataclass(frozen=True, slots=True)
class Listing:
    """Sentences in a list; a first screen shows each alone, after `label`."""

    kind: ClassVar = "listing"
    items: tuple[Sentence, ...]
    label: str = ""
    rank: Rank = Rank.FULL


@dataclass(frozen=True, slots=True)
class Command:
    """A command to type, after a label."""

    kind: ClassVar = "command"
    arguments: tuple[str, ...]
    label: str = ""
    rank: Rank = Rank.FULL

    @property
    def line(self) -> str:
        """The command as users type it."""
        return shlex.join(self.arguments)


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart for the page; `fallback` has its figures: next to the chart, and in its place without charts."""

    kind: ClassVar = "chart"
    title: str
    draw: "Callable[[], Drawing | None]" = field(compare=False)
    legend: "tuple[tuple[str, MarkStyle], ...]" = ()
    caption: str = ""
    fallback: "tuple[Block, ...]" = ()
    rank: Rank = Rank.FULL


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks that the page shows on demand."""

    kind: ClassVar = "fold"
    title: str
    blocks: "tuple[Block, ...]"
    rank: Rank = Rank.FULL


Block = Sentence | Heading | Table | Listing | Command | Chart | Fold


@dataclass(frozen=True, slots=True)
class Document:
    """A report. `kind` is its kind in words, `names` the display names of its environments."""

    kind: str
    title: str
    heading: str
    blocks: tuple[Block, ...]
    names: Mapping[str, str] = field(default_factory=dict)

    def text(self, parts: Sequence[Inline]) -> str:
        """Return a text of this document in words."""
        return plain_text(parts, self.names)


def charts_in(blocks: Sequence[Block]) -> Iterator[Chart]:
    """Return all charts, in folds too."""
    for block in blocks:
        if isinstance(block, Chart):
            yield block
            yield from charts_in(block.fallback)
        elif isinstance(block, Fold):
            yield from charts_in(block.blocks)
