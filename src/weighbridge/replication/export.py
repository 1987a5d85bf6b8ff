"""A replication as a document for machines."""

import math
from typing import Any

from weighbridge.replication.comparison import Replication, Row
from weighbridge.replication.published import Compared
from weighbridge.report.export.json import hidden_json
from weighbridge.statistics import Interval


def replication_json(found: Replication) -> dict[str, Any]:
    """The document of ``replicate --json``: every row with both comparisons; infinite numbers are null.

    ``rows``: ``table``, ``environment``, ``level``, ``scale`` (published: ratio to the baseline, or difference in
    ``unit``), ``published`` and ``measured`` (each ``estimate``, ``low``, ``high`` and ``verdict``; ``measured``
    also ``hidden`` as in ``report --json``, ``scale``, ``unit``, ``blocks``, ``exploratory`` and ``apart``: whether
    the published figure lies outside of its interval; it is null where there is none, with ``why``),
    ``direction``. ``summary``: environment -> how many rows agree, disagree, are inconclusive, hidden or
    not measured.
    """
    return {
        "study": found.study.study, "source": found.study.source, "run": found.analysis.run_id,
        "trusted": found.analysis.trust.trusted, "counts": found.counts, "summary": dict(found.summary),
        "rows": [_row_json(table.compared, row) for table in found.tables for row in table.rows],
        "oddities": list(found.study.oddities),
    }  # fmt: skip


def _row_json(compared: Compared, row: Row) -> dict[str, Any]:
    own, other = row.published, row.measured
    cost = other.cost if other else None
    measured = None
    if other is not None and cost is not None:
        measured = {
            **_numbers(cost.interval if cost.blocks > 1 else None, cost.typical), "verdict": other.verdict,
            "scale": cost.scale, "unit": row.unit, "blocks": cost.blocks, "exploratory": cost.exploratory,
            "apart": row.apart, "hidden": hidden_json(other.hidden),
        }  # fmt: skip
    return {
        "table": compared.title, "environment": own.environment, "level": dict(own.level), "scale": compared.scale,
        "unit": compared.shown_unit, "baseline_value": own.baseline, "value": own.value,
        "published": {**_numbers(own.interval, own.effect), "verdict": own.proof},
        "measured": measured, "direction": row.direction, "why": row.why,
    }  # fmt: skip


def _numbers(interval: Interval | None, estimate: float = 0.0) -> dict[str, float | None]:
    if interval is None:
        return {"estimate": estimate, "low": None, "high": None}
    numbers = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
    return {name: value if math.isfinite(value) else None for name, value in numbers.items()}
