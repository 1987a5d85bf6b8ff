"""What a gate says, for machines: the document of ``gate --json``."""

from weighbridge.analysis.gate import Finding
from weighbridge.analysis.gate_answer import Gate
from weighbridge.analysis.results import Analysis
from weighbridge.report.export.gate_document import VERSION, GateDocument, GateFinding
from weighbridge.report.export.json import finite
from weighbridge.report.export.within import within_json
from weighbridge.report.text.gate import OUTCOMES


def gate_json(gate: Gate, analysis: Analysis, against: str | None = None) -> GateDocument:
    """Give the document of ``gate --json``, as docs/reference.md describes it; ``against``: that run's id."""
    return {
        "version": VERSION,
        "study": analysis.study,
        "run": analysis.run_id,
        "against": against,
        "answer": gate.answer,
        "findings": [_finding(each, analysis) for each in gate.findings],
        "looks": gate.looks,
        "share": gate.share,
        "earlier_looks": [{"blocks": each.blocks, "share": each.share} for each in gate.earlier],
    }


def _finding(finding: Finding, analysis: Analysis) -> GateFinding:
    target, cost = finding.target, finding.cost if finding.blocks > 1 else None
    return {
        "about": "change" if finding.change else "cost",
        "budget": finding.limit.text,
        "environment": target.environment,
        **within_json(analysis, target.environment),
        "workload": target.workload,
        "metric": target.metric,
        "outcome": OUTCOMES[finding.outcome],
        "reason": finding.reason,
        "cost": finite(finding.cost.estimate) if finding.cost else None,
        "cost_low": finite(cost.low) if cost else None,
        "cost_high": finite(cost.high) if cost else None,
        "cost_unit": finding.unit or None,
        "blocks": finding.blocks,
    }
