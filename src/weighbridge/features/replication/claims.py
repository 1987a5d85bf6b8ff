"""The claims of a published study next to the values of a run: one row each, as a document, as LaTeX and as CSV."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from weighbridge.analysis.run_result import finite
from weighbridge.features.replication.comparison import (
    DIRECTIONS,
    SIGN_ONLY,
    SIZES,
    ComparedRow,
    PairRow,
    Replication,
    SpreadRow,
)
from weighbridge.features.replication.published import Compared, PairTable, SpreadTable
from weighbridge.features.replication.words import (
    direction_words,
    measured_text,
    not_measured,
    outcome_sentence,
    percent,
    published_text,
    variation_text,
)
from weighbridge.report import document as doc
from weighbridge.report.document import Column, Tone, say
from weighbridge.report.export.csv import csv_text
from weighbridge.report.latex import booktabs
from weighbridge.report.text.environments import names_of, use_display_names
from weighbridge.report.text.formatting import difference_interval, level, quantity
from weighbridge.statistics import Interval

COLUMNS = {
    "table": str, "claim": str, "kind": str, "scale": str, "unit": str,
    "published": float, "published_low": float, "published_high": float,
    "measured": float, "measured_low": float, "measured_high": float, "measured_scale": str, "measured_unit": str,
    "rounds": int, "size": str, "direction": str, "why": str, "study": str, "run": str,
}  # fmt: skip
"""The columns of the CSV with the types of their values."""


@dataclass(frozen=True, slots=True)
class PublishedClaim:
    """One published value and its measured counterpart. ``measured`` is empty without a counterpart."""

    table: str
    row: ComparedRow | PairRow | SpreadRow
    published: str
    measured: str
    direction: str
    values: Mapping[str, object]
    """The claim's own columns of the CSV."""

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the claim as a row: claim, published, measured, size, direction."""
        if not self.measured:
            return self.row.name, self.published, "not measured", "", ""
        return self.row.name, self.published, self.measured, self.row.size, self.direction


def claims(replication: Replication) -> Iterator[PublishedClaim]:
    """Yield every claim of the published study, in the order of its tables."""
    for table in replication.tables:
        yield from (_comparison(table.source, row) for row in table.rows)
    for pairs in replication.pairs:
        yield from (_difference(pairs.source, row, replication.analysis.confidence) for row in pairs.rows)
    for spreads in replication.spreads:
        yield from (_variation(spreads.source, row) for row in spreads.rows)


def claims_document(replication: Replication) -> doc.Document:
    """Return the document with all claims and the legends of their columns."""
    study, analysis = replication.study, replication.analysis
    with use_display_names(names_of(analysis)):
        blocks: list[doc.Block] = [say(outcome_sentence(replication), tone=Tone.STRONG)]
        for title, group in _groups(replication):
            columns = tuple(map(Column, _heads(replication, group)))
            rows = tuple(tuple(map(say, each.cells)) for each in group if each.measured)
            blocks += [doc.Heading(title), *([doc.Table(columns, rows)] if rows else [])]
            if absent := not_measured(each.row for each in group):
                blocks.append(doc.Listing(tuple(say(each, tone=Tone.DIM) for each in absent)))
        for title, lines in _legends(replication):
            blocks += [doc.Heading(title), doc.Listing(tuple(map(say, lines)))]
    title = f"{study.study}: claims"
    return doc.Document(f"{study.study} · run {analysis.run_id}", title, title, tuple(blocks))


def claims_latex(replication: Replication) -> str:
    """Return all claims as a booktabs table, with the source and the legends as comments above it."""
    analysis = replication.analysis
    with use_display_names(names_of(analysis)):
        groups = [(title, [each.cells for each in group]) for title, group in _groups(replication)]
        comments = [
            f"Published: {replication.study.source}. Measured: run {analysis.run_id}",
            *(line for _, lines in _legends(replication) for line in lines),
        ]
        return booktabs(_heads(replication, [*claims(replication)]), "lllll", groups, comments)


def claims_csv(replication: Replication) -> str:
    """Return all claims as CSV, with the columns `COLUMNS`."""
    about = {"study": replication.study.study, "run": replication.analysis.run_id}
    with use_display_names(names_of(replication.analysis)):
        rows = [
            {"table": each.table, "claim": each.row.name, "size": each.row.size, "direction": each.row.verdict,
             "why": each.row.reason or None, **each.values, **about}
            for each in claims(replication)
        ]  # fmt: skip
    return csv_text(COLUMNS, rows)


def _heads(replication: Replication, rows: Iterable[PublishedClaim]) -> tuple[str, ...]:
    limits = any(each.values.get("published_low") is not None for each in rows)
    measured = f"measured [{level(replication.analysis.confidence)}]"
    return "claim", "published [95%]" if limits else "published", measured, "size", "direction"


def _legends(replication: Replication) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the title and the lines of each legend. Paired differences and spreads have no such directions."""
    yield "Sizes", [f"{size}: {what}" for size, what in SIZES.items()]
    if replication.tables:
        yield (
            "Directions",
            [
                *(f"{direction}: {what}" for direction, what in DIRECTIONS.items()),
                f"{SIGN_ONLY}: the published values have no spread, so only their signs are compared",
                f"Ratios are to {replication.study.baseline} or to the environment after the slash: 1 means no cost.",
                "Verdicts are corrected for all comparisons, so an interval without 1 can be inconclusive.",
            ],
        )


def _groups(replication: Replication) -> Iterator[tuple[str, Sequence[PublishedClaim]]]:
    for title, group in groupby(claims(replication), attrgetter("table")):
        yield title, [*group]


def _comparison(table: Compared, row: ComparedRow) -> PublishedClaim:
    published, measured = row.published, row.measured
    cost = measured.cost if measured is not None else None
    values: dict[str, object] = {
        "kind": "comparison", "scale": table.scale, "unit": _unit(table.scale, table.shown_unit),
        **_numbers("published", published.effect, _limits(published.interval)),
    }  # fmt: skip
    if cost is not None:
        limits = (cost.low, cost.high) if cost.blocks > 1 else None
        values |= {
            "rounds": cost.blocks, "measured_scale": cost.scale, "measured_unit": _unit(cost.scale, row.unit),
            **_numbers("measured", cost.typical, limits),
        }  # fmt: skip
    direction = "hidden" if row.verdict == "hidden" else direction_words(row)
    text = measured_text(row) if cost is not None else ""
    return PublishedClaim(table.title, row, published_text(published), text, direction, values)


def _difference(table: PairTable, row: PairRow, confidence: float) -> PublishedClaim:
    values: dict[str, object] = {
        "kind": "difference", "scale": "difference", "unit": table.unit,
        **_numbers("published", row.published.mean, None),
    }  # fmt: skip
    text = ""
    if row.measured is not None:
        mean = row.measured.interval(confidence)
        text = difference_interval(mean, row.unit)
        values |= {
            "rounds": row.measured.pairs, "measured_scale": "difference", "measured_unit": row.unit,
            **_numbers("measured", mean.estimate, _limits(mean)),
        }  # fmt: skip
    return PublishedClaim(table.title, row, quantity(row.published.mean, table.unit), text, row.verdict, values)


def _variation(table: SpreadTable, row: SpreadRow) -> PublishedClaim:
    values: dict[str, object] = {
        "kind": "coefficient of variation",
        "scale": "ratio",
        **_numbers("published", row.published.variation, None),
    }
    text = ""
    if row.measured is not None:
        text = variation_text(row.measured)
        values |= {
            "rounds": row.measured.runs, "measured_scale": "ratio",
            **_numbers("measured", row.measured.variation, row.measured.limits),
        }  # fmt: skip
    return PublishedClaim(table.title, row, percent(row.published.variation), text, "", values)


def _unit(scale: str, unit: str) -> str | None:
    return None if scale == "ratio" else unit


def _limits(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (interval.low, interval.high)


def _numbers(name: str, estimate: float | None, limits: Iterable[float] | None) -> dict[str, float | None]:
    low, high = (None, None) if limits is None else map(finite, limits)
    return {name: finite(estimate), f"{name}_low": low, f"{name}_high": high}
