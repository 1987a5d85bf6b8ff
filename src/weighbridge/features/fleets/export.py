"""A fleet for machines: the document of ``fleet report --json``."""

import math

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.run_result import finite
from weighbridge.features.fleets.analysis import FleetMetric, FleetResult, FleetRun
from weighbridge.features.fleets.changes import FleetsCompared, FleetShift, controls, effect_name
from weighbridge.features.fleets.json_document import (
    FLEET_VERSION,
    AgainstRow,
    FleetDocument,
    FleetEffectRow,
    FleetInterval,
    FleetMetricRow,
    FleetRunRow,
    ShiftRow,
    SpreadRow,
)
from weighbridge.features.fleets.statistics import MachineEffect, PairEffect
from weighbridge.features.fleets.text import distance, own_value, why_left_out
from weighbridge.report.export.provenance import date_of
from weighbridge.statistics import Interval


def fleet_json(fleet: FleetResult, compared: FleetsCompared | None = None) -> FleetDocument:
    """Return the document of ``fleet report --json``; infinite numbers are null."""
    return {
        "version": FLEET_VERSION,
        "folder": str(fleet.folder),
        "study": fleet.study,
        "question": fleet.question,
        "baseline": fleet.baseline,
        "margin": fleet.margin,
        "machines": [{"machine": name, "facts": dict(facts)} for name, facts in fleet.machines.items()],
        "runs": [_run(each) for each in fleet.runs],
        "left_out": [
            {"name": each.name, "reason": each.reason, "why": why_left_out(each, fleet)} for each in fleet.left_out
        ],
        "odd_machines": [
            {
                "machine": name,
                "unlike": [
                    {"fact": each.fact, "value": each.value or None, "usual": each.usual or None,
                     "peers": each.peers, "of": each.total}
                    for each in fleet.unlike_peers(name)
                ],
            }
            for name in fleet.outlier_machines
        ],
        "odd_pairs": [list(pair) for pair in fleet.outlier_pairs],
        "metrics": [_metric(each) for each in fleet.metrics],
        "controls": [_shift(each) for each in controls(fleet)],
        "against": _against(compared) if compared is not None else None,
    }  # fmt: skip


def _run(run: FleetRun) -> FleetRunRow:
    return {
        "name": run.name, "machines": list(run.machines), "purpose": run.purpose, "run": run.run_id,
        "date": date_of(run.created), "blocks": run.blocks, "trusted": run.trusted, "unfinished": run.unfinished,
        "disturbed": run.disturbed, "trials": run.trials, "failed": run.failed,
    }  # fmt: skip


def _metric(metric: FleetMetric) -> FleetMetricRow:
    report, fleet = metric.report, metric.fleet
    return {
        "environment": metric.environment, "own": metric.is_own_value, "workload": report.workload,
        "level": report.level.factors, "metric": report.metric, "unit": report.unit, "better": report.better,
        "scale": metric.scale, "effect_unit": _effect_unit(metric),
        "machines": len({name for each in metric.counted for name in each.run.machines}),
        "typical": _place(metric, fleet.typical) if fleet is not None else None,
        "next": _place(metric, fleet.prediction) if fleet is not None and fleet.prediction is not None else None,
        "spread": _spread(metric),
        "judged_together": metric.family,
        "effects": [_effect(metric, each) for each in (fleet.machines if fleet is not None else ())],
        "pairs": [_effect(metric, each) for each in (fleet.pairs if fleet is not None else ())],
        "runs": [
            {
                "name": each.run.name, "blocks": each.blocks,
                "effect": _place(metric, each.effect) if each.effect is not None else None,
                "not_counted": each.reason,
            }
            for each in metric.runs
        ],
    }  # fmt: skip


def _effect_unit(metric: FleetMetric) -> str:
    return "%" if metric.scale == "ratio" else difference_unit(metric.report.unit)


def _place(metric: FleetMetric, at: Interval) -> FleetInterval:
    """Return the position of a run or the fleet: a cost, or an own value in its unit."""
    return _interval(own_value(metric, at) if metric.is_own_value else distance(metric, at))


def _interval(interval: Interval) -> FleetInterval:
    return {"estimate": finite(interval.estimate), "low": finite(interval.low), "high": finite(interval.high)}


def _spread(metric: FleetMetric) -> SpreadRow | None:
    if metric.fleet is None:
        return None
    spread = metric.fleet.spread
    return {
        "between_machines": _deviation(metric, spread.between),
        "between_machines_high": _deviation(metric, spread.between_high),
        "pairs": _deviation(metric, spread.pair),
        "between_sessions": _deviation(metric, spread.session),
        "within_run": _deviation(metric, spread.within),
    }  # fmt: skip


def _deviation(metric: FleetMetric, deviation: float | None) -> float | None:
    if deviation is None or not math.isfinite(deviation):
        return None
    return 100 * math.expm1(min(deviation, 700.0)) if metric.scale == "ratio" else deviation


def _effect(metric: FleetMetric, effect: MachineEffect | PairEffect) -> FleetEffectRow:
    return {
        "machines": [effect.machine] if isinstance(effect, MachineEffect) else list(effect.machines),
        "distance": _interval(distance(metric, effect.interval)), "adjusted_p": effect.adjusted_p,
        "odd": metric.is_outlier(effect), "runs": effect.runs if isinstance(effect, MachineEffect) else None,
    }  # fmt: skip


def _shift(shift: FleetShift) -> ShiftRow:
    report = shift.metric.report
    return {
        "environment": shift.metric.environment, "own": shift.metric.is_own_value, "workload": report.workload,
        "level": report.level.factors, "metric": report.metric, "effect_unit": _effect_unit(shift.metric),
        "typical": _interval(distance(shift.metric, shift.fleet.typical)) if shift.fleet is not None else None,
        "proven": shift.proven, "unlike": [effect_name(each) for each in shift.unlike],
        "changes": [
            {
                "machines": list(row.machines), "change": _interval(distance(shift.metric, row.shift)),
                "adjusted_p": row.adjusted_p, "verdict": None if shift.metric.is_own_value else row.verdict,
            }
            for row in shift.rows
        ],
    }  # fmt: skip


def _against(compared: FleetsCompared) -> AgainstRow:
    return {
        "folder": str(compared.before.folder), "only_before": list(compared.only_before),
        "only_after": list(compared.only_after), "other_machine_id": list(compared.other_ids),
        "shifts": [_shift(each) for each in compared.shifts],
        "not_compared": [
            {
                "environment": each.metric.environment, "own": each.metric.is_own_value,
                "workload": each.metric.report.workload, "level": each.metric.report.level.factors,
                "metric": each.metric.report.metric, "why": each.reason,
            }
            for each in compared.not_compared
        ],
    }  # fmt: skip
