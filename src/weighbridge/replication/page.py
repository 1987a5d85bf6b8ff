"""The page of a replication: table by table the published figures beside the measured ones, and a chart of them."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weighbridge.model.level import level_label
from weighbridge.replication.comparison import DIRECTIONS, ComparedRow, ComparedTable, Replication
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
from weighbridge.report.charts.base import Canvas, Chart, colour_of, layer, nominal, quantitative, rule_at
from weighbridge.report.charts.labels import name_axis, row_px
from weighbridge.report.charts.static.scales import round_factors
from weighbridge.report.page import HALF_PX, place, render, write_page
from weighbridge.report.text.environments import displayed
from weighbridge.report.text.formatting import plain, quantity, shared_unit, unit_as
from weighbridge.report.text.summary import exploratory_sentence
from weighbridge.report.text.trust import trust_sentence
from weighbridge.statistics import Cost
from weighbridge.store.run import RunStore

COLOURS = {"published": "#E69F00", "measured": "#0072B2"}
"""Okabe and Ito's, which colour-blind people tell apart."""
ROW_PX = 40
_TICKS = 6
CLASSES = {"agrees": "equivalent", "disagrees": "failed"}


def write_replication(found: Replication, store: RunStore, path: Path) -> Path:
    """Write the page as one offline file and give its path. Raises OSError where it cannot be written."""
    specs: dict[str, str] = {}
    analysis = found.analysis
    page = render(
        "replication.html.j2",
        specs,
        found=found,
        sentence=outcome_sentence(found),
        analysis=displayed(analysis),
        tables=[
            {
                "id": f"t{number}",
                "table": table,
                "chart": place(specs, chart(table), static_px=HALF_PX),
                "rows": _rows(table, parted(table)[0]),
                "absent": _rows(table, parted(table)[1]),
                "better": better_words(found.study, table.source),
            }
            for number, table in enumerate(found.tables, 1)
        ],
        pairs=[{"table": each.source, "rows": pair_cells(each)} for each in found.pairs],
        pair_columns=PAIR_COLUMNS,
        spreads=[{"table": each.source, "rows": spread_cells(each)} for each in found.spreads],
        colours=COLOURS,
        setup=setup_rows(found.study, store, analysis),
        spread_columns=SPREAD_COLUMNS,
        variant=variant(store),
        directions=DIRECTIONS,
        left_out=left_out(found.study),
        trust=trust_sentence(analysis),
        exploratory=exploratory_sentence(analysis),
    )
    write_page(page, path, store.directory)
    return path


def _rows(table: ComparedTable, rows: Sequence[ComparedRow]) -> list[dict[str, str]]:
    unit = table.source.shown_unit
    return [
        {
            "name": row.name,
            "baseline": _value(row.published.baseline, unit),
            "value": _value(row.published.value, unit),
            "published": published_text(row.published),
            "proof": row.published.proof,
            "measured": measured_text(row),
            "here": _medians(row, unit),
            "verdict": row.measured.verdict if row.measured else "",
            "blocks": str(row.measured.blocks) if row.measured else "–",
            "apart": "published figure outside" if row.apart else "",
            "words": direction_words(row),
            "style": CLASSES.get(row.verdict, "soft"),
        }
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


def _points(table: ComparedTable) -> list[dict[str, Any]]:
    """What is drawn: both comparisons of every row, on the table's own scale and, for differences, in one unit."""
    scale, points = table.source.scale, []
    alone = len({row.published.environment for row in table.rows}) == 1  # then its level is enough
    for row in parted(table)[0]:
        own, cost = row.published, row.measured.cost if row.measured else None
        numbers = own.interval
        low, high = (numbers.low, numbers.high) if numbers else (own.effect, own.effect)
        level = level_label(row.published.level)
        name = level if alone and level else row.name
        points.append(_point(row, name, "published", (own.effect, low, high), published_text(own)))
        if cost is not None and cost.scale == scale and (scale == "ratio" or row.unit == table.source.shown_unit):
            points.append(_point(row, name, "measured", _limits_of(cost), measured_text(row)))
    return [point for point in points if scale == "difference" or point["value"] > 0]


def _limits_of(cost: Cost) -> tuple[float, float, float]:
    """The typical cost with its limits; a single block has none."""
    return (cost.typical, cost.low, cost.high) if cost.blocks > 1 else (cost.typical,) * 3


def _point(
    row: ComparedRow, name: str, source: str, numbers: tuple[float, float, float], text: str
) -> dict[str, Any]:
    value, low, high = numbers
    return {"environment": name, "source": source, "value": value, "low": low, "high": high, "shown": text,
            "direction": direction_words(row)}  # fmt: skip


def chart(table: ComparedTable) -> Chart | None:
    """Published and measured comparisons of a table with their intervals; None where nothing can be drawn.

    Very wide intervals run out of the chart.
    """
    points = _points(table)
    if not points:
        return None
    ratio = table.source.scale == "ratio"
    low, high = _limits([point["value"] for point in points], points, ratio=ratio)
    for point in points:
        point["low"], point["high"] = max(point["low"], low), min(point["high"], high)
    none = 1.0 if ratio else 0.0
    title = (
        "ratio to the baseline"
        if ratio
        else f"difference, {'points' if table.source.shown_unit == '%' else table.source.shown_unit}"
    )
    scale = {"domain": [low, high], "nice": False, "type": "log" if ratio else "linear", "zero": False}
    values = round_factors(low, high, _TICKS) if ratio else []  # Vega's own are powers of ten, or one in two of these
    axis = {"axis": {"values": values, "tickCount": len(values), "labelOverlap": False}} if ratio else {}
    x = quantitative("value", scale=scale, title=title, **axis)
    names = list(dict.fromkeys(point["environment"] for point in points))
    shared = {
        "y": nominal("environment", sort=names, title=None, **name_axis(names)),
        "yOffset": nominal("source", sort=list(COLOURS), scale={"paddingOuter": 0.5}),
        "color": colour_of("source", COLOURS),
    }
    canvas = Canvas()
    drawn, zero = canvas.rows(points), rule_at(canvas.rows([{"value": none}]), x)
    lines = layer(drawn, "rule", {"strokeWidth": 2.5}, **shared, x={**x, "field": "low"}, x2={"field": "high"})
    shapes = nominal("source", scale={"domain": list(COLOURS), "range": ["diamond", "circle"]}, legend=None)
    told = [nominal("environment"), nominal("source"), nominal("shown", title=title), nominal("direction")]
    style = {"filled": True, "size": 75, "opacity": 1}
    dots = layer(drawn, "point", style, **shared, x=x, shape=shapes, tooltip=told)
    return canvas.layered([zero, lines, dots], row_px(ROW_PX, names) * len(names))


def _limits(values: list[float], points: list[dict[str, Any]], *, ratio: bool) -> tuple[float, float]:
    """The range of the axis: every estimate and "no difference" are inside, very wide intervals run out of it."""
    turn, back = (math.log, math.exp) if ratio else (float, float)
    core = [turn(value) for value in values] + [0.0]
    span = max(max(core) - min(core), math.log1p(0.02) if ratio else 1e-9)
    least, most = min(core) - span, max(core) + span
    lows = [turn(point["low"]) for point in points if point["low"] > 0 or not ratio]
    highs = [turn(point["high"]) for point in points if math.isfinite(point["high"])]
    low, high = max(least, min([*core, *lows])), min(most, max([*core, *highs]))
    room = 0.06 * (high - low)
    return back(low - room), back(high + room)
