"""One cost over the runs of a folder, with what changed in between."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.features.gate.compare_text import GAIN, changed_in_short, series_names, significant_changes, tone_of
from weighbridge.features.gate.past_runs import History
from weighbridge.model.address import MetricId
from weighbridge.report.charts.base import (
    BAND,
    BASELINE,
    PALETTE,
    Canvas,
    Chart,
    MarkStyle,
    colour_of,
    layer,
    listed,
    nominal,
    quantitative,
    shape_of,
    short,
)
from weighbridge.report.charts.costs import (
    cost_axis_title,
    cost_limits,
    interval_inside,
    kept_inside,
    noise_on_axis,
    on_one_scale,
)
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.environments import names_of, reference_words
from weighbridge.report.text.metric_names import difference_unit_of, metric_title
from weighbridge.report.text.verdicts import comparison_verdict, cost_text

HEIGHT_PX = 260
LABELS = 6
"""Runs whose dates are written on the axis, at most."""
VERDICTS: dict[str, tuple[str, MarkStyle]] = {
    "different": ("significant cost", MarkStyle(PALETTE[1], "diamond")),
    GAIN: ("significant gain", MarkStyle(PALETTE[0], "triangle-down")),
    "equivalent": ("within the margin", MarkStyle(BAND, "circle")),
    "inconclusive": ("undecided", MarkStyle(BASELINE, "square")),
    "hidden": ("hidden by a bottleneck", MarkStyle(PALETTE[3], "cross")),
}
"""The words and the mark of each verdict, by its tone."""
SIGNIFICANT = "significant change", MarkStyle(PALETTE[6], "bar")
"""The words and the mark of a significant change."""


@dataclass(frozen=True, slots=True)
class CostPoint:
    """One cost in one run."""

    number: int
    """The number of the run, from 1."""
    run: str
    when: str
    environment: str
    """The display name of the environment: its hypervisors can differ between runs."""
    report: MetricReport
    row: Comparison
    changed: str
    """The facts and settings that changed before the run, in short; empty if none did."""
    significant: str
    """The sentence of a significant change of the cost since an earlier run; empty if there is none."""

    @property
    def tone(self) -> str:
        """Return the tone of the verdict."""
        return tone_of(self.row.verdict, self.row.cost)


@dataclass(frozen=True, slots=True)
class CostSeries:
    """One metric of one study over the runs."""

    study: str
    against: str
    """What its costs are against, for people."""
    title: str
    unit: str
    points: tuple[CostPoint, ...]

    @property
    def environments(self) -> tuple[str, ...]:
        """The display names of the environments, in the order of their first appearance."""
        return tuple(dict.fromkeys(each.environment for each in self.points))

    def of(self, environment: str) -> list[CostPoint]:
        """Return the costs of one environment."""
        return [each for each in self.points if each.environment == environment]


def series_of(run_history: History) -> list[CostSeries]:
    """Return each headline metric of each series of runs, in the order of their first appearance."""
    by: dict[tuple[int, MetricId, str], list[CostPoint]] = {}
    against: dict[int, str] = {}
    for series, point in _points(run_history):
        against.setdefault(series, reference_words(run_history.runs[point.number - 1].run.analysis))
        by.setdefault((series, point.report.metric_id, point.report.unit), []).append(point)
    names = series_names(run_history)
    return [
        CostSeries(names[series], against[series], metric_title(points[0].report), unit, tuple(points))
        for (series, _, unit), points in by.items()
    ]


def _points(run_history: History) -> Iterator[tuple[int, CostPoint]]:
    """Yield the number of a series and a point in it."""
    significant = {
        (number, metric, environment): words
        for number, metric, environment, words, _ in significant_changes(run_history)
    }
    for number, past in enumerate(run_history.runs, 1):
        names, when, changed = names_of(past.run.analysis), date_words(past.run.created), changed_in_short(past)
        for report, row in past.costs:
            name = names.get(row.environment, row.environment)
            change = significant.get((number, report.metric_id, row.environment), "")
            yield past.series, CostPoint(number, past.run.name, when, name, report, row, changed, change)


def legend(points: Sequence[CostPoint]) -> tuple[tuple[str, MarkStyle], ...]:
    """Return the words and marks in the chart of one cost."""
    verdicts = {each.tone for each in points if each.row.cost is not None and not each.row.few}
    shown = [each for verdict, each in VERDICTS.items() if verdict in verdicts]
    return (*shown, SIGNIFICANT) if any(each.significant for each in points) else tuple(shown)


def over_runs(series: CostSeries, environment: str) -> Chart | None:
    """Return one cost over the runs with its intervals, verdicts and noise floors; None without any cost.

    The runs are evenly spaced, whatever the time between them. A dashed line marks changed facts or settings before
    a run. A thick line marks a significant change.
    """
    points = series.of(environment)
    rows = [each.row for each in points]
    scale, unit, numbers = on_one_scale(rows, series.unit)
    factor = difference_unit_of(rows, series.unit)[1]
    drawn = [(point, each) for point, each in zip(points, numbers, strict=True) if each is not None]
    if not drawn:
        return None
    noises = [(point, noise_on_axis(point.report, scale, factor)) for point, _ in drawn]
    least = max(1.0 if scale == "ratio" else 1e-9, *(abs(end) for _, noise in noises for end in noise or (0.0,)))
    limits = cost_limits([each for _, each in drawn], least)
    canvas, x = Canvas(), _runs_axis(series)
    title = cost_axis_title(scale, unit, "up is worse, down is better")
    y = quantitative("cost", scale={"domain": list(limits), "nice": False}, title=title)
    interval = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    shown = dict(legend(points))
    colour, shape = colour_of("shown", shown), shape_of("shown", shown)
    tooltip = [nominal(each) for each in ("run", "when", "cost", "verdict")]
    table = canvas.rows([_row(point, each, limits) for point, each in drawn])
    zero = canvas.rows([{"at": x["scale"]["domain"][0], "end": x["scale"]["domain"][1], "estimate": 0}])
    quiet = canvas.rows([
        {"at": point.number - 0.5, "end": point.number + 0.5,
         "low": short(kept_inside(noise[0], limits)), "high": short(kept_inside(noise[1], limits))}
        for point, noise in noises if noise is not None
    ])  # fmt: skip
    estimate, end = {"x": x, "y": {**y, "field": "estimate"}}, {"x2": {"field": "end"}}
    layers = [
        layer(quiet, "rect", {"color": BASELINE, "opacity": 0.2}, **interval, **end),
        _rules(canvas, points, "significant", {"color": SIGNIFICANT[1].colour, "strokeWidth": 4, "opacity": 0.6}, x),
        _rules(canvas, points, "changed", {"color": BASELINE, "strokeDash": [2, 3]}, x),
        layer(zero, "rule", {"color": BASELINE, "strokeDash": [4, 3]}, **estimate, **end),
        layer(table, "line", {"color": BASELINE, "strokeWidth": 1, "opacity": 0.6}, **estimate),
        layer(table, "rule", {"strokeWidth": 2}, **interval, color=colour),
        layer(
            table, "point", {"filled": True, "size": 60, "opacity": 1}, **estimate, color=colour, shape=shape,
            tooltip=tooltip,
        ),
    ]  # fmt: skip
    return canvas.layered(layers, HEIGHT_PX)


def _row(point: CostPoint, numbers: Sequence[float], limits: tuple[float, float]) -> dict[str, Any]:
    ends = {key: short(value) for key, value in interval_inside(numbers, limits).items()}
    return {
        "at": point.number, "estimate": ends.pop("cost"), **ends, "shown": VERDICTS[point.tone][0],
        "run": point.run, "when": point.when, "cost": cost_text(point.row, point.report.unit),
        "verdict": comparison_verdict(point.row),
    }  # fmt: skip


def _rules(
    canvas: Canvas, points: Sequence[CostPoint], words: str, style: dict[str, Any], x: dict[str, Any]
) -> dict[str, Any]:
    """Return a line before each run with some words, which it shows on demand."""
    before = [{"at": each.number - 0.5, words: getattr(each, words)} for each in points if getattr(each, words)]
    return layer(canvas.rows(before), "rule", style, x=x, tooltip=[nominal(words)])


def _runs_axis(series: CostSeries) -> dict[str, Any]:
    """Return the axis of runs: with at most `LABELS` dates, and a mark at a run before which something changed."""
    runs = {each.number: each for each in series.points}
    marked = {number for number, each in runs.items() if each.changed}
    every = max(1, -(-len(runs) // LABELS))
    regular = [number for place, number in enumerate(runs) if place % every == 0]
    places = sorted({*regular, *marked})
    if len(places) > 2 * LABELS:  # then the marks alone
        places = regular
    texts = [f"{runs[each].when[5:16]}{' ▲' if each in marked else ''}" for each in places]
    axis = {"values": [float(each) for each in places], "labelExpr": listed([float(each) for each in places], texts),
            "grid": False, "labelOverlap": True}  # fmt: skip
    domain = [min(runs) - 0.5, max(runs) + 0.5]
    return quantitative("at", scale={"domain": domain, "nice": False, "zero": False}, title=None, axis=axis)
