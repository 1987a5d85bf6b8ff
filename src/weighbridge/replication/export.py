"""A replication as a document for machines."""

from weighbridge.analysis.results import Analysis
from weighbridge.replication.comparison import ComparedRow, Replication
from weighbridge.replication.document import (
    VERSION,
    Estimate,
    MeasuredComparison,
    ReplicationDocument,
    ReplicationRow,
)
from weighbridge.replication.published import Compared
from weighbridge.report.export.json import finite, hidden_json
from weighbridge.report.export.within import within_json
from weighbridge.statistics import Interval


def replication_json(found: Replication) -> ReplicationDocument:
    """Give the document of ``replicate --json``, as docs/reference.md describes it; infinite numbers are null."""
    return {
        "version": VERSION, "study": found.study.study, "source": found.study.source, "run": found.analysis.run_id,
        "trusted": found.analysis.trust.trusted, "counts": found.counts, "summary": dict(found.summary),
        "rows": [_row_json(found.analysis, table.compared, row) for table in found.tables for row in table.rows],
        "oddities": list(found.study.oddities),
    }  # fmt: skip


def _row_json(analysis: Analysis, compared: Compared, row: ComparedRow) -> ReplicationRow:
    own, other = row.published, row.measured
    cost = other.cost if other else None
    measured: MeasuredComparison | None = None
    if other is not None and cost is not None:
        measured = {
            **_numbers(cost.interval if cost.blocks > 1 else None, cost.typical), "verdict": other.verdict,
            "scale": cost.scale, "unit": row.unit, "blocks": cost.blocks, "exploratory": cost.exploratory,
            "apart": row.apart, "comparable_in_size": not row.emulated, **within_json(analysis, own.environment),
            "hidden": hidden_json(other.hidden),
        }  # fmt: skip
    return {
        "table": compared.title, "environment": own.environment, "level": dict(own.level), "scale": compared.scale,
        "unit": compared.shown_unit, "baseline_value": own.baseline, "value": own.value,
        "published": {**_numbers(own.interval, own.effect), "verdict": own.proof},
        "measured": measured, "direction": row.direction, "why": row.why,
    }  # fmt: skip


def _numbers(interval: Interval | None, estimate: float = 0.0) -> Estimate:
    if interval is None:
        return {"estimate": estimate, "low": None, "high": None}
    return {"estimate": finite(interval.estimate), "low": finite(interval.low), "high": finite(interval.high)}
