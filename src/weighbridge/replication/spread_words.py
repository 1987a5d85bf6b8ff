"""Tables of how far runs differ, as people read them."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from weighbridge.model.text import printable
from weighbridge.replication.spread import PublishedSpread, SpreadRow, SpreadRows
from weighbridge.report.text.formatting import plain, quantity, shared_unit, unit_as

if TYPE_CHECKING:
    from rich.console import Console

SPREAD_COLUMNS = (
    "environment", "published mean", "deviation", "coefficient of variation", "measured mean", "deviation",
    "coefficient of variation [95 %]",
)  # fmt: skip
"""The columns of a table; "derived" beside a published figure: it follows from the two others."""


TERMINAL_COLUMNS = ("environment", "", "mean", "deviation", "coefficient of variation [95 %]")
"""The columns in a terminal, where published and measured figures have a line each: all seven do not fit in it."""


def spread_cells(spread: SpreadRows, name: Callable[[str], str]) -> list[tuple[str, ...]]:
    """Return the rows of a table; where nothing is measured, why stands in the place of the first measured value.

    ``name`` gives what an environment of the run is called, with its hypervisors.
    """
    unit = spread.table.unit
    return [(_name(row, name), *_published(row.published, spread), *_measured(row, unit)) for row in spread.rows]


def _name(row: SpreadRow, name: Callable[[str], str]) -> str:
    """What a row is called; where nothing is measured no hypervisor stands beside its published figures."""
    return row.environment if row.measured is None else name(row.environment)


def _published(own: PublishedSpread, spread: SpreadRows) -> tuple[str, str, str]:
    unit = spread.table.unit
    mean, deviation = ("–" if value is None else f"{plain(value)} {unit}" for value in (own.mean, own.deviation))
    variation = percent(own.variation)
    return (
        mean,
        f"{deviation} (derived)" if "deviation" in own.derived else deviation,
        f"{variation} (derived)" if "variation" in own.derived else variation,
    )


def _measured(row: SpreadRow, unit: str) -> tuple[str, str, str]:
    """The measured figures, in the published ones' `unit` where that is a multiple of theirs."""
    found = row.measured
    if found is None:
        return row.why, "–", "–"
    limits = found.limits
    between = f" [{100 * limits[0]:.2f}, {100 * limits[1]:.2f}]" if limits else ""
    shown = unit_as(unit, row.unit) or shared_unit([found.mean], row.unit)
    mean = f"{quantity(found.mean, row.unit, shown)} ({found.runs} runs)"
    return mean, quantity(found.deviation, row.unit, shown), f"{percent(found.variation)}{between}"


def percent(share: float | None) -> str:
    """A fraction in percent: ``7.79 %``; a dash where there is none."""
    return "–" if share is None else f"{100 * share:.2f} %"


def print_spreads(spreads: Sequence[SpreadRows], name: Callable[[str], str], console: "Console") -> None:
    """Print the tables of how far runs differ; ``name`` is that of `spread_cells`."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    for each in spreads:
        console.print(Text(f"\n{each.table.title}", style="bold"))
        table = Table(*TERMINAL_COLUMNS, box=box.SIMPLE_HEAD, pad_edge=False)
        for line in _lines(each, name):
            table.add_row(*(Text(printable(cell)) for cell in line))
        console.print(table)
        absent: dict[str, list[str]] = {}
        for row in each.rows:
            if row.measured is None:
                absent.setdefault(row.why, []).append(row.environment)
        for why, names in absent.items():
            console.print(Text(f"  not measured ({printable(why)}): {', '.join(names)}", style="dim"))


def _lines(spread: SpreadRows, name: Callable[[str], str]) -> Iterator[tuple[str, ...]]:
    for row in spread.rows:
        yield _name(row, name), "published", *_published(row.published, spread)
        if row.measured is not None:
            yield "", "measured", *_measured(row, spread.table.unit)
