"""Several runs in one chart: each cost in every run, and its change."""

from collections.abc import Mapping
from typing import Any

from weighbridge.analysis.results import MetricReport
from weighbridge.features.gate.between import CostShift
from weighbridge.features.gate.between_runs import ChangeRow, MetricChanges, RunPair, RunsCompared
from weighbridge.features.gate.compare_text import change_amount, change_verdict, run_letter
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
from weighbridge.report.charts.costs import cost_axis_title, cost_limits, interval_inside, kept_inside, on_one_scale
from weighbridge.report.document import plain_text
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.metric_names import metric_title
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
    """Return a colour and mark for each run by its letter, the same in every chart."""
    return styles_in_turn([run_letter(number) for number in range(len(comparison.runs))])


def costs_of_runs(reports: Mapping[str, MetricReport]) -> Chart | None:
    """Return the costs of every environment on one metric in all runs; None without any cost.

    ``reports`` has the metric in each run by the run's letter. All costs are on one scale: ratios if there are any.
    """
    rows = [(letter, report, row) for letter, report in reports.items() for row in report.comparisons]
    if not rows:
        return None
    scale, unit, numbers = on_one_scale([row for *_, row in rows], rows[0][1].unit)
    drawn = [(*each, interval) for each, interval in zip(rows, numbers, strict=True) if interval is not None]
    if not drawn:
        return None
    limits = cost_limits([interval for *_, interval in drawn], 1.0 if scale == "ratio" else 1e-9)
    points = [
        {
            "run": letter, "environment": display_name(row.environment), **interval_inside(interval, limits),
            "typical": cost_text(row, report.unit), "verdict": comparison_verdict(row),
        }
        for letter, report, row, interval in drawn
    ]  # fmt: skip
    letters = list(reports)
    axes = (
        number_axis(limits, cost_axis_title(scale, unit)),
        environment_axis([row.environment for _, _, row, _ in drawn]),
    )
    encoded = {
        "y": axes[1].encoding("environment"),
        "yOffset": nominal("run", sort=letters, scale={"paddingOuter": 0.5}),
        "color": colour_of("run", styles_in_turn(letters)),
    }
    shape = shape_of("run", styles_in_turn(letters))
    row_px = RUN_PX * len(letters) + 8
    return interval_chart(Canvas(), axes, points, encoded, TOOLTIP, row_px=row_px, size=75, shape=shape)


def changes_of_pair(pair: RunPair) -> Chart | None:
    """Return the changes of the headline costs from one run to another; None without any ratio.

    The grey band is the combined noise floor of both runs, or the session allowance if that is larger.
    """
    drawn = _ratios(pair)
    if not drawn:
        return None
    intervals = [(c.penalty.estimate, c.penalty.low, c.penalty.high) for _, _, c in drawn]
    limits = cost_limits(intervals, 1.0)
    points = [
        {
            "environment": display_name(row.environment), "metric": metric_title(metric.before),
            **interval_inside(numbers, limits), "typical": plain_text([change_amount(row, metric.before.unit)]),
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
    """Return the colours and marks of the environments of `changes_of_pair`."""
    return styles_in_turn(dict.fromkeys(display_name(row.environment) for _, row, _ in _ratios(pair)))


def _ratios(pair: RunPair) -> list[tuple[MetricChanges, ChangeRow, CostShift]]:
    """Return the changes of primary costs that are ratios."""
    return [
        (metric, row, row.change)
        for metric in pair.headlines
        for row in metric.rows
        if not row.aa and not row.few and row.change is not None and row.change.scale == "ratio"
    ]


def _noise(metric: MetricChanges, limits: tuple[float, float]) -> dict[str, Any] | None:
    """Return the noise floor on the axis of changes: a ratio's floor in both directions, as a penalty."""
    changes = [row.change for row in metric.rows if row.change is not None and row.change.scale == "ratio"]
    if not changes or changes[0].floor is None:
        return None
    floor = max(changes[0].floor, changes[0].allowance)
    near, far = 100 * floor, 100 * (1 - 1 / (1 + floor))
    low, high = (-near, far) if metric.before.better == "higher" else (-far, near)
    return {"metric": metric_title(metric.before), "cost": kept_inside(low, limits), "end": kept_inside(high, limits)}
