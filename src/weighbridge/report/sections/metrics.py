"""The parts of the page about each workload and level: what the template shows, from an analysis."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weighbridge.analysis.latency import PERCENTS, Latency, LatencyReport
from weighbridge.analysis.overload import reason
from weighbridge.analysis.program_use import ProgramUse
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.analysis.usage import Usage
from weighbridge.model.flag import FlagKind
from weighbridge.report import charts
from weighbridge.report.anchors import group
from weighbridge.report.page import HALF_PX, place
from weighbridge.report.sections.programs import program_table
from weighbridge.report.text.conditions import durability_of
from weighbridge.report.text.formatting import SPACE, Shown, percent_text, plain, quantities, quantity, shared_unit
from weighbridge.report.text.metric_names import difference_unit_of, metric_label, metric_name, value_unit
from weighbridge.report.text.summary import baseline_sentence, remark_lines, swept
from weighbridge.report.text.verdicts import broke_count, comparison_verdict, cost_text
from weighbridge.statistics import cost_percent

UNFOLDED = 4
"""Headline metrics whose waterfalls are seen without asking for them; with more of them only the first."""

MOST_STATIC = 500
"""Trials in a chart up to which it is drawn without the script too: each of them is an element of the page."""


def sections(
    analysis: Analysis,
    specs: dict[str, str],
    used: Mapping[str, Usage],
    programs: Mapping[str, Sequence[ProgramUse]],
    kinds: Collection[FlagKind] = (),
    *,
    folded: bool = False,
) -> Iterator[dict[str, Any]]:
    """Per workload and level what the template shows: its metrics with rows and charts, latency, resource use.

    Flags of trials of these `kinds` are said elsewhere. The charts of what is `folded` need the page's script.
    """
    without = {"exploratory"} if analysis.exploratory else set()
    for cell, label in enumerate(analysis.labels):
        seen: set[str] = set()
        own = [each for each in analysis.of(label) if not each.resource_use]
        shown = [
            _metric(analysis, specs, cell, report, seen, without, kinds, static=_static(report, folded=folded))
            for report in own
        ]
        for number, each in enumerate(shown):
            each["id"] = metric_id(cell, number)
        resources = [
            _plain_metric(analysis, cell, each, seen, without, kinds)
            for each in analysis.of(label)
            if each.resource_use
        ]
        others = [each for each in shown[1:] if not _differs(each["report"])]
        yield {
            "id": f"w{cell}",
            "label": label,
            "durability": durability_of(analysis, label),
            "metrics": shown,
            "first": [each for each in shown if all(each is not other for other in others)],
            "others": others,
            "more": ", ".join(each["name"] for each in others),
            "latencies": [
                _latency(analysis, specs, each, static=not folded)
                for each in analysis.latencies
                if each.label == label
            ],
            "resources": [each for each in resources if not _differs(each["report"])],
            "different_resources": [each for each in resources if _differs(each["report"])],
            "usage": _usage(analysis, specs, used.get(label)),
            "programs": program_table(programs.get(label, ())),
            "broke": reason(trial for trial in analysis.trials_of.get(label, ()) if trial.broke),
        }


def _plain_metric(
    analysis: Analysis,
    cell: int,
    report: MetricReport,
    seen: set[str],
    without: set[str],
    kinds: Collection[FlagKind],
) -> dict[str, Any]:
    """A metric as a table alone."""
    return {
        "report": report,
        "name": metric_name(report),
        "baseline": _baseline(analysis, report),
        "baseline_link": group_id(analysis, cell, analysis.baseline),
        "remarks": remark_lines(report, seen, without, kinds),
        "rows": [_row(analysis, cell, report, row) for row in report.comparisons],
    }


def _metric(
    analysis: Analysis,
    specs: dict[str, str],
    cell: int,
    report: MetricReport,
    seen: set[str],
    without: set[str],
    kinds: Collection[FlagKind],
    *,
    static: bool,
) -> dict[str, Any]:
    """A metric with its charts: all of them drawn `static` for a headline of not too many trials, else the costs."""
    every = static and report.headline and len(analysis.trials_of.get(report.label, ())) <= MOST_STATIC
    return {
        **_plain_metric(analysis, cell, report, seen, without, kinds),
        "forest": place(specs, charts.forest(analysis, report), static_px=HALF_PX if static else 0),
        "caption": charts.caption(analysis, report),
        "runs": place(specs, charts.runs(analysis, report), static_px=HALF_PX if every else 0),
        "distribution": place(specs, charts.distribution(analysis, report), static_px=HALF_PX if every else 0),
    }


def _latency(analysis: Analysis, specs: dict[str, str], report: LatencyReport, *, static: bool) -> dict[str, Any]:
    units = [shared_unit(column, "s") for column in zip(*(row.percentiles for row in report.rows), strict=True)]
    return {
        "name": metric_label(report.workload, report.metric, "s"),
        "rows": [
            {
                "row": row,
                "requests": f"{row.requests:,}".replace(",", SPACE),
                "cells": [_percentile(row, number, unit) for number, unit in enumerate(units)],
            }
            for row in report.rows
        ],
        "percents": [f"p{percent:g}" for percent in PERCENTS],
        "curve": place(specs, charts.percentile_curve(analysis, report), static_px=HALF_PX if static else 0),
    }


def _percentile(row: Latency, number: int, unit: Shown) -> tuple[str, str]:
    """A merged percentile and its cost, in words."""
    cost = row.costs[number]
    percent = cost.percent if cost else None
    value = quantity(row.percentiles[number], "s", unit)
    return value, percent_text(percent, cost.blocks) if cost and percent else ""


def _usage(analysis: Analysis, specs: dict[str, str], used: Usage | None) -> dict[str, Any]:
    """The small charts of resource use, by place."""
    places: dict[str, list[dict[str, Any]]] = {}
    for panel in used.panels if used else ():
        drawn = place(specs, charts.small_multiple(analysis, panel))
        places.setdefault(panel.place, []).append({"what": panel.what, "chart": drawn})
    return {"places": places, "idle": ", ".join(used.idle) if used else ""}


# -- over the levels, and step by step -------------------------------------------------------------


def sweeps(analysis: Analysis) -> list[dict[str, Any]]:
    """Per workload with many levels its headline metric's costs: a row for each level, a column for each arm.

    Workloads under a rising load have curves instead; of fewer levels the matrix on top has each.
    """
    many = swept(analysis)
    found, drawn = [], {sweep.workload for sweep in analysis.sweeps}
    cells = {label: number for number, label in enumerate(analysis.labels)}
    for workload in dict.fromkeys(each.workload for each in analysis.headlines):
        reports = [each for each in analysis.headlines if each.workload == workload]
        if workload not in many or not reports[0].comparisons or workload in drawn:
            continue
        shown = shared_unit([report.baseline_value for report in reports], reports[0].unit)
        rows = [
            {
                "level": report.level.label or report.label,
                "id": f"w{cells[report.label]}" if report.label in cells else "",
                "baseline": quantity(report.baseline_value, report.unit, shown),
                "cells": [_row(analysis, cells.get(report.label, 0), report, row) for row in report.comparisons],
            }
            for report in reports
        ]
        names = [row.environment for row in reports[0].comparisons]
        about = {"id": levels_id(workload), "workload": workload, "metric": metric_name(reports[0])}
        found.append({**about, "environments": names, "rows": rows})
    return found


def ladders(analysis: Analysis, specs: dict[str, str], kinds: Collection[FlagKind] = ()) -> list[dict[str, Any]]:
    """Each ladder's steps with their cost, and its waterfall."""
    found = []
    headlines = sum(ladder.report.headline for ladder in analysis.ladder)
    for number, ladder in enumerate(analysis.ladder):
        report = ladder.report
        cell = analysis.labels.index(report.label)
        unfolded = report.headline and number < (UNFOLDED if headlines <= UNFOLDED else 1)
        alone = replace(report, comparisons=tuple(step.row for step in ladder.steps))
        found.append({
            "report": report,
            "unfolded": unfolded,
            "steps": [
                {"step": step, **_row(analysis, cell, alone, step.row)} for step in ladder.steps
            ],
            "remarks": remark_lines(alone, set(), {"exploratory"}, kinds),
            "chart": place(specs, charts.waterfall(analysis, ladder), static_px=HALF_PX if unfolded else 0),
            "caption": charts.ladder_caption(analysis, ladder),
        })  # fmt: skip
    return found


def levels_id(workload: str) -> str:
    """Give the id of the table of a workload's levels, in the page."""
    return f"levels-{workload}"


def metric_id(cell: int, number: int) -> str:
    """Give the id of a metric of a workload and level, in the page: the headline is number 0."""
    return f"w{cell}m{number}"


def _static(report: MetricReport, *, folded: bool) -> bool:
    return not folded and (report.headline or _differs(report))


def _differs(report: MetricReport) -> bool:
    """Whether some environment differs: then the metric is seen without asking for it."""
    return any(row.shown_as in ("different", "hidden") for row in report.comparisons)


def _baseline(analysis: Analysis, report: MetricReport) -> str:
    """The baseline's value and the noise floor; of few blocks every value."""
    if any(row.few for row in report.comparisons):
        values = analysis.block_values(report, analysis.baseline)
        return f"{analysis.baseline} {quantities(values, report.unit, shown_in=value_unit(report))}"
    return baseline_sentence(report, analysis.baseline)


# -- rows and trials -------------------------------------------------------------------------------


def group_id(analysis: Analysis, cell: int, environment: str) -> str:
    """Give the id of the trials of one environment in one workload and level."""
    return group(analysis, analysis.labels[cell], environment)


def _row(analysis: Analysis, cell: int, report: MetricReport, row: Comparison) -> dict[str, Any]:
    tried = any(t.environment == row.environment for t in analysis.trials_of.get(report.label, ()))
    shown, by = value_unit(report), difference_unit_of(report.comparisons, report.unit)
    values = analysis.block_values(report, row.environment) if row.few else ()
    return {
        "row": row,
        "cost": quantities(values, report.unit, shown_in=shown) if values else cost_text(row, report.unit, by),
        "median": quantity(row.value, report.unit, shown),
        "broke": f"{broke_count(row.broke)}: {row.broke.reason}" if row.broke and row.cost else "",
        "verdict": comparison_verdict(row),
        "link": group_id(analysis, cell, row.environment) if tried else "",
        **_beside(row),
    }


def _beside(row: Comparison) -> dict[str, str]:
    """The figures beside the typical cost: means, slow runs, adjusted p-value."""
    cost = row.cost
    means = {"geometric": "–", "arithmetic": "–"}
    if cost is not None and cost.scale == "ratio":
        for name, interval in (("geometric", cost.geometric), ("arithmetic", cost.arithmetic)):
            if interval is not None:
                means[name] = f"{cost_percent(interval, cost.better).estimate:.1f} %"
    slow = row.slow
    rate = f"{slow.slow} of {slow.runs} (95 %: at most {100 * slow.high:.0f} % of runs)" if slow else "–"
    return {**means, "slow": rate, "p": "–" if row.adjusted_p is None else plain(row.adjusted_p, 2)}
