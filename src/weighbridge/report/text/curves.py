"""Curves in words, for the terminal, the page and the sentences on top."""

from collections.abc import Sequence
from textwrap import shorten

from weighbridge.analysis.curves import (
    CurvePeak,
    EnvironmentCurve,
    ErrorsFrom,
    LoadSweep,
    MetricCurve,
    SweptLevel,
    WholeCost,
)
from weighbridge.analysis.overload import Breakage, without_figures
from weighbridge.analysis.results import Analysis
from weighbridge.model.address import CellId
from weighbridge.report.text.environments import display_name, join_names
from weighbridge.report.text.formatting import SPACE, cost_of, listed, plural, quantity, whole
from weighbridge.report.text.metric_names import load_unit, metric_label

LONGEST = 160
"""Letters of a reason in a sentence: each trial shows all of it."""


def level_number(level: SweptLevel) -> str:
    """Return a level's number: ``2,000``, or as it was written if it has a unit."""
    return whole(level.load) if _bare(level.text) else level.text


def level_words(load: str, level: SweptLevel) -> str:
    """Return a level with its unit: ``2,000 connections``."""
    number = level_number(level)
    if not _bare(level.text):
        return f"{load} {number}"
    return f"{number}{SPACE}{load_unit(load, one=level.load == 1)}"


def _bare(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def broke_words(load: str, broke: Sequence[tuple[SweptLevel, Breakage]], where: str = "") -> str:
    """Return ``overloaded at 2,000 threads: too many connections (10 of 10 trials)``; several levels in a list."""
    begin = f"overloaded in {where} at" if where else "overloaded at"
    if len(broke) == 1:
        return f"{begin} {level_words(load, broke[0][0])}: {_why(broke[0][1])} ({_count(broke[0][1])})"
    by_reason: dict[str, tuple[str, list[str]]] = {}
    for level, each in broke:
        _, places = by_reason.setdefault(without_figures(each.reason), (_why(each), []))
        places.append(f"{level_words(load, level)} ({_count(each)})")
    clauses = [f"{listed(places)}: {reason}" for reason, places in by_reason.values()]
    return f"{begin} {'; at '.join(clauses)}"


def _why(broke: Breakage) -> str:
    return shorten(broke.reason, LONGEST, placeholder=" …")


def _count(broke: Breakage) -> str:
    return f"{broke.trials} of {broke.total} trials"


def broke_sentences(analysis: Analysis) -> list[str]:
    """Return a sentence for each overload; environments with the same overload share one."""
    names_by_text: dict[str, list[str]] = {}
    swept_cells: set[CellId] = set()
    for sweep in analysis.sweeps:
        swept_cells |= {level.cell for level in sweep.levels}
        for name, broke in sweep.broke.items():
            names_by_text.setdefault(broke_words(sweep.load, broke, sweep.title), []).append(name)
    for arm, each in analysis.broken.items():
        if arm.cell not in swept_cells:
            text = f"overloaded in {arm.cell.label}: {_why(each)} ({_count(each)})"
            names_by_text.setdefault(text, []).append(arm.environment)
    return [f"{join_names(names)}: {text}" for text, names in names_by_text.items()]


def peak_words(load: str, peak: CurvePeak, unit: str) -> str:
    """Return ``61,500 requests/s at 400 connections``."""
    return f"{quantity(peak.value, unit)} at {level_words(load, peak.level)}"


def next_broke(sweep: LoadSweep, environment: str, peak: CurvePeak) -> Breakage | None:
    """Return an environment's overload at the next level above its peak; None without one."""
    above = next((level for level in sweep.levels if level.load > peak.level.load), None)
    return next((each for level, each in sweep.broke.get(environment, ()) if level == above), None)


def peak_doubt(load: str, peak: CurvePeak, above: Breakage | None = None) -> str:
    """Return how certain a peak is: ``highest in 7 of 10 rounds, else at 200 or 800 connections; ...``.

    `above`: the overload at the next level (`next_broke`).
    """
    parts = []
    if peak.total:
        rounds = plural(peak.total, "round")
        highest_words = f"highest in {peak.highest} of {rounds}{', else' if peak.others else ''}"
        highest_words = highest_words if peak.highest else f"highest in none of {rounds}; they peaked"
        parts.append(highest_words + (f" at {_levels(load, peak.others)}" if peak.others else ""))
    if peak.edge == "lowest":
        parts.append("lowest level tested; the peak might be lower")
    elif peak.edge and above is not None:
        parts.append(f"highest level within capacity{'' if above.always else ' in most trials'}")
    elif peak.edge:
        parts.append("highest level with values; the peak might be higher")
    return "; ".join(parts)


def _levels(load: str, levels: Sequence[SweptLevel]) -> str:
    """Return ``200 or 800 connections``; more than three levels as a range."""
    last = level_words(load, levels[-1])
    if len(levels) > 3:
        return f"{level_number(levels[0])} to {last}"
    return f"{', '.join(level_number(each) for each in levels[:-1])} or {last}" if len(levels) > 1 else last


def errors_words(load: str, errors: ErrorsFrom) -> str:
    """Return ``errors from 500 connections (in 1 of 10 rounds; in most from 1,000 connections)``."""
    text = f"errors from {level_words(load, errors.first)}"
    if errors.most == errors.first:
        return f"{text} (in {errors.blocks} of {errors.total} rounds)"
    most = f"; in most from {level_words(load, errors.most)}" if errors.most else ""
    return f"{text} (in {errors.blocks} of {errors.total} rounds{most})"


def peak_cost_words(curve_cost: WholeCost) -> str:
    """Return the ratio of peaks as a cost: ``27.4% [25.9, 28.8]``; a dash if there is none."""
    return cost_of(curve_cost.peak_cost)


def curve_sentences(sweep: LoadSweep, baseline: str) -> list[str]:
    """Return a sentence for each environment: its peak, the cost of its peak, the first errors and overload."""
    metric, sentences = sweep.throughput, []
    curves: dict[str, EnvironmentCurve] = {each.environment: each for each in metric.curves} if metric else {}
    curve_costs = {each.environment: each for each in metric.whole_costs} if metric else {}
    for name in dict.fromkeys([*curves, *sweep.errors, *sweep.broke]):
        parts, peak = [], curves[name].peak if name in curves else None
        if metric is not None and peak is not None:
            doubt = peak_doubt(sweep.load, peak, next_broke(sweep, name, peak))
            parts.append(f"peak {peak_words(sweep.load, peak, metric.unit)}{f' ({doubt})' if doubt else ''}")
        if name in curve_costs and curve_costs[name].peak_cost is not None:
            parts.append(f"the peak costs {peak_cost_words(curve_costs[name])} against {display_name(baseline)}'s")
        if name in sweep.errors:
            parts.append(errors_words(sweep.load, sweep.errors[name]))
        if name in sweep.broke:
            parts.append(broke_words(sweep.load, sweep.broke[name]))
        if parts:
            sentences.append(f"{display_name(name)}: {'; '.join(parts)}")
    return sentences


def curve_label(sweep: LoadSweep, metric: MetricCurve) -> str:
    """Return a metric's label, as matrix and tables have it."""
    return metric_label(sweep.workload, metric.metric, metric.unit)


def curve_title(sweep: LoadSweep) -> str:
    """Return ``web: requests/s over 6 levels of connections``."""
    metric = f"{curve_label(sweep, sweep.headline)} over " if sweep.headline else ""
    return f"{sweep.title}: {metric}{len(sweep.levels)} levels of {sweep.load.replace('_', ' ')}"
