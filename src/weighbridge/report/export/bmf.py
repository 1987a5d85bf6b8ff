"""A run's costs in Bencher's metric format (BMF), to be followed over time."""

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.limit import Target
from weighbridge.analysis.results import Analysis
from weighbridge.report.export.json import finite

Bmf = dict[str, dict[str, dict[str, float]]]
"""Benchmark -> measure -> ``value``, and ``lower_value`` and ``upper_value`` where there is an interval."""


def bmf(analysis: Analysis) -> Bmf:
    """Return every cost of a run, its A/A arm's too, with its 95 % interval; none of an untrusted session.

    Hidden costs and those of fewer than five blocks are left out, as in a report.

    A benchmark is ``ENVIRONMENT.WORKLOAD``, a measure the metric with the unit of its cost: ``throughput cost (%)``.
    """
    found: Bmf = {}
    if analysis.trust.trusted is False:
        return found
    for report in analysis.metrics:
        for row in report.comparisons:
            if (
                row.cost is None
                or row.few
                or row.verdict == "hidden"
                or (value := finite(row.cost.worsening.estimate)) is None
            ):
                continue
            target = Target(row.environment, report.label, report.metric, report, row)
            unit = "%" if row.cost.scale == "ratio" else difference_unit(report.unit)
            measured = {"value": value}
            limits = {"lower_value": row.cost.worsening.low, "upper_value": row.cost.worsening.high}
            if row.cost.blocks > 1:
                measured |= {key: limit for key, given in limits.items() if (limit := finite(given)) is not None}
            measure = f"{report.metric} cost ({unit})"
            found.setdefault(f"{row.environment}.{target.workload}", {})[measure] = measured
    return found
