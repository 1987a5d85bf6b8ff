"""Tables of how far runs differ, as people read them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weighbridge.model.text import printable
from weighbridge.replication.spread import PublishedSpread, SpreadRow, SpreadRows
from weighbridge.report.text.formatting import plain, quantity

if TYPE_CHECKING:
    from rich.console import Console

SPREAD_COLUMNS = (
    "environment", "published mean", "deviation", "coefficient of variation", "measured mean", "deviation",
    "coefficient of variation [95 %]",
)  # fmt: skip
"""The columns of a table; "derived" beside a published figure: it follows from the two others."""


def spread_cells(spread: SpreadRows) -> list[tuple[str, ...]]:
    """Return the rows of a table; where nothing is measured, why stands in the place of the first measured value."""
    return [(row.environment, *_published(row.published, spread), *_measured(row)) for row in spread.rows]


def _published(own: PublishedSpread, spread: SpreadRows) -> tuple[str, str, str]:
    unit = spread.table.unit
    mean, deviation = ("–" if value is None else f"{plain(value)} {unit}" for value in (own.mean, own.deviation))
    variation = percent(own.variation)
    return (
        mean,
        f"{deviation} (derived)" if "deviation" in own.derived else deviation,
        f"{variation} (derived)" if "variation" in own.derived else variation,
    )


def _measured(row: SpreadRow) -> tuple[str, str, str]:
    found = row.measured
    if found is None:
        return row.why, "–", "–"
    limits = found.limits
    between = f" [{100 * limits[0]:.2f}, {100 * limits[1]:.2f}]" if limits else ""
    mean = f"{quantity(found.mean, row.unit)} ({found.runs} runs)"
    return mean, quantity(found.deviation, row.unit), f"{percent(found.variation)}{between}"


def percent(share: float | None) -> str:
    """A fraction in percent: ``7.79 %``; a dash where there is none."""
    return "–" if share is None else f"{100 * share:.2f} %"


def print_spreads(spreads: Sequence[SpreadRows], console: "Console") -> None:
    """Print the tables of how far runs differ."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    for each in spreads:
        console.print(Text(f"\n{each.table.title}", style="bold"))
        table = Table(*SPREAD_COLUMNS, box=box.SIMPLE_HEAD, pad_edge=False)
        for row in spread_cells(each):
            table.add_row(*(Text(printable(cell)) for cell in row))
        console.print(table)
