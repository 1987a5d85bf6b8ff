"""The tables of the terminal: costs beside the measured values, percentiles, resource use."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weighbridge.analysis.latency import PERCENTS, LatencyReport
from weighbridge.analysis.results import Analysis, MetricReport
from weighbridge.model.text import printable
from weighbridge.report.terminal_columns import SplitTable, longest_line, narrowest, room, table, widths
from weighbridge.report.terminal_matrix import STYLES
from weighbridge.report.text.formatting import quantities, quantity, shared_unit
from weighbridge.report.text.metric_names import difference_unit_of, metric_name, value_unit
from weighbridge.report.text.verdicts import comparison_verdict, cost_text, resolved_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

VERDICT = len("(exploratory)")
"""Characters of a verdict that have room before anything else."""


def costs_table(analysis: Analysis, report: MetricReport, width: int) -> "RenderableType":
    """Give the costs beside the medians; of few blocks their values. Blocks are told only where they differ.

    Where `width` characters are too few, medians stand below the costs, and blocks below the verdicts.
    """
    few, same = all(row.few for row in report.comparisons), blocks_of(report) is not None
    rows = _cost_rows(analysis, report, few=few)
    shown = [0, 1, *([] if few else [2]), *([] if same else [3]), 4]
    columns = [[row[number] for row in rows] for number in shown]
    least = [longest_line(column) for column in columns]
    least[0], least[-1] = min(least[0], max(width // 4, narrowest(columns[0]))), min(least[-1], VERDICT)
    if few:
        least[1] = narrowest(columns[1])
    elif sum(least) > room(len(columns), width):
        columns = [[row[0] for row in rows], [_above(row[1], row[2]) for row in rows],
                   [row[4] if same else _above(row[4], row[3]) for row in rows]]  # fmt: skip
        least = [least[0], narrowest(columns[1]), least[-1]]
    found = widths(columns, least, room(len(columns), width), order=(1, 0, *range(2, len(columns))))
    return table(columns, found, right=range(2, len(columns) - 1))


def _cost_rows(analysis: Analysis, report: MetricReport, *, few: bool) -> "list[tuple[Text, Text, Text, Text, Text]]":
    """The head and the rows: environment, cost (or what was measured), median, blocks, verdict."""
    shown, by = value_unit(report), difference_unit_of(report.comparisons, report.unit)
    told = "measured" if few else "typical cost [95 %]"
    rows = [(_text("environment"), _text(told), _text("median"), _text("blocks"), _text("verdict"))]
    if few:
        own = resolved_text(_measured(analysis, report, analysis.baseline), analysis.baseline, *report.comparisons)
        rows.append((_text(analysis.baseline), _text(own), _text(""), _text(""), _text("")))
    for row in report.comparisons:
        median = quantity(row.value, report.unit, shown)
        cost = _measured(analysis, report, row.environment) if few else cost_text(row, report.unit, by)
        verdict = _text(comparison_verdict(row), STYLES.get(row.shown_as, "dim"))
        rows.append((_text(row.environment), _text(cost), _text(median), _text(str(row.blocks)), verdict))
    return rows


def _above(first: "Text", second: "Text") -> "Text":
    return first.copy().append("\n").append(second.plain, style="not bold dim")


def blocks_of(report: MetricReport) -> int | None:
    """Return how many blocks every comparison has; None where they differ."""
    found = {row.blocks for row in report.comparisons}
    return found.pop() if len(found) == 1 else None


def percentiles_table(latency: LatencyReport) -> "RenderableType":
    """Give the percentiles of all requests of all runs."""
    units = [shared_unit(column, "s") for column in zip(*(row.percentiles for row in latency.rows), strict=True)]
    rows = [
        [row.environment, *(quantity(value, "s", unit) for value, unit in zip(row.percentiles, units, strict=True))]
        for row in latency.rows
    ]
    return SplitTable(["environment", *(f"p{percent:g}" for percent in PERCENTS)], rows, numbers=True)


def resources_table(analysis: Analysis, reports: Sequence[MetricReport]) -> "RenderableType":
    """Give all that the meters added for one workload, in one table."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    all_few = all(row.few for report in reports for row in report.comparisons)
    for name in ("metric", "environment", "measured" if all_few else "typical cost [95 %]", "verdict"):
        table.add_column(name, overflow="fold")
    for report in reports:
        by = difference_unit_of(report.comparisons, report.unit)
        few = all(row.few for row in report.comparisons)
        own = _measured(analysis, report, analysis.baseline) if few else quantity(report.baseline_value, report.unit)
        table.add_row(_text(metric_name(report)), _text(analysis.baseline), _text(own, "dim"), _text(""))
        for row in report.comparisons:
            style = STYLES.get(row.shown_as, "dim")
            cells = (
                row.environment,
                _measured(analysis, report, row.environment) if few else cost_text(row, report.unit, by),
            )
            table.add_row(_text(""), *[_text(each) for each in cells], _text(comparison_verdict(row), style))
    return table


def _measured(analysis: Analysis, report: MetricReport, environment: str) -> str:
    return quantities(analysis.block_values(report, environment), report.unit, shown_in=value_unit(report))


def _text(text: str, style: str = "") -> "Text":
    from rich.text import Text

    return Text(printable(text), style=style)
