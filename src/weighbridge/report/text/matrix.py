"""The matrix: for each workload and environment the cell that says most, and its words."""

from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.analysis.remarks import NotAfterHolm, Unproven, WithinNoise
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.model.study import CLIENT
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import SPACE, TOO_FEW, margin, percent_short, quantities, quantity
from weighbridge.report.text.metric_names import metric_title, value_unit
from weighbridge.report.text.paths import place_words
from weighbridge.report.text.summary import swept
from weighbridge.report.text.verdicts import broke_instead, effect, judged_cost_text, resolved_text


@dataclass(frozen=True, slots=True)
class MatrixCosts:
    """One environment in one workload: of a workload with many levels, at all of them."""

    environment: str
    shown_as: str
    """As `Comparison.shown_as`: a verdict, "broke" or "few"; "none" where no block is complete. Of many levels
    "different" where some level is, "equivalent" where all are."""
    rows: tuple[tuple[MetricReport, Comparison], ...]

    @property
    def different(self) -> tuple[tuple[MetricReport, Comparison], ...]:
        """The levels at which it differs."""
        return tuple(each for each in self.rows if each[1].shown_as == "different")

    @property
    def small(self) -> tuple[tuple[MetricReport, Comparison], ...]:
        """The levels at which a cost within the margin is proven, where all are equivalent."""
        return tuple(each for each in self.rows if each[1].proven) if self.shown_as == "equivalent" else ()


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One workload at one level, or at all of many levels, on its headline metric."""

    title: str
    reports: tuple[MetricReport, ...]
    cells: tuple[MatrixCosts | None, ...]
    """By environment; None where it was not measured there."""

    @property
    def levels(self) -> int:
        """How many levels it is about."""
        return len(self.reports)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Environments (without the baseline and its A/A arm) by workload, in the study's order."""

    environments: tuple[str, ...]
    rows: tuple[MatrixRow, ...]


def matrix(analysis: Analysis) -> Matrix:
    """Return the costs of every environment on the headline metrics; without rows where there are none."""
    names = analysis.others
    rows = []
    for title, reports in _rows(analysis).items():
        cells = {name: _cell(analysis, reports, name) for name in names}
        rows.append(MatrixRow(title, tuple(reports), tuple(cells[name] for name in names)))
    columns = [number for number in range(len(names)) if any(row.cells[number] for row in rows)]
    return Matrix(
        tuple(names[number] for number in columns),
        tuple(MatrixRow(row.title, row.reports, tuple(row.cells[number] for number in columns)) for row in rows),
    )


def _rows(analysis: Analysis) -> dict[str, list[MetricReport]]:
    """The headline metrics by row; under a rising load the other factors make rows apart.

    Where clients are is said as in the answer above the matrix.
    """
    many = swept(analysis)
    sweeps = {(sweep.workload, level.level): sweep.title for sweep in analysis.sweeps for level in sweep.levels}
    reports_by_title: dict[str, list[MetricReport]] = {}
    for report in analysis.headlines:
        place = sweeps.get((report.workload, report.level), report.workload)
        title = metric_title(report)
        title = title.replace(report.label, place, 1) if report.workload in many else title
        if client := report.level.value_of(CLIENT):
            title = title.replace(f"{CLIENT}={client}", place_words(analysis.paths.place(client)))
        reports_by_title.setdefault(title, []).append(report)
    return reports_by_title


def _cell(analysis: Analysis, reports: Sequence[MetricReport], environment: str) -> MatrixCosts | None:
    measured_levels = {(t.workload, t.level) for t in analysis.trials if t.environment == environment}
    rows = tuple(
        (report, row)
        for report in reports
        if (report.workload, report.level) in measured_levels
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
    "inconclusive": "undecided",
    "few": TOO_FEW,
    "none": "no complete block",
}
"""What a cell says where it shows no cost. A verdict that is not here is said as it is."""

ABSENT = "–"
"""What stands where an environment was not measured in a workload."""


def large(row: MatrixRow, cell: MatrixCosts | None) -> str:
    """Return what stands in a cell in large letters: a cost that is different, a value of few blocks, or words."""
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
    return _spread(cell.different) or "different"


def _spread(rows: Sequence[tuple[MetricReport, Comparison]]) -> str:
    """The size of a cost, or of the least and the most of several levels; empty where they have not one direction."""
    effects = [each for report, compared in rows if (each := effect(report, compared)) is not None]
    if len(effects) == 1 == len(rows):
        return f"{effects[0].short} {effects[0].relation}"
    percents = [abs(c.cost.worsening.estimate) for _, c in rows if c.cost and c.cost.scale == "ratio"]
    if not percents or len({each.word for each in effects}) > 1:
        return ""
    low, high = percent_short(min(percents)), percent_short(max(percents))
    if low != high:
        least, unit = low.rsplit(SPACE, 1)
        high = f"{least if high.endswith(unit) else low} to {high}"
    return f"{high} {effects[0].word}"


def small(row: MatrixRow, cell: MatrixCosts | None) -> str:
    """Return what stands below it: the cost with its interval, at how many levels, or that the blocks are too few."""
    if cell is None:
        return ""
    if row.levels > 1:
        return _levels(row, cell)
    report, compared = cell.rows[0]
    if cell.shown_as == "few":
        return TOO_FEW
    if cell.shown_as == "broke":
        return broke_instead(compared)
    cell_effect = effect(report, compared)
    if cell_effect is None:
        return ""
    undecided = ", ".join([cost_with_interval(row, cell), *why_undecided(compared)])
    return cell_effect.interval if cell.shown_as == "different" else undecided


def _levels(row: MatrixRow, cell: MatrixCosts) -> str:
    shown = cell.different if cell.shown_as == "different" else cell.small
    broke = sum(compared.broke is not None for _, compared in cell.rows)
    level_counts = [f"at {len(shown)} of {row.levels} levels"] if shown else []
    if cell.small:
        level_counts = [f"{_spread(cell.small)} {level_counts[0]}".strip()]
    return ", ".join([*level_counts, *([f"broke at {broke}"] if broke else [])])


def cost_with_interval(row: MatrixRow, cell: MatrixCosts) -> str:
    """Return the cost with its interval: ``20.1 % [19.1, 20.9] slower``, of what is not proven without direction.

    That is ``cost -0.4 % [-1.9, 1.0]``: positive is worse. Empty of many levels.
    """
    report, compared = cell.rows[0]
    cell_effect = effect(report, compared)
    if row.levels > 1 or cell_effect is None:
        return ""
    if cell.different or cell.small:
        return f"{cell_effect.amount} {cell_effect.relation}"
    return f"cost {judged_cost_text(compared, report.unit)}"


WHY = {
    Unproven.code: "run untrusted",
    NotAfterHolm.code: "not significant (Holm)",
    WithinNoise.code: "within the noise floor",
}
"""Why an interval without zero decides nothing, by the code of its remark; the gravest first."""


def why_undecided(compared: Comparison) -> list[str]:
    """Give the gravest reason, or none."""
    codes = {remark.code for remark in compared.remarks}
    return [words for code, words in WHY.items() if code in codes][:1]


def cost_range(row: MatrixRow, cell: MatrixCosts) -> str:
    """Return how much it may cost, below 0 a gain, where that is not decided: ``cost [-1.0, 1.9]``; else nothing."""
    report, compared = cell.rows[0]
    if cell.shown_as != "inconclusive" or row.levels > 1 or compared.cost is None or compared.few:
        return ""
    text = judged_cost_text(compared, report.unit)
    limits = text[text.index("[") :] if compared.cost.scale == "ratio" else text
    return "\n".join([f"cost {limits}", *why_undecided(compared)])


def native(analysis: Analysis, row: MatrixRow) -> str:
    """Return the baseline's absolute value: ``native 16.9 Gbit/s``; of many levels from the lowest to the highest."""
    values = [report.baseline_value for report in row.reports if report.baseline_value is not None]
    unit = row.reports[0].unit
    if not values:
        return f"{display_name(analysis.baseline)} {ABSENT}"
    ends = [min(values), max(values)] if len(values) > 1 else values
    text = f"{display_name(analysis.baseline)} {quantities(ends, unit, ' to ', value_unit(*row.reports))}"
    return resolved_text(text, analysis.baseline, *(each for report in row.reports for each in report.comparisons))
