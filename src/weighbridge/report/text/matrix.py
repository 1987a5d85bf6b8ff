"""The matrix: one cell for each workload and environment, and its words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.model.level import CLIENT
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import TOO_FEW, margin, percents_short, quantities, quantity
from weighbridge.report.text.metric_names import label_words, metric_name, metric_title, value_unit
from weighbridge.report.text.paths import place_words
from weighbridge.report.text.summary import swept
from weighbridge.report.text.verdicts import (
    VERDICTS,
    broke_instead,
    broke_share,
    effect,
    judged_cost_text,
    open_ends,
    open_range,
    resolved_text,
    why_undecided,
)


@dataclass(frozen=True, slots=True)
class MatrixCosts:
    """One environment in one workload, at all of its levels if it has many."""

    environment: str
    shown_as: str
    """As `Comparison.shown_as`: a verdict, "broke" or "few"; "none" if no round is complete. Many levels are
    "different" if some level is, "equivalent" if all levels are."""
    rows: tuple[tuple[MetricReport, Comparison], ...]

    @property
    def different(self) -> tuple[tuple[MetricReport, Comparison], ...]:
        """The levels with a significant cost."""
        return tuple(each for each in self.rows if each[1].shown_as == "different")

    @property
    def small(self) -> tuple[tuple[MetricReport, Comparison], ...]:
        """The levels with a significant cost within the margin, if all levels are equivalent."""
        return tuple(each for each in self.rows if each[1].proven) if self.shown_as == "equivalent" else ()


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One workload at one level, or at all of many levels, on its primary metric."""

    title: str
    reports: tuple[MetricReport, ...]
    cells: tuple[MatrixCosts | None, ...]
    """The cells by environment; None for one that was not measured in the workload."""

    @property
    def levels(self) -> int:
        """How many levels it is about."""
        return len(self.reports)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Environments (without the baseline and the control) by workload, in the study's order."""

    environments: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    further: tuple[MatrixRow, ...] = ()
    """The other metrics of a single workload that several environments ran; only the page has room for them."""


def matrix(analysis: Analysis) -> Matrix:
    """Return the costs of every environment on the primary metrics; without rows if there are none."""
    names = analysis.others
    rows = []
    for title, reports in _rows(analysis).items():
        cells = {name: _cell(analysis, reports, name) for name in names}
        rows.append(MatrixRow(title, tuple(reports), tuple(cells[name] for name in names)))
    columns = [names[number] for number in range(len(names)) if any(row.cells[number] for row in rows)]
    further = _further(analysis) if len(rows) == len(analysis.headlines) == 1 and len(columns) > 1 else ()
    return Matrix(
        tuple(columns),
        tuple(replace(row, cells=tuple(row.cells[names.index(name)] for name in columns)) for row in rows),
        tuple(
            MatrixRow(metric_name(each), (each,), tuple(_cell(analysis, (each,), name) for name in columns))
            for each in further
        ),
    )


def _further(analysis: Analysis) -> Sequence[MetricReport]:
    return [each for each in analysis.metrics if not each.headline and not each.resource_use]


def _rows(analysis: Analysis) -> dict[str, list[MetricReport]]:
    """Return the primary metrics by row; under a rising load each value of another factor is a row.

    The place of the clients is named as in the answer above the matrix.
    """
    many = swept(analysis)
    sweeps = {level.cell: sweep.title for sweep in analysis.sweeps for level in sweep.levels}
    reports_by_title: dict[str, list[MetricReport]] = {}
    for report in analysis.headlines:
        place = sweeps.get(report.cell, report.workload)
        title = metric_title(report)
        title = (
            title.replace(label_words(report.label, report.workload), place, 1) if report.workload in many else title
        )
        if client := report.level.value_of(CLIENT):
            title = title.replace(f"{CLIENT}={client}", place_words(analysis.paths.place(client)))
        reports_by_title.setdefault(title, []).append(report)
    return reports_by_title


def _cell(analysis: Analysis, reports: Sequence[MetricReport], environment: str) -> MatrixCosts | None:
    rows = tuple(
        (report, row)
        for report in reports
        if any(trial.environment == environment for trial in analysis.trials_of.get(report.label, ()))
        for row in report.comparisons
        if row.environment == environment
    )
    if not rows:
        return None
    kinds = {"none" if row.cost is None and not row.broke_instead else row.shown_as for _, row in rows}
    first = next((kind for kind in ("different", "hidden", "inconclusive") if kind in kinds), "inconclusive")
    return MatrixCosts(environment, kinds.pop() if len(kinds) == 1 else first, rows)


# -- cells in words --------------------------------------------------------------------------------


WORDS = {
    **VERDICTS,
    "broke": "overloaded",
    "few": TOO_FEW,
    "none": "no complete round",
}
"""The words of a cell without a cost. A verdict that is not here is shown as it is."""

ABSENT = "–"
"""Shown if an environment was not measured in a workload."""


def large(row: MatrixRow, cell: MatrixCosts | None) -> str:
    """Return the large letters of a cell: a significant cost, the value of too few rounds, or words."""
    if cell is None:
        return ABSENT
    compared = [each for _, each in cell.rows]
    name = cell.environment if cell.shown_as == "few" else next((n for each in compared for n in each.unresolved), "")
    return resolved_text(_large(row, cell), name, *compared)


def _large(row: MatrixRow, cell: MatrixCosts) -> str:
    report, compared = cell.rows[0]
    if cell.shown_as == "few" and row.levels == 1:
        return quantity(compared.value, report.unit, value_unit(report))
    if cell.shown_as == "equivalent" and compared.cost is not None and compared.cost.margin is not None:
        return f"within {margin(compared.cost.margin)}"
    if cell.shown_as != "different":
        return WORDS.get(cell.shown_as, cell.shown_as)
    return _spread(cell.different) or WORDS["different"]


def _spread(rows: Sequence[tuple[MetricReport, Comparison]]) -> str:
    """Return a cost, or the least and the largest of several levels; empty unless all have one direction."""
    effects = [each for report, compared in rows if (each := effect(report, compared)) is not None]
    if len(effects) == 1 == len(rows):
        return f"{effects[0].short} {effects[0].relation}"
    percents = [abs(c.cost.penalty.estimate) for _, c in rows if c.cost and c.cost.scale == "ratio"]
    if not percents or len({each.word for each in effects}) > 1:
        return ""
    return f"{percents_short(percents)} {effects[0].word}"


def small(row: MatrixRow, cell: MatrixCosts | None) -> str:
    """Return the small letters of a cell: the cost's interval, the number of levels, or that rounds are too few."""
    if cell is None:
        return ""
    if row.levels > 1:
        return _levels(row, cell)
    report, compared = cell.rows[0]
    if cell.shown_as == "few":
        return TOO_FEW
    if cell.shown_as == "broke":
        alone = compared.broke if len(compared.broke_instead) == 1 else None
        return broke_instead(compared) if alone is None else broke_share(alone)
    cell_effect = effect(report, compared)
    if cell_effect is not None and cell.shown_as == "different":
        return cell_effect.interval
    return ", ".join([cost_with_interval(row, cell), *why_undecided(compared)]) if cell_effect is not None else ""


def interval(row: MatrixRow, cell: MatrixCosts) -> str:
    """Return the interval of a cost alone, where positive is worse: ``[-1.4, 2.6] (90%)``; empty without one."""
    report, compared = cell.rows[0]
    return "".join(judged_cost_text(compared, report.unit).partition("[")[1:])


def _levels(row: MatrixRow, cell: MatrixCosts) -> str:
    shown = cell.different if cell.shown_as == "different" else cell.small
    broke = sum(compared.broke is not None for _, compared in cell.rows)
    level_counts = [f"at {len(shown)} of {row.levels} levels"] if shown else []
    if cell.small:
        level_counts = [f"{_spread(cell.small)} {level_counts[0]}".strip()]
    return ", ".join([*level_counts, *([f"overloaded at {broke} of them"] if broke else [])])


def cost_with_interval(row: MatrixRow, cell: MatrixCosts) -> str:
    """Return the cost with its interval: ``20.1% [19.1, 20.9] lower``; empty for many levels.

    An undecided cost is its range: ``between 1.0% higher and 1.9% lower``. One within the margin is without direction
    unless it is significant: ``cost -0.4% [-1.9, 1.0] (90%)``, where positive is worse.
    """
    report, compared = cell.rows[0]
    cell_effect = effect(report, compared)
    if row.levels > 1 or cell_effect is None:
        return ""
    if cell.different or cell.small:
        return f"{cell_effect.amount} {cell_effect.relation}"
    if cell.shown_as == "inconclusive":
        return open_range(report, compared)
    return f"cost {judged_cost_text(compared, report.unit)}"


def cost_range(row: MatrixRow, cell: MatrixCosts) -> str:
    """Return the range of an undecided cost: ``1.0% higher to 1.9% lower``, and why; else nothing."""
    report, compared = cell.rows[0]
    if cell.shown_as != "inconclusive" or row.levels > 1 or compared.cost is None or compared.few:
        return ""
    return "\n".join([" to ".join(open_ends(report, compared)), *why_undecided(compared)])


def reference_values(analysis: Analysis, row: MatrixRow) -> list[str]:
    """Return the baseline's absolute value: ``native 16.9 Gbit/s``; with many levels the lowest and the highest.

    The values of other environments that some are compared with follow.
    """
    references = [analysis.references(report) for report in row.reports]
    return [_reference(row, name, [each.get(name) for each in references]) for name in references[0]]


def _reference(row: MatrixRow, name: str, measured: Sequence[float | None]) -> str:
    values, unit = [value for value in measured if value is not None], row.reports[0].unit
    if not values:
        return f"{display_name(name)} {ABSENT}"
    ends = [min(values), max(values)] if len(values) > 1 else values
    text = f"{display_name(name)} {quantities(ends, unit, ' to ', value_unit(*row.reports))}"
    return resolved_text(text, name, *(each for report in row.reports for each in report.comparisons))
