"""The tables on top of the page: the matrix, and what changes on the path."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weighbridge.analysis.path_tables import PathTable, path_tables
from weighbridge.analysis.results import Analysis
from weighbridge.report.anchors import levels_id, load_id, metric_id
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.matrix import (
    MatrixCosts,
    MatrixRow,
    cost_with_interval,
    interval,
    large,
    matrix,
    reference_values,
    small,
)
from weighbridge.report.text.paths import HEADS, figure_cells, figure_heads, first_of_each_client, path_cells, title
from weighbridge.report.text.verdicts import effect, why_undecided

MOST_WIDE = 5
"""Environments up to which a page has room for values on one line with their units."""
NO_BREAK = "\u00a0"


# -- the matrix ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One environment in one workload: a word or figure, what stands below it, the classes of its style."""

    environment: str
    verdict: str
    """The verdict; empty if it was not measured."""
    large: str
    small: str
    style: str
    """The verdict, and whether it is a gain; empty if it was not measured."""
    title: str


@dataclass(frozen=True, slots=True)
class MatrixLine:
    """One workload in the matrix, or a further metric of the only one, with the id of the part with its details."""

    title: str
    workload: str
    native: str
    link: str
    size: str
    """Its largest cost in percent, to sort by; empty if there is none."""
    cells: Sequence[MatrixCell]
    further: bool
    """Whether it is such a metric. Its intervals are short, because there can be many."""


@dataclass(frozen=True, slots=True)
class MatrixSection:
    """Environments by workload; no rows where there is nothing to compare."""

    environments: Sequence[tuple[str, str]]
    """Each with the name that is shown."""
    rows: Sequence[MatrixLine]
    many: bool
    reasons: Sequence[str]
    """Why costs of further metrics are undecided although their intervals exclude zero."""

    @property
    def verdicts(self) -> frozenset[str]:
        """The verdicts of its cells: only these are explained below it."""
        return frozenset(cell.verdict for row in self.rows for cell in row.cells)

    @property
    def signed(self) -> bool:
        """Whether a cell has a cost that can be negative."""
        return "equivalent" in self.verdicts or any(row.further for row in self.rows)


def matrix_section(analysis: Analysis) -> MatrixSection:
    """Return the matrix; with many environments its cells are narrow."""
    cost_matrix = matrix(analysis)
    names = cost_matrix.environments
    many = len(names) > MOST_WIDE
    rows = [_line(analysis, row, names, _link(analysis, row)) for row in cost_matrix.rows if names]
    for number, row in enumerate(cost_matrix.further, 1):
        rows.append(_line(analysis, row, names, metric_id(analysis, row.reports[0].label, number), further=True))
    costs = [costs for row in cost_matrix.further for cell in row.cells if cell for _, costs in cell.rows]
    reasons = [*dict.fromkeys(reason for each in costs for reason in why_undecided(each))]
    return MatrixSection([(name, display_name(name)) for name in names], rows, many, reasons)


def _line(
    analysis: Analysis, row: MatrixRow, names: Sequence[str], link: str, *, further: bool = False
) -> MatrixLine:
    cells = [_cell(row, name, each) for name, each in zip(names, row.cells, strict=True)]
    if further:
        cells = [_short(row, cell, costs) if costs else cell for cell, costs in zip(cells, row.cells, strict=True)]
    return MatrixLine(
        title=row.title,
        workload=row.reports[0].workload,
        native=", ".join(reference_values(analysis, row)),
        link=link,
        size=_size(row),
        cells=[_narrow(analysis, cell) if len(names) > MOST_WIDE else cell for cell in cells],
        further=further,
    )


def _size(row: MatrixRow) -> str:
    costs = [
        compared.cost.percent.estimate
        for cell in row.cells
        for _, compared in (cell.rows if cell else ())
        if compared.cost is not None and compared.cost.percent is not None and not compared.few
    ]
    return f"{max(costs):.4g}" if costs else ""


def _cell(row: MatrixRow, environment: str, cell: MatrixCosts | None) -> MatrixCell:
    style = ""
    if cell is not None:
        effects = [effect(*each) for each in cell.different]
        gain = bool(effects) and not any(each is not None and each.worse for each in effects)
        style = f"{cell.shown_as} gain" if gain else cell.shown_as
    return MatrixCell(
        environment, cell.shown_as if cell else "",
        large(row, cell), small(row, cell), style, cost_with_interval(row, cell) if cell else "not measured here",
    )  # fmt: skip


def _short(row: MatrixRow, cell: MatrixCell, costs: MatrixCosts) -> MatrixCell:
    """Return a cell without the words of its cost, which are still its title."""
    if cell.verdict not in ("inconclusive", "equivalent"):
        return cell
    return replace(cell, small=interval(row, costs), title=cell.small)


def _narrow(analysis: Analysis, cell: MatrixCell) -> MatrixCell:
    """Return a cell with its unit in the next line; with too few rounds, without the unit."""
    number, space, unit = cell.large.rpartition(NO_BREAK)
    if analysis.few and number:
        return replace(cell, large=number, small="")
    return replace(cell, large=f"{number} {unit}" if space else unit)


def _link(analysis: Analysis, row: MatrixRow) -> str:
    """Return the id of the details: the metric, or the curve or the table of its levels."""
    first = row.reports[0]
    for number, sweep in enumerate(analysis.sweeps):
        if any(level.cell == first.cell for level in sweep.levels):
            return load_id(number)
    return levels_id(first.workload) if row.levels > 1 else metric_id(analysis, first.label)


# -- what changes on the path ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cells:
    """A table of texts, about the workload of its ``label``."""

    label: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class PathSection:
    """The paths for the clients in one place with the figures of one workload, and the figures of the others."""

    title: str
    table: Cells
    others: Sequence[Cells]


def path_sections(analysis: Analysis) -> list[PathSection]:
    """Return a section for the clients in each place; none if no workload needs a network."""
    return [_path_section(group) for group in first_of_each_client(path_tables(analysis))]


def _path_section(group: Sequence[PathTable]) -> PathSection:
    first = group[0]
    rows = [[*path_cells(row), *figure_cells(row)] for row in first.rows]
    table = Cells(first.label if first.metrics else "", [*HEADS, *figure_heads(first)], rows)
    others = [
        Cells(
            label=each.label,
            heads=["environment", *figure_heads(each)],
            rows=[[display_name(row.environment), *figure_cells(row)] for row in each.rows],
        )
        for each in group[1:]
        if each.metrics
    ]
    return PathSection(title(first), table, others)
