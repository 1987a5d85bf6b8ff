"""The ladder as a waterfall: each bar is one step's own cost, starting at the environment that it adds to.

Branches of a ladder are drawn next to each other. Each starts at the environment that they share, a thin line leads
there, and its label names that environment.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from weighbridge.analysis.results import Analysis, Ladder, LadderStep
from weighbridge.report.charts.base import (
    BASELINE,
    Canvas,
    Chart,
    NameAxis,
    interval,
    layer,
    name_lines,
    nominal,
    number_axis,
    quantitative,
    rule_at,
    styles,
)
from weighbridge.report.text.environments import display_name, join_names
from weighbridge.report.text.formatting import readable_unit
from weighbridge.report.text.metric_names import metric_words
from weighbridge.report.text.verdicts import comparison_verdict, cost_text

STEP_PX = 34
FEW = {"different": 0.85, "equivalent": 0.45, "inconclusive": 0.45, "hidden": 0.45}
"""How strongly a bar is filled: only what is proven stands out."""


def _drawn(ladder: Ladder) -> tuple[str, list[tuple[LadderStep, float]]]:
    """Return the scale of the chart and the steps that can be drawn on it, each with its start."""
    costs = [step.row.cost for step in ladder.steps if step.row.cost is not None and not step.row.few]
    scale = "ratio" if any(cost.scale == "ratio" for cost in costs) else "difference"
    drawn_steps = [
        (step, step.start)
        for step in ladder.steps
        if step.start is not None and step.row.cost is not None and not step.row.few and step.row.cost.scale == scale
    ]
    return scale, drawn_steps


def waterfall(analysis: Analysis, ladder: Ladder) -> Chart | None:
    """Return the steps as floating bars with the interval of each step; None without any cost.

    A bar starts at the cost of the environment that it adds to, from its own comparison in percent of the baseline.
    It ends at the step's own typical ratio from there. The grey area around its start is the noise floor.
    """
    canvas = Canvas()
    scale, steps = _drawn(ladder)
    if not steps:
        return None
    report = ladder.report
    unit, factor = readable_unit(report.baseline_value or 0.0, report.unit)
    rows = [_row(analysis, ladder, step, start, factor if scale == "difference" else 100.0) for step, start in steps]
    title = f"{metric_words(report.metric)}, % of {display_name(analysis.baseline)}"
    if scale == "difference":
        title = f"{metric_words(report.metric)}, {unit} beside {display_name(analysis.baseline)}"
    ends = [each[name] for each in rows for name in ("start", "end")]
    size = max(ends) - min(ends) or 1.0
    limits = [max(min([*ends, *(r["low"] for r in rows)]), min(ends) - size)]
    limits.append(min(max([*ends, *(r["high"] for r in rows)]), max(ends) + size))
    room = 0.06 * (limits[1] - limits[0])
    domain = (limits[0] - room, limits[1] + room)
    for each in rows:
        each.update({name: min(max(each[name], domain[0]), domain[1]) for name in ("low", "high", "quiet", "loud")})
    labels = _labels(rows)
    uncut = any(label.count("\n") > 1 for label in labels.values())  # of hypervisors
    axes = number_axis(domain, title), NameAxis(labels, uncut=uncut, padding=0.25)
    x, y = axes[0].encoding("start"), axes[1].encoding("environment")
    table, colour = canvas.rows(rows), nominal("colour", scale=None)
    tooltip = [
        nominal("environment"), nominal("against"), nominal("typical", title="cost of the step"), nominal("verdict")
    ]  # fmt: skip
    quiet, style = axes[0].encoding("quiet"), {"color": BASELINE, "opacity": 0.2}
    noise = layer(table, "rect", style, y=y, x=quiet, x2={"field": "loud"})
    strength = quantitative("strength", scale=None)
    bars = layer(table, "bar", y=y, x=x, x2={"field": "end"}, color=colour, opacity=strength, tooltip=tooltip)
    whiskers = layer(table, "rule", {"strokeWidth": 2, "color": BASELINE}, y=y, **interval(axes[0]))
    style = {"thickness": 2.5, "size": 18}
    ends_ = layer(table, "tick", style, y=y, x=axes[0].encoding("end"), color=colour, tooltip=tooltip)
    joined = canvas.rows([each for each in rows if each["against"] in labels])
    joints = layer(joined, "rule", {"color": BASELINE}, y=y, y2={"field": "against"}, x=x)
    mark = rule_at(canvas.rows([{"start": 100.0 if scale == "ratio" else 0.0}]), x)
    return canvas.layered([noise, mark, joints, bars, whiskers, ends_], axes[1].height(STEP_PX), axes)


def _labels(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the label of each environment's bar, with a second line if it does not add to the bar above."""
    labels: dict[str, str] = {}
    above = rows[0]["against"]
    for name, against in ((each["environment"], each["against"]) for each in rows):
        labels[name] = name_lines(name) if against == above else f"{name_lines(name)}\non {name_lines(against)}"
        above = name
    return labels


def _row(analysis: Analysis, ladder: Ladder, step: LadderStep, start: float, by: float) -> dict[str, Any]:
    report, cost = ladder.report, step.row.cost
    if cost is None:
        raise ValueError("A step without a cost cannot be drawn.")
    low, high = (cost.low, cost.high) if cost.blocks > 1 else (cost.typical, cost.typical)  # one block: no interval
    if cost.scale == "ratio":
        floor = 1 + (report.noise_floor or 0.0)
        places = [start * each for each in (1.0, cost.typical, low, high, 1 / floor, floor)]
    else:
        aa = report.aa.cost if report.aa else None
        floor = max(abs(aa.low), abs(aa.high)) if aa is not None and aa.scale == "difference" else 0.0
        floor = floor if math.isfinite(floor) else 0.0
        places = [start + each for each in (0.0, cost.typical, low, high, -floor, floor)]
    names = ("start", "end", "low", "high", "quiet", "loud")
    numbers = {name: value * by for name, value in zip(names, places, strict=True)}
    return {
        "environment": display_name(step.row.environment), "against": display_name(step.row.against),
        "typical": cost_text(step.row, report.unit),
        "verdict": comparison_verdict(step.row), "colour": styles(analysis)[step.row.environment].colour,
        "strength": FEW.get(step.row.verdict, 0.45), **numbers,
    }  # fmt: skip


def ladder_caption(analysis: Analysis, ladder: Ladder) -> str:
    """Return how the waterfall is read, and which steps are not drawn."""
    drawn = {step.row.environment for step, _ in _drawn(ladder)[1]}
    missing = [step.row.environment for step in ladder.steps if step.row.environment not in drawn]
    parts = [
        "each bar is one step's cost with its interval and starts at the environment below the step; strong colour:"
        " the step is significant"
    ]
    parts += ["grey: noise floor, from the control"] if analysis.aa_arm else []
    return "; ".join([*parts, *([f"not drawn: {join_names(missing)}"] if missing else [])])
