"""The document of ``replicate --json``: its types, from which its JSON Schema is made, and its construction.

docs/reference/json.md says what the keys mean.
"""

from typing import Final, Literal

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from weighbridge import statistics
from weighbridge.features.replication.comparison import (
    Agreement,
    ComparedRow,
    Direction,
    PairRow,
    Replication,
    SpreadRow,
)
from weighbridge.features.replication.proof import Proof
from weighbridge.features.replication.published import Compared
from weighbridge.report.export.document import Hidden, Interval, Within
from weighbridge.report.export.json import finite, hidden_json
from weighbridge.report.export.within import within_json
from weighbridge.statistics import Scale, Verdict

VERSION: Final = 2


class Estimate(Interval):
    """A comparison with the baseline: a ratio or a difference."""

    estimate: float | None


class PublishedComparison(Estimate):
    """The proof of the published figures by their own spread."""

    verdict: Proof


class MeasuredComparison(Within, Estimate):
    """The comparison that the run measured."""

    verdict: Verdict
    scale: Scale
    unit: str
    blocks: int
    exploratory: bool
    apart: bool
    comparable_in_size: bool
    hidden: Hidden | None


class ReplicationRow(TypedDict):
    """One published comparison and its measured counterpart."""

    table: str
    environment: str
    against: str
    level: dict[str, str]
    scale: Scale
    unit: str
    baseline_value: float | None
    value: float | None
    published: PublishedComparison
    measured: MeasuredComparison | None
    direction: Direction
    why: str


class SpreadOfRuns(TypedDict):
    """Mean, standard deviation and coefficient of variation (a fraction)."""

    mean: float | None
    deviation: float | None
    variation: float | None


class PublishedSpreadDocument(SpreadOfRuns):
    """The printed figures; ``derived`` names figures computed from the others."""

    derived: list[str]


class MeasuredSpreadDocument(Within, SpreadOfRuns):
    """The same for the run's blocks, with the 95% limits of the coefficient of variation."""

    variation_low: float | None
    variation_high: float | None
    runs: int
    unit: str


class SpreadRowDocument(TypedDict):
    """How much the runs of one environment vary, as published and as measured."""

    table: str
    published_as: str
    environment: str
    published: PublishedSpreadDocument
    measured: MeasuredSpreadDocument | None
    why: str


class PublishedPairDocument(TypedDict):
    """A printed difference: mean, standard deviation, t and p."""

    mean: float
    deviation: float
    t: float
    p: float


class MeasuredPairDocument(TypedDict):
    """The same for the run's blocks; t and p are null if all differences are equal."""

    mean: float
    deviation: float
    pairs: int
    t: float | None
    p: float | None
    unit: str
    verdict: Verdict | None


class PairDocument(TypedDict):
    """A paired difference with its t-test, as published and as measured."""

    table: str
    first: str
    second: str
    published: PublishedPairDocument
    measured: MeasuredPairDocument | None
    agreement: Agreement
    why: str


@with_config(ConfigDict(extra="forbid"))
class ReplicationDocument(TypedDict):
    """The document of ``weighbridge replicate --json``.

    Version 2: ``layers``, ``emulated`` and ``comparable_in_size`` of measured comparisons.
    """

    version: Literal[2]
    study: str
    source: str
    run: str
    trusted: bool | None
    counts: dict[Direction, int]
    summary: dict[str, str]
    rows: list[ReplicationRow]
    spreads: list[SpreadRowDocument]
    pairs: list[PairDocument]
    oddities: list[str]


def replication_json(replication: Replication) -> ReplicationDocument:
    """Return the document of ``replicate --json``, as in docs/reference/json.md; infinite numbers are null."""
    return {
        "version": VERSION, "study": replication.study.study, "source": replication.study.source,
        "run": replication.analysis.run_id, "trusted": replication.analysis.trust.trusted,
        "counts": replication.counts, "summary": dict(replication.summary),
        "rows": [_row_json(replication, table.source, row) for table in replication.tables for row in table.rows],
        "spreads": [_spread_json(replication, each.source.title, row)
                    for each in replication.spreads for row in each.rows],
        "pairs": [_pair_json(each.source.title, row) for each in replication.pairs for row in each.rows],
        "oddities": list(replication.study.oddities),
    }  # fmt: skip


def _pair_json(title: str, row: PairRow) -> PairDocument:
    printed, test = row.published, row.measured
    measured: MeasuredPairDocument | None = None
    if test is not None:
        verdict = row.judged.verdict if row.judged else None
        measured = {"mean": test.mean, "deviation": test.deviation, "pairs": test.pairs, "t": test.t, "p": test.p,
                    "unit": row.unit, "verdict": verdict}  # fmt: skip
    return {
        "table": title, "first": printed.first, "second": printed.second,
        "published": {"mean": printed.mean, "deviation": printed.deviation, "t": printed.t, "p": printed.p},
        "measured": measured, "agreement": row.verdict, "why": row.reason,
    }  # fmt: skip


def _spread_json(replication: Replication, title: str, row: SpreadRow) -> SpreadRowDocument:
    printed, other = row.published, row.measured
    measured: MeasuredSpreadDocument | None = None
    if other is not None:
        low, high = other.limits or (None, None)
        measured = {
            "mean": other.mean, "deviation": other.deviation, "variation": other.variation, "variation_low": low,
            "variation_high": high, "runs": other.runs, "unit": row.unit,
            **within_json(replication.analysis, printed.environment),
        }  # fmt: skip
    return {
        "table": title, "published_as": printed.published_as, "environment": printed.environment,
        "published": {"mean": printed.mean, "deviation": printed.deviation, "variation": printed.variation,
                      "derived": list(printed.derived)},
        "measured": measured, "why": row.reason,
    }  # fmt: skip


def _row_json(replication: Replication, compared: Compared, row: ComparedRow) -> ReplicationRow:
    published, other = row.published, row.measured
    cost = other.cost if other else None
    measured: MeasuredComparison | None = None
    if other is not None and cost is not None:
        measured = {
            **_numbers(cost.interval if cost.blocks > 1 else None, cost.typical), "verdict": other.verdict,
            "scale": cost.scale, "unit": row.unit, "blocks": cost.blocks, "exploratory": cost.exploratory,
            "apart": row.outside, "comparable_in_size": not row.emulated,
            **within_json(replication.analysis, published.environment),
            "hidden": hidden_json(other.hidden),
        }  # fmt: skip
    return {
        "table": compared.title, "environment": published.environment,
        "against": published.against or replication.analysis.baseline, "level": dict(published.level),
        "scale": compared.scale, "unit": compared.shown_unit,
        "baseline_value": published.baseline, "value": published.value,
        "published": {**_numbers(published.interval, published.effect), "verdict": published.proof},
        "measured": measured, "direction": row.verdict, "why": row.reason,
    }  # fmt: skip


def _numbers(interval: statistics.Interval | None, estimate: float = 0.0) -> Estimate:
    if interval is None:
        return {"estimate": estimate, "low": None, "high": None}
    return {"estimate": finite(interval.estimate), "low": finite(interval.low), "high": finite(interval.high)}
