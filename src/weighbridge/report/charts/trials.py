"""Every trial: in the order in which they ran, and as a distribution."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weighbridge.analysis.results import Analysis, MetricReport
from weighbridge.report.charts.base import BASELINE, ROW_PX, Canvas, environment_colour, told
from weighbridge.report.text.formatting import quantity, readable_unit
from weighbridge.report.text.metric_names import metric_name
from weighbridge.report.text.trial_flags import flags_text

if TYPE_CHECKING:
    import altair as alt

RUNS_PX = 190
EVERY_TICK = 12
"""Trials up to which each has a tick: left to itself Vega would put ticks between so few."""
BROKE = "broke"


def _trial_rows(analysis: Analysis, report: MetricReport) -> tuple[str, list[dict[str, Any]]]:
    """The axis title, and each trial of the workload; a failed one has no value."""
    unit, factor = readable_unit(report.baseline_value or 0.0, report.unit)
    rows = []
    for trial in analysis.trials:
        if (trial.workload, trial.level) != (report.workload, report.level):
            continue
        value = trial.values.get(report.metric)
        rows.append({
            "environment": trial.environment, "order": trial.order, "block": trial.block, "trial": trial.id,
            "value": None if value is None else value * factor, "shown": quantity(value, report.unit),
            "outcome": trial.outcome, "flags": flags_text(trial.flags) or "none", "link": f"#t{trial.id}",
        })  # fmt: skip
    return f"{metric_name(report)}, {unit}", rows


def runs(analysis: Analysis, report: MetricReport, *, legend: bool = True) -> "alt.LayerChart":
    """Give every trial's value in the order in which they ran, so that drift is seen.

    Failed ones are crosses, those that broke under their load triangles.
    """
    import altair as alt

    canvas = Canvas()
    title, rows = _trial_rows(analysis, report)
    names = {str(row["environment"]) for row in rows}
    colour = environment_colour(analysis, sorted(names), legend=legend)
    value = alt.Tooltip("shown:N", title="value")
    tooltip = [*told("environment:N", "trial:Q", "block:Q"), value, *told("flags:N")]
    x = alt.X(
        "order:Q", title="trial, in the order of the session", scale=alt.Scale(zero=False, nice=False, padding=8)
    )
    x.axis = _whole_ticks([row["order"] for row in rows])  # type: ignore[assignment]
    good = canvas.chart([row for row in rows if row["value"] is not None]).mark_circle(size=45, opacity=0.85)
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False))
    points = good.encode(x=x, y=y, color=colour, tooltip=tooltip, href=alt.Href("link:N"))
    failures = [row for row in rows if row["value"] is None]
    if not failures:
        return canvas.layered([points], RUNS_PX)
    layers = [points]
    for shape, broke in (("cross", False), ("triangle-down", True)):
        if kind := [row for row in failures if (row["outcome"] == BROKE) is broke]:
            bad = canvas.chart(kind).mark_point(
                shape=shape, angle=0 if broke else 45, size=70, filled=True, opacity=1
            )
            layers.append(bad.encode(x=x, y=alt.value(RUNS_PX - 6), color=colour, href=alt.Href("link:N"),
                                     tooltip=told("environment:N", "trial:Q", "outcome:N")))  # fmt: skip
    return canvas.layered(layers, RUNS_PX)


def _whole_ticks(orders: Sequence[int]) -> "alt.Axis":
    """An axis of whole numbers: there is no trial between two."""
    import altair as alt

    axis = alt.Axis(tickMinStep=1, format="d", grid=False)
    if orders and max(orders) - min(orders) < EVERY_TICK:
        axis.values = list(range(min(orders), max(orders) + 1))
    return axis


def distribution(analysis: Analysis, report: MetricReport) -> "alt.LayerChart":
    """Give each environment's values as points on a box (quartiles; whiskers to the extremes)."""
    import altair as alt

    canvas = Canvas()
    title, rows = _trial_rows(analysis, report)
    good = [row for row in rows if row["value"] is not None]
    order = [name for name in analysis.environments if name in {row["environment"] for row in good}]
    base = canvas.chart(good).encode(
        x=alt.X("value:Q", title=title, scale=alt.Scale(zero=False)),
        y=alt.Y("environment:N", sort=order, title=None),
        color=environment_colour(analysis, legend=False),
    )
    boxes = base.mark_boxplot(extent="min-max", size=14, opacity=0.35, median={"color": BASELINE, "opacity": 1})
    points = base.mark_tick(thickness=2, size=16, opacity=0.8).encode(
        tooltip=told("environment:N", "shown:N", "trial:Q")
    )
    return canvas.layered([boxes, points], ROW_PX * max(len(order), 1))
