"""Remarks about the two costs of a sandbox: entering it, and running in it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weighbridge.analysis.part_cost import PartCost
from weighbridge.analysis.remarks.rules import ComparisonInRun, about_comparison
from weighbridge.analysis.results import Comparison, MetricReport, Remark, RemarkPlace
from weighbridge.model.stored_study import ENTRY, StoredFile, is_weighed

_START = "time_to_ready"
"""The metric of the workload ``boot``."""


@dataclass(frozen=True, slots=True)
class EntryAndSteady(Remark):
    """The two costs of a program that is started once in a sandbox, each with the verdict of its own comparison.

    ``entry`` is paid once per start, for a command that does nothing. ``steady`` is the cost of the running program.
    """

    code = "entry"
    placement = RemarkPlace.FIRST
    environment: str
    entry: PartCost
    steady: PartCost


@about_comparison(165)
def _entry_and_steady(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield both costs next to the time of a program that ``weigh`` also started alone."""
    context, row, report = comparison.context, comparison.row, comparison.report
    if report.cell.workload == ENTRY or not report.headline or report.unit != "s" or context.against is not None:
        return
    entry, steady = context.starts.get(row.environment), _part(row, report.unit)
    if entry is not None and steady is not None:
        yield EntryAndSteady(row.environment, entry, steady)


def starts_of(reports: Iterable[MetricReport], study: StoredFile | None) -> dict[str, PartCost]:
    """Return the cost of starting a command in each environment that ``weigh`` also entered without the program.

    Environments with too few rounds for a cost are left out.
    """
    if study is None or not is_weighed(study.study):
        return {}
    rows = (
        (row.environment, _part(row, report.unit))
        for report in reports
        if report.cell.workload == ENTRY and report.metric == _START
        for row in report.comparisons
    )
    return {environment: part for environment, part in rows if part is not None}


def _part(row: Comparison, unit: str) -> PartCost | None:
    """Return the cost of a comparison; None if there is none, or too few rounds."""
    cost = row.cost
    if cost is None or row.few or row.aa or row.value is None or row.baseline_value is None:
        return None
    shown = "%" if cost.scale == "ratio" else unit
    return PartCost(row.verdict, cost.penalty, shown, cost.margin, row.baseline_value, row.value)
