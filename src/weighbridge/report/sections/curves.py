"""The page's part about rising loads: what the template ``curves.html.j2`` shows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import shorten

from weighbridge.analysis.curves import CurvePoint, EnvironmentCurve, LoadSweep, MetricCurve, SweptLevel
from weighbridge.analysis.overload import Breakage
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.model.address import MetricId
from weighbridge.model.text import printable
from weighbridge.report import charts
from weighbridge.report.anchors import load_id, trials_id, workload_id
from weighbridge.report.page import NO_CHART, ChartPlace, PageCharts
from weighbridge.report.text.conditions import sweep_durability
from weighbridge.report.text.curves import (
    curve_label,
    curve_title,
    level_number,
    level_words,
    next_broke,
    peak_doubt,
    peak_words,
)
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import cost_of, plural, quantity, shared_unit
from weighbridge.report.text.metric_names import load_words
from weighbridge.report.text.verdicts import broke_count, cost_text, reasoned_verdict
from weighbridge.statistics import Cost

LONGEST = 70
"""Letters of a reason that stand in a table; the whole one is in the sentences on top and where the pointer rests."""


@dataclass(frozen=True, slots=True)
class CurveCell:
    """What stands in a table: its text, the note below it, its style, and the id of its trials (empty: none)."""

    text: str
    note: str = ""
    style: str = ""
    tooltip: str = ""
    link: str = ""
    broke: bool = False
    """Whether the note is about why it broke."""


@dataclass(frozen=True, slots=True)
class CurveLine:
    """A row of a table: a level with the id of its section, or a figure of the whole curve (no id)."""

    text: str
    cells: Sequence[CurveCell]
    link: str = ""


@dataclass(frozen=True, slots=True)
class CurveArticle:
    """One metric over the load: its chart, a row for each level, and rows about the whole curve."""

    name: str
    better: str
    chart: ChartPlace
    caption: str
    environments: Sequence[tuple[str, str]]
    """The baseline first, each with the name that is shown."""
    rows: Sequence[CurveLine]
    curve_costs: Sequence[CurveLine]


@dataclass(frozen=True, slots=True)
class CurveSection:
    """One rising load: the curve of its headline, and those of its other metrics."""

    id: str
    workload: str
    name: str
    title: str
    load: str
    durability: str
    first: CurveArticle
    other_metrics: Sequence[CurveArticle]
    peak_costs: bool
    nothing: str
    """The metrics that were zero in every block."""


def curve_sections(analysis: Analysis, page: PageCharts) -> list[CurveSection]:
    """Return what the template shows of each sweep."""
    sections = []
    for number, sweep in enumerate(analysis.sweeps):
        articles = [_article(analysis, page, sweep, metric) for metric in sweep.metrics if not metric.nothing]
        sections.append(
            CurveSection(
                id=load_id(number),
                workload=sweep.workload,
                name=sweep.title,
                title=curve_title(sweep),
                load=load_words(sweep.load),
                durability=sweep_durability(analysis, sweep),
                first=articles[0] if articles else _empty(analysis, sweep),
                other_metrics=articles[1:],
                peak_costs=any(each.peak_cost for metric in sweep.metrics for each in metric.whole_costs),
                nothing=", ".join(curve_label(sweep, each) for each in sweep.metrics if each.nothing),
            )
        )
    return sections


def _article(analysis: Analysis, page: PageCharts, sweep: LoadSweep, metric: MetricCurve) -> CurveArticle:
    arms = [curve.environment for curve in metric.curves if curve.environment != analysis.baseline]
    return CurveArticle(
        name=curve_label(sweep, metric),
        better=metric.better,
        chart=page.place(charts.load_curve(analysis, sweep, metric)),
        caption=charts.curve_caption(analysis, sweep, metric),
        environments=[(name, display_name(name)) for name in (analysis.baseline, *arms)],
        rows=[_level(analysis, sweep, metric, level, arms) for level in sweep.levels],
        curve_costs=[*_peaks(analysis, sweep, metric, arms), *_curve_costs(sweep, metric, arms)],
    )


def _empty(analysis: Analysis, sweep: LoadSweep) -> CurveArticle:
    """A sweep in which every trial broke: there are no values, but there is a table."""
    nothing = MetricCurve("", "", "higher", (), ())
    arms = [name for name in analysis.environments if name in sweep.broke and name != analysis.baseline]
    rows = [_level(analysis, sweep, nothing, level, arms) for level in sweep.levels]
    names = [(name, display_name(name)) for name in (analysis.baseline, *arms)]
    return CurveArticle("", "", NO_CHART, "", names, rows, ())


# -- a row for each level --------------------------------------------------------------------------


def _level(
    analysis: Analysis, sweep: LoadSweep, metric: MetricCurve, level: SweptLevel, arms: list[str]
) -> CurveLine:
    report = next((m for m in analysis.metrics if m.metric_id == MetricId(level.cell, metric.metric)), None)
    rows = {row.environment: row for row in report.comparisons} if report else {}
    cells = [_baseline(analysis, sweep, metric, level)]
    cells += [_cost(analysis, sweep, metric, level, name, report, rows.get(name)) for name in arms]
    return CurveLine(level_number(level), cells, workload_id(analysis, level.cell.label))


def _baseline(analysis: Analysis, sweep: LoadSweep, metric: MetricCurve, level: SweptLevel) -> CurveCell:
    point, broke = _point(metric, analysis.baseline, level), _broke(sweep, analysis.baseline, level)
    value = point.value.estimate if point and point.value else None
    mine = [point for curve in metric.curves if curve.environment == analysis.baseline for point in curve.points]
    unit = shared_unit([each.value.estimate for each in mine if each.value], metric.unit)
    text = quantity(value, metric.unit, unit) if value is not None else broke_count(broke) if broke else "–"
    return _linked(analysis, level, analysis.baseline, _noted(text, broke, beside=value is not None))


def _cost(
    analysis: Analysis,
    sweep: LoadSweep,
    metric: MetricCurve,
    level: SweptLevel,
    name: str,
    report: MetricReport | None,
    row: Comparison | None,
) -> CurveCell:
    broke, point = _broke(sweep, name, level), _point(metric, name, level)
    if row is None or report is None:
        cell = _noted(broke_count(broke) if broke else "–", broke, beside=False)
    elif row.cost is None and broke is None and point and point.value:  # the baseline broke, and this did not
        cell = CurveCell(cost_text(row, report.unit), f"here {quantity(point.value.estimate, metric.unit)}")
    else:
        cell = _noted(cost_text(row, report.unit), broke, beside=row.cost is not None)
        cell = replace(cell, tooltip=": ".join(filter(None, (reasoned_verdict(row), cell.tooltip))))
        if row.cost is not None:
            cell = replace(cell, style="" if row.aa else row.verdict)
    return _linked(analysis, level, name, cell)


def _noted(text: str, broke: Breakage | None, *, beside: bool) -> CurveCell:
    """A cell with why it broke below it: with how often, where that is `beside` a value."""
    if broke is None:
        return CurveCell(text)
    why = shorten(printable(broke.reason), LONGEST, placeholder=" …")
    note = f"{broke_count(broke)}: {why}" if beside else why
    return CurveCell(text, note, "" if beside else "broke", broke.reason, broke=True)


def _linked(analysis: Analysis, level: SweptLevel, name: str, cell: CurveCell) -> CurveCell:
    has_trials = any(trial.environment == name for trial in analysis.trials_of.get(level.cell.label, ()))
    return replace(cell, link=trials_id(analysis, level.cell.label, name) if has_trials else "")


def _broke(sweep: LoadSweep, name: str, level: SweptLevel) -> Breakage | None:
    return next((each for at, each in sweep.broke.get(name, ()) if at == level), None)


def _point(metric: MetricCurve, name: str, level: SweptLevel) -> CurvePoint | None:
    curve = _curve(metric, name)
    return next((point for point in curve.points if point.level == level), None) if curve else None


def _curve(metric: MetricCurve, name: str) -> EnvironmentCurve | None:
    return next((each for each in metric.curves if each.environment == name), None)


# -- rows about the whole curve --------------------------------------------------------------------


def _peaks(analysis: Analysis, sweep: LoadSweep, metric: MetricCurve, arms: list[str]) -> list[CurveLine]:
    """The peak; of the headline also where errors begin."""
    names = [analysis.baseline, *arms]
    rows = []
    if metric.throughput:
        peaks = []
        for name in names:
            curve = _curve(metric, name)
            peak = curve.peak if curve else None
            note = peak_doubt(sweep.load, peak, next_broke(sweep, name, peak)) if peak else ""
            cell = CurveCell(peak_words(sweep.load, peak, metric.unit) if peak else "–", note)
            peaks.append(_linked(analysis, peak.level, name, cell) if peak else cell)
        rows.append(CurveLine("peak (highest median)", peaks))
    if metric is sweep.headline and sweep.errors:
        errors = []
        for name in names:
            each = sweep.errors.get(name)
            if each is None:
                errors.append(CurveCell("none counted"))
                continue
            later = each.most is not None and each.most != each.first
            most = f"in most from {level_words(sweep.load, each.most)}" if each.most and later else ""
            note = ", ".join(filter(None, (f"in {each.blocks} of {each.total} rounds", most)))
            cell = CurveCell(f"from {level_words(sweep.load, each.first)}", note)
            errors.append(_linked(analysis, each.first, name, cell))
        rows.append(CurveLine("errors", errors))
    return rows


def _curve_costs(sweep: LoadSweep, metric: MetricCurve, arms: list[str]) -> list[CurveLine]:
    """The costs over the whole curve."""
    curve_costs = {each.environment: each for each in metric.whole_costs}
    rows = []
    if any(each.peak_cost for each in metric.whole_costs):
        cells = [_ratio(curve_costs[name].peak_cost if name in curve_costs else None) for name in arms]
        rows.append(CurveLine("cost of the peak (each at its own level)", [CurveCell(""), *cells]))
    if any(each.mean for each in metric.whole_costs):
        cells = []
        for name in arms:
            each = curve_costs.get(name)
            cell = _ratio(each.mean if each else None)
            fewer = each is not None and each.mean is not None and each.levels < len(sweep.levels)
            levels_note = f", {each.levels} levels (neither overloaded)" if fewer and each else ""
            cells.append(replace(cell, note=cell.note + levels_note))
        rows.append(CurveLine("cost over all levels (geometric mean)", [CurveCell(""), *cells]))
    return rows


def _ratio(cost: Cost | None) -> CurveCell:
    """A cost with its blocks."""
    if cost is None:
        return CurveCell("–")
    few = ", exploratory" if cost.exploratory else ""
    return CurveCell(cost_of(cost), f"{plural(cost.blocks, 'round')}{few}")
