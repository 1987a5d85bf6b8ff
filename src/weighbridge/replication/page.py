"""The page of a replication: tables of published and measured figures, and a chart for each table."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighbridge.analysis.results import Analysis
from weighbridge.model.level import level_label
from weighbridge.replication.comparison import (
    DIRECTIONS,
    ComparedRow,
    ComparedTable,
    Direction,
    Pairs,
    Replication,
    Spreads,
)
from weighbridge.replication.words import (
    PAIR_COLUMNS,
    SPREAD_COLUMNS,
    better_words,
    direction_words,
    left_out,
    measured_text,
    outcome_sentence,
    pair_cells,
    parted,
    published_text,
    setup_rows,
    spread_cells,
    variant,
)
from weighbridge.report.charts.base import (
    Canvas,
    Chart,
    MarkStyle,
    colour_of,
    environment_axis,
    interval_chart,
    nominal,
    number_axis,
    shape_of,
)
from weighbridge.report.page import HALF_PX, ChartPlace, Page, PageCharts, write_page
from weighbridge.report.text.environments import names_of, use_display_names
from weighbridge.report.text.formatting import plain, quantity, shared_unit, unit_as
from weighbridge.report.text.summary import exploratory_sentence
from weighbridge.report.text.trust import trust_sentence
from weighbridge.report.text.verdicts import verdict_word
from weighbridge.statistics import Cost
from weighbridge.store.run import RunStore

STYLES = {"published": MarkStyle("#D55E00", "diamond"), "measured": MarkStyle("#0072B2", "circle")}
"""Okabe and Ito's colours, which colour-blind people can distinguish."""
ROW_PX, TICKS = 40, 6
CLASSES = {"agrees": "equivalent", "disagrees": "failed"}


@dataclass(frozen=True, slots=True)
class RowCells:
    """One published comparison and its measured counterpart, in words."""

    name: str
    baseline: str
    value: str
    published: str
    proof: str
    measured: str
    medians: str
    """The measured medians."""
    verdict: str
    blocks: str
    apart: str
    words: str
    style: str


@dataclass(frozen=True, slots=True)
class TableSection:
    """One table of published ratios or differences."""

    id: str
    table: ComparedTable
    chart: ChartPlace
    rows: Sequence[RowCells]
    absent: Sequence[RowCells]
    """The rows without a value in this run, if other rows have one."""
    better: str


@dataclass(frozen=True, slots=True)
class CellsSection:
    """One table of published pairs or spreads, as cells."""

    title: str
    note: str
    rows: Sequence[Sequence[str]]
    measured: bool
    """Whether the run has a value for any of the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationPage(Page):
    """The page of a replication."""

    template = "replication.html.j2"
    replication: Replication
    sentence: str
    analysis: Analysis
    tables: Sequence[TableSection]
    pairs: Sequence[CellsSection]
    pair_columns: Sequence[str] = PAIR_COLUMNS
    spreads: Sequence[CellsSection]
    spread_columns: Sequence[str] = SPREAD_COLUMNS
    styles: Mapping[str, MarkStyle]
    setup: Sequence[tuple[str, str, str]]
    variant: str
    directions: Mapping[Direction, str]
    left_out: Sequence[tuple[str, str]]
    trust: str
    exploratory: str


def write_replication(replication: Replication, store: RunStore, path: Path) -> Path:
    """Write the page as one offline file and return its path. Raises OSError."""
    charts, analysis = PageCharts(), replication.analysis
    page = ReplicationPage(
        title=f"{replication.study.study}, published and measured",
        charts=charts,
        replication=replication,
        sentence=outcome_sentence(replication),
        analysis=analysis,
        tables=[
            TableSection(
                id=f"t{number}",
                table=table,
                chart=charts.place(chart(table, everywhere=replication.all_emulated), static_px=HALF_PX),
                rows=_rows(table, parted(table)[0], everywhere=replication.all_emulated),
                absent=_rows(table, parted(table)[1], everywhere=replication.all_emulated),
                better=better_words(replication.study, table.source),
            )
            for number, table in enumerate(replication.tables, 1)
        ],
        pairs=[_section(each, pair_cells(each)) for each in replication.pairs],
        spreads=[_section(each, spread_cells(each)) for each in replication.spreads],
        styles=STYLES,
        setup=setup_rows(replication.study, store, analysis),
        variant=variant(store),
        directions=DIRECTIONS,
        left_out=left_out(replication.study),
        trust=trust_sentence(analysis),
        exploratory=exploratory_sentence(analysis),
    )
    with use_display_names(names_of(analysis)):
        return write_page(page, path, store.directory)


def _section(table: Pairs | Spreads, cells: Sequence[Sequence[str]]) -> CellsSection:
    source = table.source
    return CellsSection(source.title, source.note, cells, any(row.measured is not None for row in table.rows))


def _rows(table: ComparedTable, rows: Sequence[ComparedRow], *, everywhere: bool) -> list[RowCells]:
    unit = table.source.shown_unit
    return [
        RowCells(
            name=row.name,
            baseline=_value(row.published.baseline, unit),
            value=_value(row.published.value, unit),
            published=published_text(row.published),
            proof=row.published.proof,
            measured=measured_text(row),
            medians=_medians(row, unit),
            verdict=verdict_word(row.measured.verdict) if row.measured else "",
            blocks=str(row.measured.blocks) if row.measured else "–",
            apart="published figure outside" if row.apart else "",
            words=direction_words(row, everywhere=everywhere),
            style=CLASSES.get(row.verdict, "soft"),
        )
        for row in rows
    ]


def _value(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{plain(value)} {unit}"


def _medians(row: ComparedRow, shown: str) -> str:
    if row.measured is None:
        return "–"
    values = (row.measured.value, row.measured.baseline_value)
    unit = unit_as(shown, row.unit) or shared_unit(values, row.unit)
    return " / ".join(quantity(each, row.unit, unit) for each in values)


# -- the chart of a table --------------------------------------------------------------------------


def _points(table: ComparedTable, *, everywhere: bool) -> list[dict[str, Any]]:
    """Return both comparisons of every row for the chart, on the table's own scale; differences in one unit."""
    scale, points = table.source.scale, []
    alone = len({row.published.environment for row in table.rows}) == 1  # then its level is enough
    for row in parted(table)[0]:
        published, cost = row.published, row.measured.cost if row.measured else None
        numbers = published.interval
        low, high = (numbers.low, numbers.high) if numbers else (published.effect, published.effect)
        level = level_label(row.published.level)
        name = level if alone and level else row.name
        shown = direction_words(row, everywhere=everywhere)
        points.append(_point(name, "published", (published.effect, low, high), published_text(published), shown))
        if cost is not None and cost.scale == scale and (scale == "ratio" or row.unit == table.source.shown_unit):
            points.append(_point(name, "measured", _limits_of(cost), measured_text(row), shown))
    return [point for point in points if scale == "difference" or point["value"] > 0]


def _limits_of(cost: Cost) -> tuple[float, float, float]:
    return (cost.typical, cost.low, cost.high) if cost.blocks > 1 else (cost.typical,) * 3


def _point(name: str, source: str, numbers: tuple[float, float, float], text: str, direction: str) -> dict[str, Any]:
    value, low, high = numbers
    return {"environment": name, "source": source, "value": value, "low": low, "high": high, "shown": text,
            "direction": direction}  # fmt: skip


def chart(table: ComparedTable, *, everywhere: bool = False) -> Chart | None:
    """Return a chart of published and measured comparisons with their intervals; None if it would be empty.

    Very wide intervals extend beyond the chart.
    """
    points = _points(table, everywhere=everywhere)
    if not points:
        return None
    ratio = table.source.scale == "ratio"
    low, high = _limits([point["value"] for point in points], points, ratio=ratio)
    for point in points:
        point["low"], point["high"] = max(point["low"], low), min(point["high"], high)
    title = (
        "ratio to the baseline"
        if ratio
        else f"difference, {'points' if table.source.shown_unit == '%' else table.source.shown_unit}"
    )
    axes = (
        number_axis((low, high), title, TICKS, logarithmic=ratio),
        environment_axis([point["environment"] for point in points]),
    )
    encoded = {
        "y": axes[1].encoding("environment"),
        "yOffset": nominal("source", sort=list(STYLES), scale={"paddingOuter": 0.5}),
        "color": colour_of("source", STYLES),
    }
    tooltip = [nominal("environment"), nominal("source"), nominal("shown", title=title), nominal("direction")]
    return interval_chart(
        Canvas(), axes, points, encoded, tooltip, value="value", none=1.0 if ratio else 0.0, row_px=ROW_PX, size=75,
        shape=shape_of("source", STYLES),
    )  # fmt: skip


def _limits(values: list[float], points: list[dict[str, Any]], *, ratio: bool) -> tuple[float, float]:
    """Return the axis range: it includes every estimate and "no difference", but not all of very wide intervals."""
    turn, back = (math.log, math.exp) if ratio else (float, float)
    core = [turn(value) for value in values] + [0.0]
    span = max(max(core) - min(core), math.log1p(0.02) if ratio else 1e-9)
    least, most = min(core) - span, max(core) + span
    lows = [turn(point["low"]) for point in points if point["low"] > 0 or not ratio]
    highs = [turn(point["high"]) for point in points if math.isfinite(point["high"])]
    low, high = max(least, min([*core, *lows])), min(most, max([*core, *highs]))
    room = 0.06 * (high - low)
    return back(low - room), back(high + room)
