"""The charts: one definition each, for the page (as wide as its place), PNG and SVG (a fixed width).

Colours are Okabe and Ito's, which colour-blind people tell apart; the baseline and its A/A arm are grey.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from weighbridge.report.content import Analysis, Comparison, MetricReport
from weighbridge.report.numbers import cost_text, margin, quantity, readable_unit

if TYPE_CHECKING:
    import altair as alt

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#B8A800")
BASELINE, AA_ARM, BAND = "#6b7280", "#a3a9b3", "#009E73"
ROW_PX = 26
TWO_LINES = r"split(datum.label, '\n')"
"""A Vega expression that breaks an axis label at its line feeds."""
RUNS_PX = 190


def colours(analysis: Analysis) -> dict[str, str]:
    """Give each environment its colour, the same in every chart."""
    found, turn = {}, 0
    for name in analysis.environments:
        if name in (analysis.baseline, analysis.aa_arm):
            found[name] = BASELINE if name == analysis.baseline else AA_ARM
        else:
            found[name] = PALETTE[turn % len(PALETTE)]
            turn += 1
    return found


def _colour(analysis: Analysis, names: Sequence[str] | None = None, *, legend: bool = True) -> "alt.Color":
    import altair as alt

    scheme = colours(analysis)
    shown = [name for name in scheme if names is None or name in names]
    below = alt.Legend(orient="top", title=None, labelLimit=260, symbolType="circle", symbolOpacity=1)
    scale = alt.Scale(domain=shown, range=[scheme[name] for name in shown])
    return alt.Color("environment:N", scale=scale, legend=below if legend else None)


def _data(rows: list[dict[str, Any]]) -> "alt.InlineData":
    import altair as alt

    return alt.InlineData(values=rows)


def _layered(layers: "Sequence[alt.Chart]", height: int) -> "alt.LayerChart":
    """Put layers on one another, as wide as their place and `height` pixels high."""
    import altair as alt

    return alt.LayerChart(layer=list(layers), width="container", height=height)


# -- forest plots ----------------------------------------------------------------------------------


def _limits(rows: Sequence[tuple[float, float, float]], least: float) -> tuple[float, float]:
    """The range of a cost axis: every estimate is inside, very wide intervals run out of it."""
    core = max([abs(estimate) for estimate, _, _ in rows] + [least])
    lows = [max(low, -3 * core) for _, low, _ in rows]
    highs = [min(high, 3 * core) for _, _, high in rows]
    low, high = min([*lows, -least]), max([*highs, least])
    room = 0.05 * (high - low)
    return low - room, high + room


def _numbers(row: Comparison, scale: str, factor: float) -> tuple[float, float, float] | None:
    """A comparison's cost on the axis (percent, or the readable unit), or None where it is on the other scale."""
    if row.cost is None or row.cost.scale != scale:
        return None
    interval = row.cost.percent or row.cost.interval
    by = 1.0 if scale == "ratio" else factor
    return interval.estimate * by, interval.low * by, interval.high * by


def _forest_rows(report: MetricReport) -> tuple[str, str, list[tuple[Comparison, tuple[float, float, float]]]]:
    """The scale, the axis title and what is drawn: ratios where there are any, else differences."""
    ratios = any(row.cost is not None and row.cost.scale == "ratio" for row in report.comparisons)
    scale = "ratio" if ratios else "difference"
    unit, factor = readable_unit(report.baseline_value or 0.0, report.unit)
    numbers = [(row, _numbers(row, scale, factor)) for row in report.comparisons]
    title = "cost, % (right of 0 is worse)" if ratios else f"difference, {unit}"
    return scale, title, [(row, each) for row, each in numbers if each is not None]


def forest(analysis: Analysis, report: MetricReport) -> "alt.LayerChart | None":
    """Give the costs of every environment on one metric with their intervals; None where there is no cost.

    The green band is the equivalence margin, the grey one the noise floor.
    """
    import altair as alt

    scale, title, rows = _forest_rows(report)
    if not rows:
        return None
    equivalence = 100 * (analysis.equivalence or 0.0) if scale == "ratio" else 0.0
    limits = _limits([numbers for _, numbers in rows], max(equivalence, 1.0) if scale == "ratio" else 1e-9)
    points = [_point(report, row, numbers, limits) for row, numbers in rows]
    x = alt.X("cost:Q", scale=alt.Scale(domain=limits, nice=False), title=title)
    order = [row.environment for row, _ in rows]
    y = alt.Y("environment:N", sort=order, title=None)
    bands = [_band(x, low, high, colour) for low, high, colour in _bands(report, scale, equivalence, limits)]
    base = alt.Chart(_data(points)).encode(y=y, color=_colour(analysis, legend=False))
    lines = base.mark_rule(strokeWidth=3).encode(x=x.copy(), x2="high:Q").transform_calculate(cost="datum.low")
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(x=x, tooltip=_tooltip())
    zero = alt.Chart(_data([{"cost": 0}])).mark_rule(color=BASELINE, strokeDash=[4, 3]).encode(x=x)
    return _layered([*bands, zero, lines, dots], ROW_PX * len(rows))


def _tooltip() -> list[Any]:
    return ["environment:N", "metric:N", "typical:N", "blocks:Q", "verdict:N"]


def _point(
    report: MetricReport, row: Comparison, numbers: tuple[float, float, float], limits: tuple[float, float]
) -> dict[str, Any]:
    inside = [min(max(value, limits[0]), limits[1]) for value in numbers]
    return {
        "environment": row.environment, "metric": report.title, "cost": inside[0], "low": inside[1],
        "high": inside[2], "typical": cost_text(row, report.unit), "blocks": row.blocks,
        "lines": _lines(report), "verdict": row.verdict_words,
    }  # fmt: skip


def _bands(
    report: MetricReport, scale: str, equivalence: float, limits: tuple[float, float]
) -> list[tuple[float, float, str]]:
    """The bands of the equivalence margin and of the noise floor: from, to, colour."""
    found = [(*_both_ways(equivalence, report), BAND)] if equivalence else []
    noise = _noise(report, scale)
    if noise is not None:
        found.append((*noise, BASELINE))
    return [(max(low, limits[0]), min(high, limits[1]), colour) for low, high, colour in found]


def _both_ways(percent: float, report: MetricReport) -> tuple[float, float]:
    """A ratio's margin on the axis of costs: it is symmetric in the two arms, 1 / (1 + d) to 1 + d."""
    near, far = percent, 100 * (1 - 1 / (1 + percent / 100))
    return (-near, far) if report.better == "higher" else (-far, near)


def _noise(report: MetricReport, scale: str) -> tuple[float, float] | None:
    """The noise floor on the axis of costs, both ways; None where it is not known."""
    if scale == "ratio":
        return None if report.noise_floor is None else _both_ways(100 * report.noise_floor, report)
    factor = readable_unit(report.baseline_value or 0.0, report.unit)[1]
    numbers = _numbers(report.aa, scale, factor) if report.aa else None
    size = max(abs(numbers[1]), abs(numbers[2])) if numbers else math.inf
    return (-size, size) if math.isfinite(size) else None


def _band(x: "alt.X", low: float, high: float, colour: str) -> "alt.Chart":
    import altair as alt

    data = _data([{"cost": low, "end": high}])
    band: alt.Chart = alt.Chart(data).mark_rect(color=colour, opacity=0.2).encode(x=x, x2="end:Q")
    return band


def _lines(report: MetricReport) -> str:
    """A metric's title in two lines, for a narrow axis."""
    return f"{report.label}\n{report.metric.replace('_', ' ')}"


def overview(analysis: Analysis, *, legend: bool = True) -> "alt.LayerChart | None":
    """Give the costs of every environment on the headline metrics in one chart; None where there is no ratio."""
    import altair as alt

    drawn = [
        (report, row, numbers)
        for report in analysis.headlines
        for row in report.comparisons
        if not row.aa and (numbers := _numbers(row, "ratio", 1.0)) is not None
    ]
    if not drawn:
        return None
    limits = _limits([numbers for _, _, numbers in drawn], max(100 * (analysis.equivalence or 0.0), 1.0))
    points = [_point(report, row, numbers, limits) for report, row, numbers in drawn]
    titles = list(dict.fromkeys(_lines(report) for report, _, _ in drawn))
    names = [name for name in analysis.environments if name in {row.environment for _, row, _ in drawn}]
    x = alt.X("cost:Q", scale=alt.Scale(domain=limits, nice=False), title="cost, % (right of 0 is worse)")
    y = alt.Y("lines:N", sort=titles, title=None, axis=alt.Axis(grid=True, tickBand="extent", labelExpr=TWO_LINES))
    offset = alt.YOffset("environment:N", sort=names, scale=alt.Scale(paddingOuter=0.6))
    noise = _data([
        {"lines": _lines(report), "cost": low, "end": high}
        for report in analysis.headlines
        for low, high, _ in _bands(report, "ratio", 0.0, limits)
    ])  # fmt: skip
    base = alt.Chart(_data(points)).encode(y=y, yOffset=offset, color=_colour(analysis, names, legend=legend))
    lines = base.mark_rule(strokeWidth=2.5).encode(x=x.copy(), x2="high:Q").transform_calculate(cost="datum.low")
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(x=x, tooltip=_tooltip())
    zero = alt.Chart(_data([{"cost": 0}])).mark_rule(color=BASELINE, strokeDash=[4, 3]).encode(x=x)
    quiet = alt.Chart(noise).mark_rect(color=BASELINE, opacity=0.2).encode(x=x, x2="end:Q", y=y)
    height = max(18 * len(names) + 14, 34) * len(titles)
    return _layered([quiet, zero, lines, dots], height)


# -- every trial -----------------------------------------------------------------------------------


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
            "outcome": trial.outcome, "flags": "; ".join(trial.flags) or "none", "link": f"#t{trial.id}",
        })  # fmt: skip
    return f"{report.metric.replace('_', ' ')}, {unit}", rows


def runs(analysis: Analysis, report: MetricReport, *, legend: bool = True) -> "alt.LayerChart":
    """Give every trial's value in the order in which they ran, so that drift is seen; failed ones are crosses."""
    import altair as alt

    title, rows = _trial_rows(analysis, report)
    names = {str(row["environment"]) for row in rows}
    colour = _colour(analysis, sorted(names), legend=legend)
    tooltip: list[Any] = ["environment:N", "trial:Q", "block:Q", alt.Tooltip("shown:N", title="value"), "flags:N"]
    x = alt.X(
        "order:Q", title="trial, in the order of the session", scale=alt.Scale(zero=False, nice=False, padding=8)
    )
    x.axis = alt.Axis(tickMinStep=1, format="d", grid=False)  # type: ignore[assignment]
    good = alt.Chart(_data([row for row in rows if row["value"] is not None])).mark_circle(size=45, opacity=0.85)
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False))
    points = good.encode(x=x, y=y, color=colour, tooltip=tooltip, href="link:N")
    bad = alt.Chart(_data([row for row in rows if row["value"] is None])).mark_point(
        shape="cross", angle=45, size=70, filled=True, opacity=1
    )
    failed = bad.encode(x=x, y=alt.value(RUNS_PX - 6), color=colour, href="link:N",
                        tooltip=["environment:N", "trial:Q", "outcome:N"])  # fmt: skip
    return _layered([points, failed], RUNS_PX)


def distribution(analysis: Analysis, report: MetricReport) -> "alt.LayerChart":
    """Give each environment's values as points on a box (quartiles; whiskers to the extremes)."""
    import altair as alt

    title, rows = _trial_rows(analysis, report)
    good = [row for row in rows if row["value"] is not None]
    order = [name for name in analysis.environments if name in {row["environment"] for row in good}]
    base = alt.Chart(_data(good)).encode(
        x=alt.X("value:Q", title=title, scale=alt.Scale(zero=False)),
        y=alt.Y("environment:N", sort=order, title=None),
        color=_colour(analysis, legend=False),
    )
    boxes = base.mark_boxplot(extent="min-max", size=14, opacity=0.35, median={"color": BASELINE, "opacity": 1})
    points = base.mark_tick(thickness=2, size=16, opacity=0.8).encode(tooltip=["environment:N", "shown:N", "trial:Q"])
    return _layered([boxes, points], ROW_PX * max(len(order), 1))


# -- files -----------------------------------------------------------------------------------------


def write_charts(analysis: Analysis, directory: Path, file_format: Literal["png", "svg"] = "svg") -> list[Path]:
    """Write every chart as a file into `directory` (made where missing) and give their paths; PNG at double size."""
    directory.mkdir(parents=True, exist_ok=True)
    charts: list[tuple[str, str, Any]] = [("overview", analysis.question, overview(analysis))]
    for number, report in enumerate(analysis.metrics, 1):
        about = f"{report.title} ({report.better} is better)"
        charts.append((f"{number:02d}-cost", f"{about}: cost against {analysis.baseline}", forest(analysis, report)))
        charts.append((f"{number:02d}-runs", about, runs(analysis, report)))
        charts.append((f"{number:02d}-distribution", about, distribution(analysis, report)))
    written = []
    for name, title, chart in charts:
        if chart is not None:
            path = directory / f"{name}.{file_format}"
            sized = (
                chart.properties(width=560, title=title)
                .configure_view(strokeOpacity=0.2)
                .configure_axisY(labelLimit=260)
                .configure_legend(columns=3)
            )
            sized.save(path, format=file_format, **({"scale_factor": 2} if file_format == "png" else {}))
            written.append(path)
    return written


def caption(analysis: Analysis, report: MetricReport) -> str:
    """Give what the bands of a forest plot mean, and which environments are not drawn."""
    _, _, rows = _forest_rows(report)
    drawn = {row.environment for row, _ in rows}
    parts = ["grey: noise floor, from the A/A arm"] if analysis.aa_arm else []
    if analysis.equivalence and any(row.cost and row.cost.scale == "ratio" for row, _ in rows):
        parts.append(f"green: {margin(analysis.equivalence)} counts as equivalent")
    missing = [row.environment for row in report.comparisons if row.environment not in drawn]
    return "; ".join([*parts, *([f"not drawn: {', '.join(missing)}"] if missing else [])])
