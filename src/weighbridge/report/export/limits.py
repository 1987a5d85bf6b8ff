"""The costs that were held against a limit or a budget, in JSON."""

from collections.abc import Sequence
from typing import Any

from weighbridge.analysis.limits import Finding
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.run_result import LimitAnswer
from weighbridge.report.export.json import in_environment


def finding_figures(finding: Finding, analysis: Analysis) -> dict[str, Any]:
    """Return the place and the cost of a finding as fields; the cost has limits only with several rounds."""
    target, cost = finding.target, finding.cost
    limits = cost if finding.blocks > 1 else None
    return {
        **in_environment(analysis, target.environment),
        "workload": target.workload,
        "metric": target.metric,
        "cost": cost.estimate if cost else None,
        "cost_low": limits.low if limits else None,
        "cost_high": limits.high if limits else None,
        "cost_unit": finding.unit or None,
    }


def limits_json(analysis: Analysis, findings: Sequence[Finding]) -> list[LimitAnswer]:
    """Return what ``report --json --fail-if ...`` adds as ``limits``: one object per limit and comparison."""
    return [
        LimitAnswer(
            **finding_figures(each, analysis), limit=each.requirement.text, outcome=each.outcome, reason=each.reason,
            rounds=each.blocks,
        )
        for each in findings
    ]  # fmt: skip
