"""The document of ``replicate --json``: its types, from which its JSON Schema is made, and its construction.

docs/reference/json.md says what the keys mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import ConfigDict, with_config

from weighbridge import statistics
from weighbridge.analysis.run_result import HiddenBy, Number, Within, document_json
from weighbridge.features.replication.comparison import (
    Agreement,
    ComparedRow,
    Direction,
    PairRow,
    Replication,
    Size,
    SpreadRow,
)
from weighbridge.features.replication.proof import Proof
from weighbridge.features.replication.published import Compared
from weighbridge.report.export.json import hidden_by, within
from weighbridge.statistics import Scale, Verdict

VERSION: Final = 2


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A comparison with the baseline: a ratio or a difference."""

    estimate: Number
    low: Number
    high: Number


@dataclass(frozen=True, kw_only=True)
class PublishedComparison(Estimate):
    """The proof of the published figures by their own spread."""

    verdict: Proof


@dataclass(frozen=True, kw_only=True)
class MeasuredComparison(Within, Estimate):
    """The comparison that the run measured."""

    verdict: Verdict
    scale: Scale
    unit: str
    blocks: int
    exploratory: bool
    apart: bool
    comparable_in_size: bool
    hidden: HiddenBy | None


@dataclass(frozen=True, kw_only=True)
class ReplicationRow:
    """One published comparison and its measured counterpart."""

    table: str
    environment: str
    against: str
    level: Mapping[str, str]
    scale: Scale
    unit: str
    baseline_value: float | None
    value: float | None
    published: PublishedComparison
    measured: MeasuredComparison | None
    direction: Direction
    size: Size
    """Where the published value lies: "inside" of the measured interval, "overlaps" it, or "outside"."""
    why: str


@dataclass(frozen=True, kw_only=True)
class SpreadOfRuns:
    """Mean, standard deviation and coefficient of variation (a fraction)."""

    mean: float | None
    deviation: float | None
    variation: float | None


@dataclass(frozen=True, kw_only=True)
class PublishedSpreadDocument(SpreadOfRuns):
    """The printed figures; ``derived`` names figures computed from the others."""

    derived: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class MeasuredSpreadDocument(Within, SpreadOfRuns):
    """The same for the run's blocks, with the 95% limits of the coefficient of variation."""

    variation_low: float | None
    variation_high: float | None
    runs: int
    unit: str


@dataclass(frozen=True, kw_only=True)
class SpreadRowDocument:
    """How much the runs of one environment vary, as published and as measured."""

    table: str
    published_as: str
    environment: str
    published: PublishedSpreadDocument
    measured: MeasuredSpreadDocument | None
    size: Size
    """Where the published coefficient of variation lies."""
    why: str


@dataclass(frozen=True, kw_only=True)
class PublishedPairDocument:
    """A printed difference: mean, standard deviation, t and p."""

    mean: float
    deviation: float
    t: float
    p: float


@dataclass(frozen=True, kw_only=True)
class MeasuredPairDocument:
    """The same for the run's blocks; t and p are null if all differences are equal."""

    mean: float
    deviation: float
    pairs: int
    t: float | None
    p: float | None
    unit: str
    verdict: Verdict | None


@dataclass(frozen=True, kw_only=True)
class PairDocument:
    """A paired difference with its t-test, as published and as measured."""

    table: str
    first: str
    second: str
    published: PublishedPairDocument
    measured: MeasuredPairDocument | None
    agreement: Agreement
    size: Size
    """Where the published mean difference lies."""
    why: str


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class ReplicationDocument:
    """The document of ``weighbridge replicate --json``."""

    version: Literal[2]
    study: str
    source: str
    run: str
    trusted: bool | None
    counts: Mapping[Direction, int]
    summary: Mapping[str, str]
    rows: tuple[ReplicationRow, ...]
    spreads: tuple[SpreadRowDocument, ...]
    pairs: tuple[PairDocument, ...]
    oddities: tuple[str, ...]


def replication_json(replication: Replication) -> dict[str, Any]:
    """Return the document of ``replicate --json``, as in docs/reference/json.md."""
    return document_json(ReplicationDocument(
        version=VERSION,
        study=replication.study.study,
        source=replication.study.source,
        run=replication.analysis.run_id,
        trusted=replication.analysis.trust.trusted,
        counts=replication.counts,
        summary=dict(replication.summary),
        rows=tuple(_row(replication, table.source, row) for table in replication.tables for row in table.rows),
        spreads=tuple(
            _spread(replication, each.source.title, row) for each in replication.spreads for row in each.rows
        ),
        pairs=tuple(_pair(each.source.title, row) for each in replication.pairs for row in each.rows),
        oddities=tuple(replication.study.oddities),
    ))  # fmt: skip


def _pair(title: str, row: PairRow) -> PairDocument:
    printed, test = row.published, row.measured
    measured = None
    if test is not None:
        verdict = row.judged.verdict if row.judged else None
        measured = MeasuredPairDocument(
            mean=test.mean, deviation=test.deviation, pairs=test.pairs, t=test.t, p=test.p, unit=row.unit,
            verdict=verdict,
        )  # fmt: skip
    return PairDocument(
        table=title, first=printed.first, second=printed.second,
        published=PublishedPairDocument(mean=printed.mean, deviation=printed.deviation, t=printed.t, p=printed.p),
        measured=measured, agreement=row.verdict, size=row.size, why=row.reason,
    )  # fmt: skip


def _spread(replication: Replication, title: str, row: SpreadRow) -> SpreadRowDocument:
    printed, other = row.published, row.measured
    measured = None
    if other is not None:
        low, high = other.limits or (None, None)
        measured = MeasuredSpreadDocument(
            **within(replication.analysis, printed.environment), mean=other.mean, deviation=other.deviation,
            variation=other.variation, variation_low=low, variation_high=high, runs=other.runs, unit=row.unit,
        )  # fmt: skip
    published = PublishedSpreadDocument(
        mean=printed.mean, deviation=printed.deviation, variation=printed.variation, derived=tuple(printed.derived)
    )
    return SpreadRowDocument(
        table=title, published_as=printed.published_as, environment=printed.environment,
        published=published, measured=measured, size=row.size, why=row.reason,
    )  # fmt: skip


def _row(replication: Replication, compared: Compared, row: ComparedRow) -> ReplicationRow:
    published, other = row.published, row.measured
    cost = other.cost if other else None
    measured = None
    if other is not None and cost is not None:
        measured = MeasuredComparison(
            **within(replication.analysis, published.environment),
            **_numbers(cost.interval if cost.blocks > 1 else None, cost.typical), verdict=other.verdict,
            scale=cost.scale, unit=row.unit, blocks=cost.blocks, exploratory=cost.exploratory, apart=row.outside,
            comparable_in_size=not row.emulated, hidden=hidden_by(other.hidden),
        )  # fmt: skip
    return ReplicationRow(
        table=compared.title, environment=published.environment,
        against=published.against or replication.analysis.baseline, level=published.level,
        scale=compared.scale, unit=compared.shown_unit,
        baseline_value=published.baseline, value=published.value,
        published=PublishedComparison(
            **_numbers(published.interval, published.effect), verdict=published.proof
        ),
        measured=measured, direction=row.verdict, size=row.size, why=row.reason,
    )  # fmt: skip


def _numbers(interval: statistics.Interval | None, estimate: float = 0.0) -> dict[str, Any]:
    if interval is None:
        return {"estimate": estimate, "low": None, "high": None}
    return {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
