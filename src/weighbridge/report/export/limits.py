"""The outcomes of limits (``report --fail-if``) in the JSON of a report."""

from collections.abc import Sequence

from weighbridge.analysis.limits import Finding
from weighbridge.analysis.results import Analysis
from weighbridge.report.export.document import LimitAnswer
from weighbridge.report.export.json import worsening_json
from weighbridge.report.export.within import within_json


def limits_json(analysis: Analysis, findings: Sequence[Finding]) -> list[LimitAnswer]:
    """Return what ``report --json --fail-if ...`` adds as ``limits``: one object per limit and comparison."""
    answers: list[LimitAnswer] = []
    for finding in findings:
        target = finding.target
        cost = target.row.cost if target.row is not None else None
        answers.append({
            "limit": finding.requirement.text, "environment": target.environment,
            **within_json(analysis, target.environment), "workload": target.workload, "metric": target.metric,
            "outcome": finding.outcome, "reason": finding.reason,
            **worsening_json(cost, target.report.unit if target.report else ""), "blocks": finding.blocks,
        })  # fmt: skip
    return answers
