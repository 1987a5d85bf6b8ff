"""The matrix on top of a report: what each environment costs in each workload. Data; pages and terminals word it."""

from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.summary import swept


@dataclass(frozen=True, slots=True)
class Cell:
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


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One workload at one level, or at all of many levels, on its headline metric."""

    title: str
    reports: tuple[MetricReport, ...]
    cells: tuple[Cell | None, ...]
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
    names = tuple(name for name in analysis.environments if name not in (analysis.baseline, analysis.aa_arm))
    rows = []
    for title, reports in _rows(analysis).items():
        found = {name: _cell(analysis, reports, name) for name in names}
        rows.append(MatrixRow(title, tuple(reports), tuple(found[name] for name in names)))
    kept = [number for number in range(len(names)) if any(row.cells[number] for row in rows)]
    return Matrix(
        tuple(names[number] for number in kept),
        tuple(MatrixRow(row.title, row.reports, tuple(row.cells[number] for number in kept)) for row in rows),
    )


def _rows(analysis: Analysis) -> dict[str, list[MetricReport]]:
    """The headline metrics by row; under a rising load the other factors make rows apart."""
    many = swept(analysis)
    sweeps = {(sweep.workload, level.level): sweep.title for sweep in analysis.sweeps for level in sweep.levels}
    found: dict[str, list[MetricReport]] = {}
    for report in analysis.headlines:
        place = sweeps.get((report.workload, report.level), report.workload)
        title = metric_title(report)
        title = title.replace(report.label, place, 1) if report.workload in many else title
        found.setdefault(title, []).append(report)
    return found


def _cell(analysis: Analysis, reports: Sequence[MetricReport], environment: str) -> Cell | None:
    tried = {(t.workload, t.level) for t in analysis.trials if t.environment == environment}
    rows = tuple(
        (report, row)
        for report in reports
        if (report.workload, report.level) in tried
        for row in report.comparisons
        if row.environment == environment
    )
    if not rows:
        return None
    kinds = {"none" if row.cost is None and not row.broke_instead else row.shown_as for _, row in rows}
    first = next((kind for kind in ("different", "hidden", "inconclusive") if kind in kinds), "inconclusive")
    return Cell(environment, kinds.pop() if len(kinds) == 1 else first, rows)
