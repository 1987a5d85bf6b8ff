"""The costs that were held against a limit or a budget, in JSON."""

from collections.abc import Sequence

from weighbridge.analysis.limits import Finding
from weighbridge.analysis.results import Analysis
from weighbridge.report.export.document import LimitAnswer, Penalty, Within
from weighbridge.report.export.json import finite
from weighbridge.report.export.within import within_json


class FindingFigures(Within, Penalty):
    """A cost, or the change of one, that was held against a requirement."""

    environment: str
    workload: str
    metric: str
    blocks: int


def finding_figures(finding: Finding, analysis: Analysis) -> FindingFigures:
    """Return the place and the cost of a finding; the cost has limits only with several rounds."""
    target, cost = finding.target, finding.cost
    limits = cost if finding.blocks > 1 else None
    return {
        "environment": target.environment,
        **within_json(analysis, target.environment),
        "workload": target.workload,
        "metric": target.metric,
        "cost": finite(cost.estimate) if cost else None,
        "cost_low": finite(limits.low) if limits else None,
        "cost_high": finite(limits.high) if limits else None,
        "cost_unit": finding.unit or None,
        "blocks": finding.blocks,
    }


def limits_json(analysis: Analysis, findings: Sequence[Finding]) -> list[LimitAnswer]:
    """Return what ``report --json --fail-if ...`` adds as ``limits``: one object per limit and comparison."""
    return [
        {
            "limit": each.requirement.text,
            **finding_figures(each, analysis),
            "outcome": each.outcome,
            "reason": each.reason,
        }
        for each in findings
    ]
