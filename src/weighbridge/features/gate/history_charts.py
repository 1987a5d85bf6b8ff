"""A headline cost over the runs of a folder, a line for each environment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.features.gate.compare_text import changes_in_short, series_names
from weighbridge.features.gate.past_runs import History, PastRun
from weighbridge.model.address import MetricId
from weighbridge.report.charts.base import (
    BASELINE,
    Canvas,
    Chart,
    MarkStyle,
    colour_of,
    layer,
    listed,
    nominal,
    quantitative,
    shape_of,
    styles_in_turn,
)
from weighbridge.report.charts.costs import cost_axis_title, cost_limits, interval_inside, on_one_scale
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.environments import names_of
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.verdicts import comparison_verdict, cost_text

HEIGHT_PX = 260
LABELS = 6
"""Runs whose dates are written on the axis, at most."""


@dataclass(frozen=True, slots=True)
class CostSeries:
    """One metric of one study over the runs: which run (by its number, from 1), its report, the comparison."""

    study: str
    baseline: str
    title: str
    unit: str
    points: tuple[tuple[int, MetricReport, Comparison], ...]


def series_of(run_history: History) -> list[CostSeries]:
    """Return each headline metric of each series of runs, in the order of their first appearance."""
    by: dict[tuple[int, MetricId, str], list[tuple[int, MetricReport, Comparison]]] = {}
    for number, past in enumerate(run_history.runs, 1):
        for report, row in past.costs:
            key = past.series, report.metric_id, report.unit
            by.setdefault(key, []).append((number, report, row))
    names = series_names(run_history)
    return [
        CostSeries(
            names[key[0]], run_history.runs[points[0][0] - 1].run.analysis.baseline, metric_title(points[0][1]),
            key[-1], tuple(points),
        )
        for key, points in by.items()
    ]  # fmt: skip


def environment_styles(run_history: History) -> dict[str, MarkStyle]:
    """Return a colour and mark for each environment of the folder."""
    return styles_in_turn(dict.fromkeys(name_in_run(past, row) for past in run_history.runs for _, row in past.costs))


def name_in_run(past: PastRun, row: Comparison) -> str:
    """Return the display name of an environment in a run: its hypervisors can differ between runs."""
    return names_of(past.run.analysis).get(row.environment, row.environment)


def over_runs(run_history: History, series: CostSeries) -> Chart | None:
    """Return a metric's costs over the runs with their intervals; None without any cost.

    The runs are evenly spaced, whatever the time between them; a dashed line marks a run with changed facts.
    """
    scale, unit, every = on_one_scale([row for *_, row in series.points], series.unit)
    drawn = [
        (number, name_in_run(run_history.runs[number - 1], row), row, report, numbers)
        for (number, report, row), numbers in zip(series.points, every, strict=True)
        if numbers is not None
    ]
    if not drawn:
        return None
    limits = cost_limits([numbers for *_, numbers in drawn], 1.0 if scale == "ratio" else 1e-9)
    scheme = environment_styles(run_history)
    names = [name for name in scheme if name in {each[1] for each in drawn}]
    points = [
        {
            "run": number + _aside(names.index(name), len(names)), "environment": name,
            **interval_inside(numbers, limits), "typical": cost_text(row, report.unit),
            "verdict": comparison_verdict(row), "when": date_words(run_history.runs[number - 1].run.created),
            "name": run_history.runs[number - 1].run.name,
        }
        for number, name, row, report, numbers in drawn
    ]  # fmt: skip
    mine = sorted({number for number, *_ in series.points})
    canvas, x = Canvas(), _runs_axis(run_history, mine)
    title = cost_axis_title(scale, unit, "up is worse, down is better")
    y = quantitative("cost", scale={"domain": list(limits), "nice": False}, title=title)
    shown = {name: scheme[name] for name in names}
    colour, shape = colour_of("environment", shown), shape_of("environment", shown)
    table, across = canvas.rows(points), canvas.rows([{"cost": 0, "run": mine[0] - 0.5, "end": mine[-1] + 0.5}])
    zero = layer(across, "rule", {"color": BASELINE, "strokeDash": [4, 3]}, x=x, x2={"field": "end"}, y=y)
    tooltip = [nominal(each) for each in ("environment", "typical", "verdict", "when", "name")]
    marked = canvas.rows([{"run": number, "changed": words} for number, words in changes(run_history, mine)])
    dots = {"filled": True, "size": 60, "opacity": 1}
    layers = [
        layer(marked, "rule", {"color": BASELINE, "strokeDash": [2, 3]}, x=x, tooltip=[nominal("changed")]),
        zero,
        layer(table, "line", {"strokeWidth": 1.2, "opacity": 0.6}, x=x, y=y, color=colour),
        layer(table, "rule", {"strokeWidth": 2}, x=x, y={**y, "field": "low"}, y2={"field": "high"}, color=colour),
        layer(table, "point", dots, x=x, y=y, color=colour, shape=shape, tooltip=tooltip),
    ]
    return canvas.layered(layers, HEIGHT_PX)


def changes(run_history: History, numbers: Sequence[int]) -> list[tuple[int, str]]:
    """Return the runs before which facts changed, with what changed in short."""
    runs: Mapping[int, PastRun] = {number: run_history.runs[number - 1] for number in numbers}
    return [(number, changes_in_short(past.changed)) for number, past in runs.items() if past.changed]


def _runs_axis(run_history: History, mine: Sequence[int]) -> dict[str, Any]:
    """Return the axis of runs: with at most `LABELS` dates, and a mark at a run before which facts changed."""
    marked = {number for number, _ in changes(run_history, mine)}
    every = max(1, -(-len(mine) // LABELS))
    places = [number for place, number in enumerate(mine) if place % every == 0 or number in marked]
    if len(places) > 2 * LABELS:  # then the marks alone
        places = [number for place, number in enumerate(mine) if place % every == 0]
    texts = [f"{_day(run_history.runs[n - 1])}{' ▲' if n in marked else ''}" for n in places]
    axis = {"values": [float(n) for n in places], "labelExpr": listed([float(n) for n in places], texts),
            "grid": False, "labelOverlap": True}  # fmt: skip
    domain = [mine[0] - 0.5, mine[-1] + 0.5]
    return quantitative("run", scale={"domain": domain, "nice": False, "zero": False}, title=None, axis=axis)


def _day(past: PastRun) -> str:
    """Return a date such as ``11-25 02:10``."""
    return date_words(past.run.created)[5:16]


def _aside(number: int, of: int) -> float:
    """Return the distance of an environment's mark from its run, so that intervals do not cover each other."""
    return 0.0 if of < 2 else 0.4 * (number / (of - 1) - 0.5)
