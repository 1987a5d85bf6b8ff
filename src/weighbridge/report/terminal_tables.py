"""The tables of the terminal: costs beside the measured values, percentiles, resource use."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weighbridge.analysis.latency import PERCENTS
from weighbridge.analysis.merged_latency import LatencyReport
from weighbridge.analysis.results import Analysis, MetricReport
from weighbridge.model.text import printable
from weighbridge.report.terminal_matrix import STYLES
from weighbridge.report.text.formatting import quantities, quantity, shared_unit
from weighbridge.report.text.metric_names import metric_name
from weighbridge.report.text.units import difference_unit_of, value_unit
from weighbridge.report.text.verdicts import comparison_verdict, cost_text

if TYPE_CHECKING:
    from rich.console import RenderableType


def costs_table(analysis: Analysis, report: MetricReport, *, narrow: bool) -> "RenderableType":
    """Give the costs beside the medians; of few blocks their values. Blocks have a column only where they differ."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    few = all(row.few for row in report.comparisons)
    same = blocks_of(report) is not None
    shown, by = value_unit(report), difference_unit_of(report.comparisons, report.unit)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("environment", overflow="fold")
    table.add_column("measured" if few else "typical cost [95 %]", no_wrap=not (few or narrow), overflow="fold")
    if not (narrow or few):
        table.add_column("median", justify="right", no_wrap=True)
    if not same:
        table.add_column("blocks", justify="right")
    table.add_column("verdict", min_width=len("(exploratory)"))  # two lines where there is no room for one
    if few:
        own = quantities(analysis.block_values(report, analysis.baseline), report.unit, shown_in=shown)
        table.add_row(Text(printable(analysis.baseline)), Text(own), *[Text("")] * (1 if same else 2))
    for row in report.comparisons:
        values, median = analysis.block_values(report, row.environment), quantity(row.value, report.unit, shown)
        cost = quantities(values, report.unit, shown_in=shown) if few else cost_text(row, report.unit, by)
        cells = [Text(printable(row.environment)), Text(f"{cost}\n{median}" if narrow and not few else cost)]
        if not (narrow or few):
            cells.append(Text(median))
        if not same:
            cells.append(Text(str(row.blocks)))
        table.add_row(*cells, Text(comparison_verdict(row), style=STYLES.get(row.shown_as, "dim")))
    return table


def blocks_of(report: MetricReport) -> int | None:
    """Return how many blocks every comparison has; None where they differ."""
    found = {row.blocks for row in report.comparisons}
    return found.pop() if len(found) == 1 else None


def percentiles_table(latency: LatencyReport) -> "RenderableType":
    """Give the percentiles of all requests of all runs."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("environment", overflow="fold")
    for percent in PERCENTS:
        table.add_column(f"p{percent:g}", justify="right", no_wrap=True)
    units = [shared_unit(column, "s") for column in zip(*(row.percentiles for row in latency.rows), strict=True)]
    for row in latency.rows:
        values = zip(row.percentiles, units, strict=True)
        table.add_row(_text(row.environment), *[_text(quantity(value, "s", unit)) for value, unit in values])
    return table


def resources_table(analysis: Analysis, reports: Sequence[MetricReport]) -> "RenderableType":
    """Give all that the meters added for one workload, in one table."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in ("metric", "environment", "typical cost [95 %]", "verdict"):
        table.add_column(name, overflow="fold")
    for report in reports:
        by = difference_unit_of(report.comparisons, report.unit)
        table.add_row(_text(metric_name(report)), _text(analysis.baseline),
                      _text(quantity(report.baseline_value, report.unit), "dim"), _text(""))  # fmt: skip
        for row in report.comparisons:
            style = STYLES.get(row.shown_as, "dim")
            cells = (row.environment, cost_text(row, report.unit, by))
            table.add_row(_text(""), *[_text(each) for each in cells], _text(comparison_verdict(row), style))
    return table


def _text(text: str, style: str = "") -> "RenderableType":
    from rich.text import Text

    return Text(printable(text), style=style)
