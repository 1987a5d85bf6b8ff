"""The costs of a run in the JSON of github-action-benchmark, for its tool ``customSmallerIsBetter``.

That action, and others that read its format, compare two results by their ratio. A ratio of two costs in percent
means nothing: from 0.1% to 0.4% is not a fourfold loss, and a cost can be negative. So the value of a cost is how
many times worse the environment is than its baseline, which is always positive: 1.17 for a run time with a cost of
17%. The ratio of two such values is about the change that ``weighbridge compare`` shows.
"""

import json
import math

from weighbridge.analysis.conditions import NO_HYPERVISOR
from weighbridge.analysis.requirement import Target
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.report.export.provenance import provenance
from weighbridge.report.text.environments import environment_name
from weighbridge.report.text.formatting import SPACE
from weighbridge.report.text.verdicts import comparison_verdict, cost_text
from weighbridge.statistics import Cost
from weighbridge.store.run import RunStore

DIGITS = 6
"""Significant digits of a value."""


def action_benchmark_json(store: RunStore, analysis: Analysis) -> str:
    """Return the costs of the primary metrics. There are none if the control failed.

    Costs that are hidden, from too few rounds, or differences in a unit have no such value, and are left out.
    """
    run = f"run: {analysis.run_id}, {provenance(store).date or 'unknown date'}"
    entries = [
        _entry(analysis, report, row, cost, run)
        for report in (() if analysis.trust.trusted is False else analysis.headlines)
        for row in report.comparisons
        if not row.aa and (cost := row.usable_cost) is not None and cost.scale == "ratio"
        if 0 < cost.typical < math.inf
    ]
    return f"{json.dumps(entries, indent=2)}\n"


def _entry(analysis: Analysis, report: MetricReport, row: Comparison, cost: Cost, run: str) -> dict[str, str | float]:
    value, low, high = (f"{each:.{DIGITS}g}" for each in _times_worse(cost))
    name = environment_name(row.environment, analysis.isolation.get(row.environment, NO_HYPERVISOR))
    extra = (
        f"environment: {name}", f"cost: {cost_text(row, report.unit)}", f"verdict: {comparison_verdict(row)}",
        f"rounds: {row.blocks}", run,
    )  # fmt: skip
    return {
        "name": Target(row.environment, report.label, report.metric).name,
        "unit": f"x {row.against}",
        "value": float(value),
        "range": f"{low} to {high}",
        "extra": "\n".join(extra).replace(SPACE, " "),
    }


def _times_worse(cost: Cost) -> tuple[float, float, float]:
    """Return how many times worse the environment is, with the limits: for a throughput, the inverse of its ratio."""
    if cost.better == "lower":
        return cost.typical, cost.low, cost.high
    return 1 / cost.typical, 1 / cost.high, 1 / cost.low if cost.low > 0 else math.inf
