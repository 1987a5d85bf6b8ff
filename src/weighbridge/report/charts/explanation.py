"""An environment's cost as a waterfall of its parts, from the baseline to the environment.

Each bar is one part's own cost and starts at the end of the bar above it. Every part is measured by itself, so the
last one need not end at the environment's cost, which the bar below all of them shows.
"""

from collections.abc import Iterator
from typing import Any

from weighbridge.analysis.results import Analysis, Comparison, Explanation
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
from weighbridge.report.charts.ladder import FEW, STEP_PX
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import readable_unit
from weighbridge.report.text.metric_names import metric_words
from weighbridge.report.text.verdicts import comparison_verdict, cost_text

CAPTION = (
    "each bar is one part's own cost with its interval and begins where the bar above it ends; the last bar is the"
    " environment against the baseline; strong colour: the part is significant"
)


def _parts(explanation: Explanation) -> Iterator[tuple[str, Comparison]]:
    """Yield the bars to draw, starting with the baseline."""
    if explanation.unexplained is not None:
        yield "unexplained", explanation.unexplained
    for each in explanation.mechanisms:
        if each.row is not None:
            yield each.mechanism.title, each.row
    if explanation.interaction is not None:
        yield "interaction", explanation.interaction
    yield display_name(explanation.environment), explanation.total


def explained(analysis: Analysis, explanation: Explanation) -> Chart | None:
    """Return the parts of a cost as floating bars; None if the whole, or every part, has no cost to draw."""
    whole, report = explanation.total.cost, explanation.report
    parts = [
        (what, row)
        for what, row in _parts(explanation)
        if row.cost is not None and not row.few and whole is not None and row.cost.scale == whole.scale
    ]
    if whole is None or explanation.total.few or len(parts) < 2:
        return None
    ratio = whole.scale == "ratio"
    unit, factor = readable_unit(report.baseline_value or 0.0, report.unit)
    by = 100.0 if ratio else factor
    start = nothing = 1.0 if ratio else 0.0
    rows: list[dict[str, Any]] = []
    colour = styles(analysis)[explanation.environment].colour
    for what, row in parts:
        assert row.cost is not None
        begin = nothing if row is explanation.total else start
        ends = [begin * each if ratio else begin + each for each in (row.cost.typical, row.cost.low, row.cost.high)]
        start = ends[0]
        rows.append(
            {
                "part": what, "start": begin * by, "end": ends[0] * by, "low": ends[1] * by, "high": ends[2] * by,
                "cost": cost_text(row, report.unit), "verdict": comparison_verdict(row),
                "colour": BASELINE if row is explanation.total else colour, "strength": FEW.get(row.verdict, 0.45),
            }
        )  # fmt: skip
    baseline = display_name(analysis.baseline)
    beside = f"% of {baseline}" if ratio else f"{unit} more than {baseline}"
    return _drawn(rows, f"{metric_words(report.metric)}, {beside}", nothing * by)


def _drawn(rows: list[dict[str, Any]], title: str, nothing: float) -> Chart:
    canvas = Canvas()
    places = [each[name] for each in rows for name in ("start", "end")]
    size = max(places) - min(places) or 1.0
    lowest = max(min([*places, *(each["low"] for each in rows)]), min(places) - size)
    highest = min(max([*places, *(each["high"] for each in rows)]), max(places) + size)
    room = 0.06 * (highest - lowest)
    domain = (lowest - room, highest + room)
    for each in rows:
        each.update({name: min(max(each[name], domain[0]), domain[1]) for name in ("low", "high")})
    axes = (
        number_axis(domain, title),
        NameAxis({each["part"]: name_lines(each["part"]) for each in rows}, padding=0.25),
    )
    x, y = axes[0].encoding("start"), axes[1].encoding("part")
    table, colour = canvas.rows(rows), nominal("colour", scale=None)
    tooltip = [nominal("part"), nominal("cost"), nominal("verdict")]
    strength = quantitative("strength", scale=None)
    bars = layer(table, "bar", y=y, x=x, x2={"field": "end"}, color=colour, opacity=strength, tooltip=tooltip)
    whiskers = layer(table, "rule", {"strokeWidth": 2, "color": BASELINE}, y=y, **interval(axes[0]))
    style = {"thickness": 2.5, "size": 18}
    ends = layer(table, "tick", style, y=y, x=axes[0].encoding("end"), color=colour, tooltip=tooltip)
    mark = rule_at(canvas.rows([{"start": nothing}]), x)
    return canvas.layered([mark, bars, whiskers, ends], axes[1].height(STEP_PX), axes)
