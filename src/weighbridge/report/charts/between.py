"""Several runs in one chart: each cost in every run, and by what it changed."""

from collections.abc import Mapping, Sequence
from typing import Any

from weighbridge.analysis.between_runs import MetricChanges, RunPair, RunsCompared
from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.report.charts.base import (
    BASELINE,
    WIDE,
    Canvas,
    Chart,
    MarkStyle,
    colour_of,
    environment_axis,
    interval_chart,
    layer,
    nominal,
    number_axis,
    shape_of,
    styles_in_turn,
    title_axis,
)
from weighbridge.report.charts.costs import axis_numbers, cost_axis_title, cost_limits, kept_inside
from weighbridge.report.document import plain_text
from weighbridge.report.text.between_runs import change_amount, change_verdict, run_letter
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.metric_names import difference_unit_of, metric_title
from weighbridge.report.text.verdicts import comparison_verdict, cost_text

RUN_PX = 16
"""Height of a run within the row of an environment."""
CHANGES_CAPTION = (
    "Change of each primary metric's cost with its 95% interval; right is worse. Grey: both noise floors, or the "
    "allowance between two sessions."
)
"""The caption of `changes_of_pair`."""
TOOLTIP = [nominal("run"), nominal("environment"), nominal("typical"), nominal("verdict")]


def run_styles(comparison: RunsCompared) -> dict[str, MarkStyle]:
    """Give each run its colour and mark by its letter, the same in every chart."""
    return styles_in_turn([run_letter(number) for number in range(len(comparison.runs))])


def costs_of_runs(reports: Mapping[str, MetricReport]) -> Chart | None:
    """Give the costs of every environment on one metric in all runs; None where none has a cost.

    ``reports``: the metric in each run, by the run's letter. On one scale: ratios where there are any.
    """
    rows = [(letter, report, row) for letter, report in reports.items() for row in report.comparisons]
    scale = "ratio" if any(row.cost is not None and row.cost.scale == "ratio" for _, _, row in rows) else "difference"
    shown = difference_unit_of([row for *_, row in rows], rows[0][1].unit) if rows else ("", 1.0)
    drawn = [
        (letter, report, row, numbers)
        for letter, report, row in rows
        if (numbers := axis_numbers(row, scale, shown[1])) is not None
    ]
    if not drawn:
        return None
    limits = cost_limits([numbers for *_, numbers in drawn], 1.0 if scale == "ratio" else 1e-9)
    points = [_point(letter, report, row, numbers, limits) for letter, report, row, numbers in drawn]
    letters = list(reports)
    title = cost_axis_title(scale, shown[0])
    axes = number_axis(limits, title), environment_axis([row.environment for _, _, row, _ in drawn])
    encoded = {
        "y": axes[1].encoding("environment"),
        "yOffset": nominal("run", sort=letters, scale={"paddingOuter": 0.5}),
        "color": colour_of("run", styles_in_turn(letters)),
    }
    shape = shape_of("run", styles_in_turn(letters))
    row_px = RUN_PX * len(letters) + 8
    return interval_chart(Canvas(), axes, points, encoded, TOOLTIP, row_px=row_px, size=75, shape=shape)


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
    intervals = [(c.penalty.estimate, c.penalty.low, c.penalty.high) for _, _, c in drawn]
    limits = cost_limits(intervals, 1.0)
    points = [
        {
            "environment": display_name(row.environment), "metric": metric_title(metric.before),
            "cost": kept_inside(numbers[0], limits), "low": kept_inside(numbers[1], limits),
            "high": kept_inside(numbers[2], limits), "typical": plain_text([change_amount(row, metric.before.unit)]),
            "verdict": change_verdict(row), "run": "",
        }
        for (metric, row, _), numbers in zip(drawn, intervals, strict=True)
    ]  # fmt: skip
    titles = list(dict.fromkeys(metric_title(metric.before) for metric, _, _ in drawn))
    names = list(dict.fromkeys(display_name(row.environment) for _, row, _ in drawn))
    axes = number_axis(limits, "change of the cost, % (right of 0 is worse)", WIDE), title_axis(titles)
    x, y, canvas = axes[0].encoding("cost"), axes[1].encoding("metric"), Canvas()
    offset = nominal("environment", sort=names, scale={"paddingOuter": 0.6})
    encoded = {"y": y, "yOffset": offset, "color": colour_of("environment", styles_in_turn(names))}
    compared = [metric for metric in pair.headlines if metric_title(metric.before) in titles]
    noise = canvas.rows([band for metric in compared if (band := _noise(metric, limits)) is not None])
    quiet = layer(noise, "rect", {"color": BASELINE, "opacity": 0.2}, x=x, x2={"field": "end"}, y=y)
    tooltip, row_px = [nominal("environment"), nominal("typical"), nominal("verdict")], 18 * len(names) + 14
    shape = shape_of("environment", styles_in_turn(names))
    return interval_chart(canvas, axes, points, encoded, tooltip, row_px=row_px, under=[quiet], shape=shape)


def environment_styles(pair: RunPair) -> dict[str, MarkStyle]:
    """Give the colours and marks of the environments of `changes_of_pair`."""
    names = dict.fromkeys(
        display_name(row.environment)
        for metric in pair.headlines
        for row in metric.rows
        if not row.aa and not row.few and row.change is not None and row.change.scale == "ratio"
    )
    return styles_in_turn(names)


def _point(
    letter: str, report: MetricReport, row: Comparison, numbers: Sequence[float], limits: tuple[float, float]
) -> dict[str, Any]:
    inside = [kept_inside(value, limits) for value in numbers]
    return {
        "run": letter, "environment": display_name(row.environment), "cost": inside[0], "low": inside[1],
        "high": inside[2], "typical": cost_text(row, report.unit), "verdict": comparison_verdict(row),
    }  # fmt: skip


def _noise(metric: MetricChanges, limits: tuple[float, float]) -> dict[str, Any] | None:
    """Return the noise floor on the axis of changes: a ratio's floor both ways, as a penalty."""
    changes = [row.change for row in metric.rows if row.change is not None and row.change.scale == "ratio"]
    if not changes or changes[0].floor is None:
        return None
    floor = max(changes[0].floor, changes[0].allowance)
    near, far = 100 * floor, 100 * (1 - 1 / (1 + floor))
    low, high = (-near, far) if metric.before.better == "higher" else (-far, near)
    return {"metric": metric_title(metric.before), "cost": kept_inside(low, limits), "end": kept_inside(high, limits)}
