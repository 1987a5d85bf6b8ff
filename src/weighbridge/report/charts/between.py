"""Several runs in one chart: each cost in every run, and by what it changed."""

from collections.abc import Mapping, Sequence
from typing import Any

from weighbridge.analysis.between_runs import MetricChanges, RunPair, RunsCompared
from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.report.charts.base import (
    BASELINE,
    PALETTE,
    Canvas,
    Chart,
    colour_of,
    layer,
    nominal,
    rule_at,
)
from weighbridge.report.charts.costs import axis_numbers, cost_axis, cost_limits, interval_axis, kept_inside
from weighbridge.report.charts.labels import TWO_LINES, name_axis, row_px
from weighbridge.report.text.between_runs import change_amount, change_verdict, run_letter
from weighbridge.report.text.metric_names import difference_unit_of, metric_title
from weighbridge.report.text.verdicts import comparison_verdict, cost_text

RUN_PX = 16
"""Height of a run within the row of an environment."""
SHAPES = ("circle", "diamond", "triangle-up", "cross", "triangle-down")
TOLD = [nominal("run"), nominal("environment"), nominal("typical"), nominal("verdict")]


def run_colours(found: RunsCompared) -> dict[str, str]:
    """Give each run its colour by its letter, the same in every chart."""
    return {run_letter(number): PALETTE[number % len(PALETTE)] for number in range(len(found.runs))}


def costs_of_runs(reports: Mapping[str, MetricReport]) -> Chart | None:
    """Give the costs of every environment on one metric in all runs; None where none has a cost.

    ``reports``: the metric in each run, by the run's letter. On one scale: ratios where there are any.
    """
    rows = [(letter, report, row) for letter, report in reports.items() for row in report.comparisons]
    ratio = any(row.cost is not None and row.cost.scale == "ratio" for _, _, row in rows)
    shown = difference_unit_of([row for *_, row in rows], rows[0][1].unit) if rows else ("", 1.0)
    drawn = [
        (letter, report, row, numbers)
        for letter, report, row in rows
        if (numbers := axis_numbers(row, "ratio" if ratio else "difference", shown[1])) is not None
    ]
    if not drawn:
        return None
    limits = cost_limits([numbers for *_, numbers in drawn], 1.0 if ratio else 1e-9)
    title = "cost, % (right of 0 is worse)" if ratio else f"difference, {difference_unit(shown[0])}"
    points = [_point(letter, report, row, numbers, limits) for letter, report, row, numbers in drawn]
    names = list(dict.fromkeys(row.environment for _, _, row, _ in drawn))
    letters = list(reports)
    x, canvas = cost_axis(limits, title), Canvas()
    scheme = {letter: PALETTE[number % len(PALETTE)] for number, letter in enumerate(letters)}
    shared = {
        "y": nominal("environment", sort=names, title=None, **name_axis(names)),
        "yOffset": nominal("run", sort=letters, scale={"paddingOuter": 0.5}),
        "color": colour_of("run", scheme),
    }
    shapes = [SHAPES[number % len(SHAPES)] for number in range(len(letters))]
    shape = nominal("run", scale={"domain": letters, "range": shapes}, legend=None)
    table, zero = canvas.rows(points), rule_at(canvas.rows([{"cost": 0}]), x)
    lines = layer(table, "rule", {"strokeWidth": 2.5}, **shared, **interval_axis(x))
    dots = layer(table, "point", {"filled": True, "size": 75, "opacity": 1}, **shared, x=x, shape=shape, tooltip=TOLD)
    height = row_px(RUN_PX * len(letters) + 8, names) * len(names)
    return canvas.layered([zero, lines, dots], height)


def changes_of_pair(pair: RunPair) -> Chart | None:
    """Give the changes of the headline costs from one run to another; None where none has a ratio.

    The grey band is both runs' noise floors together, or the session allowance where that is more.
    """
    drawn = [
        (metric, row, row.change)
        for metric in pair.headlines
        for row in metric.rows
        if not row.aa and not row.few and row.change is not None and row.change.scale == "ratio"
    ]
    if not drawn:
        return None
    numbers = [(c.worsening.estimate, c.worsening.low, c.worsening.high) for _, _, c in drawn]
    limits = cost_limits(numbers, 1.0)
    points = [
        {
            "environment": row.environment, "lines": _lines(metric), "cost": kept_inside(found[0], limits),
            "low": kept_inside(found[1], limits), "high": kept_inside(found[2], limits),
            "typical": change_amount(row, metric.before.unit), "verdict": change_verdict(row), "run": "",
        }
        for (metric, row, _), found in zip(drawn, numbers, strict=True)
    ]  # fmt: skip
    titles = list(dict.fromkeys(_lines(metric) for metric, _, _ in drawn))
    names = list(dict.fromkeys(row.environment for _, row, _ in drawn))
    x, canvas = cost_axis(limits, "change of the cost, % (right of 0 is worse)"), Canvas()
    axis = {"grid": True, "tickBand": "extent", "labelExpr": TWO_LINES}
    y = nominal("lines", sort=titles, title=None, axis=axis)
    scheme = {name: PALETTE[number % len(PALETTE)] for number, name in enumerate(names)}
    offset = nominal("environment", sort=names, scale={"paddingOuter": 0.6})
    shared = {"y": y, "yOffset": offset, "color": colour_of("environment", scheme)}
    noise = canvas.rows([band for metric in pair.headlines if (band := _noise(metric, limits)) is not None])
    quiet = layer(noise, "rect", {"color": BASELINE, "opacity": 0.2}, x=x, x2={"field": "end"}, y=y)
    table, zero = canvas.rows(points), rule_at(canvas.rows([{"cost": 0}]), x)
    lines = layer(table, "rule", {"strokeWidth": 2.5}, **shared, **interval_axis(x))
    told = [nominal("environment"), nominal("typical"), nominal("verdict")]
    dots = layer(table, "point", {"filled": True, "size": 60, "opacity": 1}, **shared, x=x, tooltip=told)
    return canvas.layered([quiet, zero, lines, dots], max(18 * len(names) + 14, 34) * len(titles))


def environment_colours(pair: RunPair) -> dict[str, str]:
    """Give the colours of the environments of `changes_of_pair`."""
    names = dict.fromkeys(
        row.environment
        for metric in pair.headlines
        for row in metric.rows
        if not row.aa and not row.few and row.change is not None and row.change.scale == "ratio"
    )
    return {name: PALETTE[number % len(PALETTE)] for number, name in enumerate(names)}


def _point(
    letter: str, report: MetricReport, row: Comparison, numbers: Sequence[float], limits: tuple[float, float]
) -> dict[str, Any]:
    inside = [kept_inside(value, limits) for value in numbers]
    return {
        "run": letter, "environment": row.environment, "cost": inside[0], "low": inside[1], "high": inside[2],
        "typical": cost_text(row, report.unit), "verdict": comparison_verdict(row),
    }  # fmt: skip


def _noise(metric: MetricChanges, limits: tuple[float, float]) -> dict[str, Any] | None:
    """What may be noise on the axis of changes: a ratio's floor both ways, as a worsening."""
    changes = [row.change for row in metric.rows if row.change is not None and row.change.scale == "ratio"]
    if not changes or changes[0].floor is None:
        return None
    floor = max(changes[0].floor, changes[0].allowance)
    near, far = 100 * floor, 100 * (1 - 1 / (1 + floor))
    low, high = (-near, far) if metric.before.better == "higher" else (-far, near)
    return {"lines": _lines(metric), "cost": kept_inside(low, limits), "end": kept_inside(high, limits)}


def _lines(metric: MetricChanges) -> str:
    """A metric's title in two lines, for a narrow axis."""
    return metric_title(metric.before).replace(" · ", "\n")
