"""The page's part about rising loads: what the template ``curves.html.j2`` shows."""

from textwrap import shorten
from typing import Any

from weighbridge.analysis.curves import CurvePoint, EnvironmentCurve, LoadSweep, MetricCurve, SweptLevel
from weighbridge.analysis.overload import Broke
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.model.text import printable
from weighbridge.report import charts
from weighbridge.report.anchors import group
from weighbridge.report.page import FULL_PX, place
from weighbridge.report.text.conditions import sweep_durability
from weighbridge.report.text.curves import (
    curve_label,
    curve_title,
    level_number,
    level_words,
    load_words,
    next_broke,
    peak_doubt,
    peak_words,
)
from weighbridge.report.text.formatting import cost_of, quantity, shared_unit
from weighbridge.report.text.verdicts import broke_count, comparison_verdict, cost_text
from weighbridge.statistics import Cost

LONGEST = 70
"""Letters of a reason that stand in a table; the whole one is in the sentences on top and where the pointer rests."""

Cell = dict[str, Any]
"""What stands in a table: ``text``, the ``note`` below it, the ``link`` to its trials, its ``style``, its verdict
(``said``), and whether the note is about what ``broke``."""


def curve_sections(analysis: Analysis, specs: dict[str, str]) -> list[dict[str, Any]]:
    """Give what the template shows of each sweep: curves and tables of its metrics, the headline first."""
    found = []
    for number, sweep in enumerate(analysis.sweeps):
        shown = [_metric(analysis, specs, sweep, metric) for metric in sweep.metrics if not metric.nothing]
        found.append({
            "id": f"load{number}",
            "name": sweep.title,
            "title": curve_title(sweep),
            "load": load_words(sweep.load),
            "durability": sweep_durability(analysis, sweep),
            "first": shown[0] if shown else _empty(analysis, sweep),
            "more": shown[1:],
            "peak_costs": any(each.peak_cost for metric in sweep.metrics for each in metric.whole),
            "nothing": ", ".join(curve_label(sweep, each) for each in sweep.metrics if each.nothing),
        })  # fmt: skip
    return found


def _metric(analysis: Analysis, specs: dict[str, str], sweep: LoadSweep, metric: MetricCurve) -> dict[str, Any]:
    names = [curve.environment for curve in metric.curves]
    arms = [name for name in names if name != analysis.baseline]
    width = FULL_PX if metric is sweep.headline else 0  # the others are folded
    rows = [_level(analysis, sweep, metric, level, arms) for level in sweep.levels]
    return {
        "name": curve_label(sweep, metric),
        "better": metric.better,
        "chart": place(specs, charts.load_curve(analysis, sweep, metric), static_px=width),
        "caption": charts.curve_caption(analysis, sweep, metric),
        "environments": [analysis.baseline, *arms],
        "rows": rows,
        "whole": [*_peaks(analysis, sweep, metric, arms), *_whole(sweep, metric, arms)],
    }


def _empty(analysis: Analysis, sweep: LoadSweep) -> dict[str, Any]:
    """A sweep in which every trial broke: there are no values, but there is a table."""
    nothing = MetricCurve("", "", "higher", (), ())
    arms = [name for name in analysis.environments if name in sweep.broke and name != analysis.baseline]
    rows = [_level(analysis, sweep, nothing, level, arms) for level in sweep.levels]
    return {
        "name": "", "better": "", "chart": place({}, None), "caption": "", "rows": rows, "whole": [],
        "environments": [analysis.baseline, *arms],
    }  # fmt: skip


# -- a row for each level --------------------------------------------------------------------------


def _level(
    analysis: Analysis, sweep: LoadSweep, metric: MetricCurve, level: SweptLevel, arms: list[str]
) -> dict[str, Any]:
    report = next((m for m in analysis.of(level.label) if m.metric == metric.metric and m.level == level.level), None)
    rows = {row.environment: row for row in report.comparisons} if report else {}
    cells = [_baseline(analysis, sweep, metric, level)]
    cells += [_cost(analysis, sweep, metric, level, name, report, rows.get(name)) for name in arms]
    return {"text": level_number(level), "link": f"w{analysis.labels.index(level.label)}", "cells": cells}


def _baseline(analysis: Analysis, sweep: LoadSweep, metric: MetricCurve, level: SweptLevel) -> Cell:
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
) -> Cell:
    broke, point = _broke(sweep, name, level), _point(metric, name, level)
    if row is None or report is None:
        cell = _noted(broke_count(broke) if broke else "–", broke, beside=False)
    elif row.cost is None and broke is None and point and point.value:  # the baseline broke, and this did not
        cell = _said(cost_text(row, report.unit), f"here {quantity(point.value.estimate, metric.unit)}")
    else:
        cell = _noted(cost_text(row, report.unit), broke, beside=row.cost is not None)
        cell = {**cell, "said": ": ".join(filter(None, (comparison_verdict(row), cell["said"])))}
        if row.cost is not None:
            cell["style"] = "" if row.aa else row.verdict
    return _linked(analysis, level, name, cell)


def _noted(text: str, broke: Broke | None, *, beside: bool) -> Cell:
    """A cell with why it broke below it: with how often, where that is `beside` a value."""
    if broke is None:
        return _said(text)
    why = shorten(printable(broke.reason), LONGEST, placeholder=" …")
    note = f"{broke_count(broke)}: {why}" if beside else why
    return {**_said(text, note), "broke": True, "style": "" if beside else "broke", "said": broke.reason}


def _linked(analysis: Analysis, level: SweptLevel, name: str, cell: Cell) -> Cell:
    tried = any(trial.environment == name for trial in analysis.trials_of.get(level.label, ()))
    return {**cell, "link": group(analysis, level.label, name) if tried else ""}


def _broke(sweep: LoadSweep, name: str, level: SweptLevel) -> Broke | None:
    return next((each for at, each in sweep.broke.get(name, ()) if at == level), None)


def _point(metric: MetricCurve, name: str, level: SweptLevel) -> CurvePoint | None:
    curve = _curve(metric, name)
    return next((point for point in curve.points if point.level == level), None) if curve else None


def _curve(metric: MetricCurve, name: str) -> EnvironmentCurve | None:
    return next((each for each in metric.curves if each.environment == name), None)


# -- rows about the whole curve --------------------------------------------------------------------


def _peaks(analysis: Analysis, sweep: LoadSweep, metric: MetricCurve, arms: list[str]) -> list[dict[str, Any]]:
    """The peak; of the headline also where errors begin."""
    names = [analysis.baseline, *arms]
    found = []
    if metric.throughput:
        peaks = []
        for name in names:
            curve = _curve(metric, name)
            peak = curve.peak if curve else None
            note = peak_doubt(sweep.load, peak, next_broke(sweep, name, peak)) if peak else ""
            cell = _said(peak_words(sweep.load, peak, metric.unit) if peak else "–", note)
            peaks.append(_linked(analysis, peak.level, name, cell) if peak else cell)
        found.append({"text": "peak (highest median)", "cells": peaks})
    if metric is sweep.headline and sweep.errors:
        errors = []
        for name in names:
            each = sweep.errors.get(name)
            if each is None:
                errors.append(_said("none counted"))
                continue
            later = each.most is not None and each.most != each.first
            most = f"in most from {level_words(sweep.load, each.most)}" if each.most and later else ""
            note = ", ".join(filter(None, (f"in {each.blocks} of {each.of} blocks", most)))
            cell = _said(f"from {level_words(sweep.load, each.first)}", note)
            errors.append(_linked(analysis, each.first, name, cell))
        found.append({"text": "errors", "cells": errors})
    return found


def _whole(sweep: LoadSweep, metric: MetricCurve, arms: list[str]) -> list[dict[str, Any]]:
    """The costs over the whole curve."""
    whole = {each.environment: each for each in metric.whole}
    found = []
    if any(each.peak_cost for each in metric.whole):
        cells = [_ratio(whole[name].peak_cost if name in whole else None) for name in arms]
        found.append({"text": "cost of the peak (each at its own level)", "cells": [_said(""), *cells]})
    if any(each.mean for each in metric.whole):
        cells = []
        for name in arms:
            each = whole.get(name)
            cell = _ratio(each.mean if each else None)
            fewer = each is not None and each.mean is not None and each.levels < len(sweep.levels)
            more = f", {each.levels} levels that neither broke at" if fewer and each else ""
            cells.append({**cell, "note": cell["note"] + more})
        found.append({"text": "cost over all levels (geometric mean)", "cells": [_said(""), *cells]})
    return found


def _ratio(cost: Cost | None) -> Cell:
    """A cost with its blocks."""
    if cost is None:
        return _said("–")
    few = ", exploratory" if cost.exploratory else ""
    return _said(cost_of(cost), f"{cost.blocks} {'block' if cost.blocks == 1 else 'blocks'}{few}")


def _said(text: str, note: str = "") -> Cell:
    return {"text": text, "note": note, "style": "", "said": "", "link": "", "broke": False}
