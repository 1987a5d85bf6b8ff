"""Remarks about the two costs of a sandbox: entering it, and running in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from weighbridge.analysis.context import Context
from weighbridge.analysis.remarks.rules import ComparisonInRun, about_comparison
from weighbridge.analysis.results import Remark, RemarkPlace
from weighbridge.model.address import ArmId
from weighbridge.model.stored_study import ENTRY, is_weighed

_START = "time_to_ready"
"""The metric of the workload ``boot``."""


@dataclass(frozen=True, slots=True)
class EntryAndSteady(Remark):
    """The two costs of a program that is started once in a sandbox, in seconds: differences of medians.

    ``entry_s`` is paid once per start, for a command that does nothing. ``steady_s`` is the cost of the running
    program. Both can be negative.
    """

    code = "entry"
    placement = RemarkPlace.FIRST
    environment: str
    entry_s: float
    steady_s: float


@about_comparison(165)
def _entry_and_steady(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield both costs next to the time of a program that ``weigh`` also started alone."""
    context, row, report = comparison.context, comparison.row, comparison.report
    study, cell = context.study, next((each for each in context.cells if each.workload == ENTRY), None)
    if study is None or cell is None or not is_weighed(study.study) or report.cell == cell or row.aa:
        return
    if not report.headline or report.unit != "s" or row.value is None or row.baseline_value is None:
        return
    starts = [_median_start(context, ArmId(cell, name)) for name in reversed(comparison.sides)]
    if starts[0] is not None and starts[1] is not None:
        yield EntryAndSteady(row.environment, starts[0] - starts[1], row.value - row.baseline_value)


def _median_start(context: Context, arm: ArmId) -> float | None:
    values = [trial.values[_START] for trial in context.of_arm(arm) if _START in trial.values]
    return median(values) if values else None
