"""Curves for machines: the part of ``report --json`` about rising loads."""

import math

from weighbridge.analysis.results import Analysis
from weighbridge.analysis.sweep import EnvironmentCurve, LoadSweep, MetricCurve
from weighbridge.report.export.document import CurveRow, Peak, PeakCost
from weighbridge.report.export.within import within_json
from weighbridge.statistics import Cost


def curves_json(analysis: Analysis) -> list[CurveRow]:
    """Give each throughput's curves."""
    return [
        _curve(analysis, sweep, metric, curve)
        for sweep in analysis.sweeps
        for metric in sweep.metrics
        if metric.throughput
        for curve in metric.curves
    ]


def _curve(analysis: Analysis, sweep: LoadSweep, metric: MetricCurve, curve: EnvironmentCurve) -> CurveRow:
    whole = next((each for each in metric.whole if each.environment == curve.environment), None)
    errors, peak = sweep.errors.get(curve.environment), curve.peak
    found: Peak | None = None
    if peak is not None:
        found = {"level": peak.level.text, "value": peak.value, "highest": peak.highest, "of": peak.of}
    return {
        "environment": curve.environment, **within_json(analysis, curve.environment), "workload": sweep.workload,
        "metric": metric.metric, "unit": metric.unit, "load": sweep.load, "fixed": sweep.fixed, "peak": found,
        "peak_cost": _ratio(whole.peak_cost if whole else None), "errors_from": errors.first.text if errors else None,
    }  # fmt: skip


def _ratio(cost: Cost | None) -> PeakCost | None:
    """A ratio to the baseline; a single block has no interval."""
    if cost is None or cost.scale != "ratio":
        return None
    limits = (cost.low, cost.high) if cost.blocks > 1 else (None, None)
    low, high = (each if each is not None and math.isfinite(each) else None for each in limits)
    return {"typical": cost.typical, "low": low, "high": high, "blocks": cost.blocks}
