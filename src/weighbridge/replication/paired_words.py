"""Tables of paired differences with their t-test, as people read them."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from weighbridge.model.text import printable
from weighbridge.replication.paired import SIGNIFICANT, PairRow, PairRows
from weighbridge.report.text.formatting import plain
from weighbridge.report.text.verdicts import comparison_verdict, cost_text
from weighbridge.statistics.parametric import TTest

if TYPE_CHECKING:
    from rich.console import Console

PAIR_COLUMNS = (
    "difference", "published mean (deviation)", "t, p", "measured mean (deviation)", "t, p",
    "by this run's own rules", "agrees in",
)  # fmt: skip
"""The columns of a table. The run's own rules are those of its report: a ratio with its interval, and a verdict."""
TERMINAL_COLUMNS = ("difference", "", "mean (deviation)", "t, p", "agrees in")
_SMALL = 0.001


def pair_cells(found: PairRows, name: Callable[[str], str]) -> list[tuple[str, ...]]:
    """Return the rows of a table; where nothing is measured, why stands in the place of the measured values.

    ``name`` gives what an environment of the run is called, with its hypervisors.
    """
    return [
        (_name(row, name), *_published(row, found), *_measured(row), _own(row), row.agreement) for row in found.rows
    ]


def pairs_sentence(tables: Sequence[PairRows]) -> str:
    """The outcome in one sentence."""
    counts = Counter(row.agreement for table in tables for row in table.rows)
    told = ", ".join(f"{agreement} {number}" for agreement, number in counts.items())
    return (
        f"{counts.total()} published differences, significant where p < {SIGNIFICANT:g}; "
        f"the measured ones agree in: {told}."
    )


def _name(row: PairRow, name: Callable[[str], str]) -> str:
    if row.measured is None:
        return f"{row.first} − {row.second}"
    first, second = name(row.first), name(row.second)
    where = first.removeprefix(row.first)
    both_there = second == row.second + where
    return f"{row.first if both_there else first} − {second}"


def _published(row: PairRow, found: PairRows) -> tuple[str, str]:
    own = row.published
    return f"{plain(own.mean)} ({plain(own.deviation)}) {found.table.unit}", f"{own.t:.2f}, {p_text(own.p)}"


def _measured(row: PairRow) -> tuple[str, str]:
    here = row.measured
    if here is None:
        return row.why, "–"
    mean = f"{plain(here.mean)} ({plain(here.deviation)}) {row.unit}, {here.pairs} blocks"
    return mean, t_text(here)


def t_text(test: TTest) -> str:
    """``t`` and ``p``; where every difference is the same there is neither."""
    return "all differences alike" if test.t is None or test.p is None else f"{test.t:.2f}, {p_text(test.p)}"


def p_text(p: float) -> str:
    """A p-value to three decimals; what is less is written as less, and never as 0."""
    return f"< {_SMALL}" if p < _SMALL else f"{p:.3f}"


def _own(row: PairRow) -> str:
    if row.judged is None or row.judged.cost is None:
        return "–"
    cost, verdict = cost_text(row.judged, row.unit), comparison_verdict(row.judged)
    return verdict if cost == verdict else f"cost {cost}: {verdict}"


def print_pairs(tables: Sequence[PairRows], name: Callable[[str], str], console: "Console") -> None:
    """Print the tables of paired differences; ``name`` is that of `pair_cells`."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    for found in tables:
        console.print(Text(f"\n{found.table.title}", style="bold"))
        table = Table(*TERMINAL_COLUMNS, box=box.SIMPLE_HEAD, pad_edge=False)
        for row in found.rows:
            agrees: str = row.agreement
            cells = [(_name(row, name), "published", *_published(row, found), agrees)]
            if row.measured is not None:
                cells.append(("", "measured", *_measured(row), _own(row)))
            for line in cells:
                table.add_row(*(Text(printable(cell)) for cell in line))
        console.print(table)
        for why in dict.fromkeys(row.why for row in found.rows if row.measured is None):
            console.print(Text(f"  not measured: {printable(why)}", style="dim"))
