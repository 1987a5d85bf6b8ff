"""All trials: in chronological order, and as a distribution."""

from collections.abc import Sequence
from typing import Any

from weighbridge.analysis.results import Analysis, MetricReport
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.report.charts.base import (
    BASELINE,
    ROW_PX,
    Canvas,
    Chart,
    Field,
    environment_axis,
    environment_colour,
    environment_shape,
    layer,
    nominal,
    quantitative,
)
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import quantity
from weighbridge.report.text.metric_names import metric_name, value_unit
from weighbridge.report.text.trial_flags import flags_text

RUNS_PX = 190
EVERY_TICK = 12
"""Trials up to which each has a tick: left to itself Vega would put ticks between so few."""
BROKE = "broke"


def _rows(analysis: Analysis, report: MetricReport) -> tuple[str, list[tuple[TrialRow, dict[str, Any]]]]:
    """Return the axis title, and each trial of the workload with the data of both charts.

    A failed trial has no value.
    """
    unit, factor = value_unit(report)
    rows = []
    for trial in analysis.trials_of.get(report.label, ()):
        value = trial.values.get(report.metric)
        shown = {
            "environment": display_name(trial.environment), "trial": trial.id,
            "shown": quantity(value, report.unit, (unit, factor)),
            "value": None if value is None else value * factor,
        }  # fmt: skip
        rows.append((trial, shown))
    name = metric_name(report)
    return name if name == unit else f"{name}, {unit}", rows


def runs(analysis: Analysis, report: MetricReport) -> Chart:
    """Return every trial's value in chronological order, to show drift.

    Failed trials are crosses; trials that broke under their load are triangles.
    """
    canvas = Canvas()
    title, trial_rows = _rows(analysis, report)
    rows = [
        {
            **shown, "order": trial.order, "block": trial.block, "outcome": trial.outcome,
            "flags": flags_text(trial.flags) or "none", "link": f"#t{trial.id}",
        }
        for trial, shown in trial_rows
    ]  # fmt: skip
    names = {trial.environment for trial, _ in trial_rows}
    x = quantitative(
        "order", title="trial, in running order", scale={"zero": False, "nice": False, "padding": 8},
        axis=_whole_ticks([row["order"] for row in rows]),
    )  # fmt: skip
    shared = {"x": x, "color": environment_colour(analysis, names), "href": nominal("link")}
    y = quantitative("value", title=title, scale={"zero": False})
    trial_fields = [nominal("environment"), quantitative("trial")]
    values = [*trial_fields, quantitative("block"), nominal("shown", title="value"), nominal("flags")]
    good = canvas.rows([row for row in rows if row["value"] is not None])
    style: Field = {"filled": True, "size": 45, "opacity": 0.85}
    shapes = environment_shape(analysis, names)
    layers = [layer(good, "point", style, **shared, y=y, shape=shapes, tooltip=values)]
    failures = [row for row in rows if row["value"] is None]
    for shape, broke in (("cross", False), ("triangle-down", True)):
        if kind := [row for row in failures if (row["outcome"] == BROKE) is broke]:
            style = {"shape": shape, "angle": 0 if broke else 45, "size": 70, "filled": True, "opacity": 1}
            place, outcome = {"value": RUNS_PX - 6}, [*trial_fields, nominal("outcome")]
            layers.append(layer(canvas.rows(kind), "point", style, **shared, y=place, tooltip=outcome))
    return canvas.layered(layers, RUNS_PX)


def _whole_ticks(orders: Sequence[int]) -> Field:
    """Return an axis of whole numbers, because trials are numbered."""
    axis: Field = {"tickMinStep": 1, "format": "d", "grid": False}
    if orders and max(orders) - min(orders) < EVERY_TICK:
        axis["values"] = list(range(min(orders), max(orders) + 1))
    return axis


def distribution(analysis: Analysis, report: MetricReport) -> Chart:
    """Return each environment's values as points on a box (quartiles; whiskers to the extremes)."""
    canvas = Canvas()
    title, trial_rows = _rows(analysis, report)
    good = [shown for _, shown in trial_rows if shown["value"] is not None]
    drawn = {trial.environment for trial, shown in trial_rows if shown["value"] is not None}
    order = [name for name in analysis.environments if name in drawn]
    table, axis = canvas.rows(good), environment_axis(order)
    shared = {
        "x": quantitative("value", title=title, scale={"zero": False}),
        "y": axis.encoding("environment"),
        "color": environment_colour(analysis),
    }
    style = {"extent": "min-max", "size": 14, "opacity": 0.35, "median": {"color": BASELINE, "opacity": 1}}
    tooltip = [nominal("environment"), nominal("shown"), quantitative("trial")]
    points = layer(table, "tick", {"thickness": 2, "size": 16, "opacity": 0.8}, **shared, tooltip=tooltip)
    return canvas.layered([layer(table, "boxplot", style, **shared), points], max(axis.height(ROW_PX), ROW_PX))
