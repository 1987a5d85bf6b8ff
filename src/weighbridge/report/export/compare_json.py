"""Runs compared for machines: the document of ``compare --json``."""

from collections.abc import Sequence

from weighbridge.analysis.between_runs import (
    ChangeRow,
    MetricChanges,
    OwnValues,
    RunPair,
    RunsCompared,
    disturbed_alike,
)
from weighbridge.analysis.compared_run import ComparedRun, FactChange
from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.results import Comparison
from weighbridge.report.export.compare_document import (
    COMPARE_VERSION,
    ChangedCost,
    ChangedValue,
    ChangeJson,
    CompareDocument,
    CostInRun,
    FactRow,
    PairRow,
    RunRow,
)
from weighbridge.report.export.disturbance import disturbance_json
from weighbridge.report.export.json import finite, worsening_json
from weighbridge.report.export.provenance import date_of
from weighbridge.report.text.between_runs import run_letter


def compare_json(comparison: RunsCompared) -> CompareDocument:
    """Give the document of ``compare --json``; infinite numbers are null."""
    return {
        "version": COMPARE_VERSION,
        "runs": [_run(run_letter(number), run) for number, run in enumerate(comparison.runs)],
        "pairs": [_pair(pair, run_letter(0), run_letter(number)) for number, pair in enumerate(comparison.pairs, 1)],
    }


def facts_json(facts: Sequence[FactChange]) -> list[FactRow]:
    """Give facts that changed."""
    return [
        {
            "kind": each.kind, "fact": each.fact, "host": each.place or "here",
            "environments": list(each.environments), "before": each.before or None, "after": each.after or None,
            "of_machine": each.of_machine,
        }
        for each in facts
    ]  # fmt: skip


def _run(letter: str, run: ComparedRun) -> RunRow:
    return {
        "letter": letter, "name": run.name, "run": run.analysis.run_id, "study": run.analysis.study,
        "question": run.analysis.question, "date": date_of(run.created), "version": run.version,
        "trusted": run.analysis.trust.trusted, "noise_floor": run.analysis.trust.noise_floor,
        "disturbance": disturbance_json(run.analysis),
    }  # fmt: skip


def _pair(pair: RunPair, first: str, second: str) -> PairRow:
    return {
        "first": first,
        "second": second,
        "disturbed_alike": disturbed_alike(pair.first, pair.second),
        "facts": facts_json(pair.facts),
        "on_purpose": facts_json(pair.on_purpose),
        "settings": [
            {
                "part": each.part,
                "name": each.name,
                "setting": each.setting,
                "before": each.before,
                "after": each.after,
            }
            for each in pair.settings
        ],
        "only": [
            {"part": each.part, "name": each.name, "run": second if each.second else first} for each in pair.only
        ],
        "costs": [_cost(metric, row) for metric in pair.metrics for row in metric.rows],
        "values": [_value(metric, own) for metric in pair.metrics for own in metric.own],
        "values_not_compared": [{"reason": each.reason, "about": list(each.about)} for each in pair.no_own_values],
    }


def _cost(metric: MetricChanges, row: ChangeRow) -> ChangedCost:
    report = metric.before
    return {
        "environment": row.environment, "aa": row.aa, "workload": report.workload, "level": report.level.factors,
        "metric": report.metric, "unit": report.unit, "better": report.better, "headline": report.headline,
        "resource_use": report.resource_use, "before": _in_run(row.before, report.unit),
        "after": _in_run(row.after, metric.after.unit), "change": _change(row, report.unit), "unknown": row.unknown,
        "verdict": "inconclusive" if row.few else row.verdict,
    }  # fmt: skip


def _in_run(side: Comparison, unit: str) -> CostInRun:
    return {**worsening_json(side.cost, unit), "verdict": side.verdict, "blocks": side.blocks}


def _change(row: ChangeRow, unit: str) -> ChangeJson | None:
    change = row.change
    if change is None:
        return None
    worse, allowed = change.worsening, change.worsening_with_allowance
    return {
        "scale": change.scale, "typical": finite(change.typical), "low": finite(change.low),
        "high": finite(change.high), "change": finite(worse.estimate), "change_low": finite(worse.low),
        "change_high": finite(worse.high), "allowed_low": finite(allowed.low), "allowed_high": finite(allowed.high),
        "change_unit": _unit(change.scale, unit), "exploratory": change.exploratory, "adjusted_p": row.adjusted_p,
        "noise_floor": finite(change.floor), "allowance": change.allowance, "margin": change.margin,
    }  # fmt: skip


def _value(metric: MetricChanges, own: OwnValues) -> ChangedValue:
    report, worse = metric.before, own.worsening
    return {
        "environment": own.environment, "workload": report.workload, "level": report.level.factors,
        "metric": report.metric, "unit": report.unit, "before": own.before, "after": own.after,
        "change": finite(worse.estimate) if worse else None, "change_low": finite(worse.low) if worse else None,
        "change_high": finite(worse.high) if worse else None, "change_unit": _unit(own.scale, report.unit),
    }  # fmt: skip


def _unit(scale: str, unit: str) -> str:
    return "%" if scale == "ratio" else difference_unit(unit)
