"""A replication as a document for machines."""

from weighbridge.replication.comparison import ComparedRow, Replication
from weighbridge.replication.document import (
    VERSION,
    Estimate,
    MeasuredComparison,
    MeasuredPairDocument,
    MeasuredSpreadDocument,
    PairDocument,
    ReplicationDocument,
    ReplicationRow,
    SpreadRowDocument,
)
from weighbridge.replication.paired import PairRow
from weighbridge.replication.published import Compared
from weighbridge.replication.spread import SpreadRow
from weighbridge.report.export.json import finite, hidden_json
from weighbridge.report.export.within import within_json
from weighbridge.statistics import Interval


def replication_json(found: Replication) -> ReplicationDocument:
    """Give the document of ``replicate --json``, as docs/reference.md describes it; infinite numbers are null."""
    return {
        "version": VERSION, "study": found.study.study, "source": found.study.source, "run": found.analysis.run_id,
        "trusted": found.analysis.trust.trusted, "counts": found.counts, "summary": dict(found.summary),
        "rows": [_row_json(found, table.compared, row) for table in found.tables for row in table.rows],
        "spreads": [_spread_json(found, each.table.title, row) for each in found.spreads for row in each.rows],
        "pairs": [_pair_json(each.table.title, row) for each in found.pairs for row in each.rows],
        "oddities": list(found.study.oddities),
    }  # fmt: skip


def _pair_json(title: str, row: PairRow) -> PairDocument:
    own, test = row.published, row.measured
    measured: MeasuredPairDocument | None = None
    if test is not None:
        verdict = row.judged.verdict if row.judged else None
        measured = {"mean": test.mean, "deviation": test.deviation, "pairs": test.pairs, "t": test.t, "p": test.p,
                    "unit": row.unit, "verdict": verdict}  # fmt: skip
    return {
        "table": title, "first": row.first, "second": row.second,
        "published": {"mean": own.mean, "deviation": own.deviation, "t": own.t, "p": own.p},
        "measured": measured, "agreement": row.agreement, "why": row.why,
    }  # fmt: skip


def _spread_json(found: Replication, title: str, row: SpreadRow) -> SpreadRowDocument:
    own, other = row.published, row.measured
    measured: MeasuredSpreadDocument | None = None
    if other is not None:
        low, high = other.limits or (None, None)
        measured = {
            "mean": other.mean, "deviation": other.deviation, "variation": other.variation, "variation_low": low,
            "variation_high": high, "runs": other.runs, "unit": row.unit,
            **within_json(found.analysis, row.environment),
        }  # fmt: skip
    return {
        "table": title, "published_as": row.published_as, "environment": row.environment,
        "published": {"mean": own.mean, "deviation": own.deviation, "variation": own.variation,
                      "derived": list(own.derived)},
        "measured": measured, "why": row.why,
    }  # fmt: skip


def _row_json(found: Replication, compared: Compared, row: ComparedRow) -> ReplicationRow:
    own, other = row.published, row.measured
    cost = other.cost if other else None
    measured: MeasuredComparison | None = None
    if other is not None and cost is not None:
        measured = {
            **_numbers(cost.interval if cost.blocks > 1 else None, cost.typical), "verdict": other.verdict,
            "scale": cost.scale, "unit": row.unit, "blocks": cost.blocks, "exploratory": cost.exploratory,
            "apart": row.apart, "comparable_in_size": not row.emulated,
            **within_json(found.analysis, own.environment),
            "hidden": hidden_json(other.hidden),
        }  # fmt: skip
    return {
        "table": compared.title, "environment": own.environment,
        "against": own.against or found.analysis.baseline, "level": dict(own.level), "scale": compared.scale,
        "unit": compared.shown_unit, "baseline_value": own.baseline, "value": own.value,
        "published": {**_numbers(own.interval, own.effect), "verdict": own.proof},
        "measured": measured, "direction": row.direction, "why": row.why,
    }  # fmt: skip


def _numbers(interval: Interval | None, estimate: float = 0.0) -> Estimate:
    if interval is None:
        return {"estimate": estimate, "low": None, "high": None}
    return {"estimate": finite(interval.estimate), "low": finite(interval.low), "high": finite(interval.high)}
