"""In which unit the values of a column are shown: one for all, so that rows can be compared by eye."""

import math
from collections.abc import Iterable

from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.report.text.formatting import Shown, shared_unit


def value_unit(*reports: MetricReport) -> Shown:
    """Return the unit for the values of one metric at one level, or at several."""
    values = [row.value for report in reports for row in report.comparisons]
    return shared_unit([*(report.baseline_value for report in reports), *values], reports[0].unit)


def difference_unit_of(rows: Iterable[Comparison], unit: str) -> Shown:
    """Return the unit for the costs of one metric in `unit` that are differences."""
    costs = [row.cost for row in rows if row.cost is not None and row.cost.scale == "difference" and not row.few]
    ends = [[abs(each) for each in (cost.typical, cost.low, cost.high) if math.isfinite(each)] for cost in costs]
    return shared_unit([max(each) for each in ends if each], unit)
