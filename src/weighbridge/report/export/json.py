"""A run for machines: the document of ``report --json``."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from pydantic import BaseModel

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.bottleneck import Bottleneck
from weighbridge.analysis.comparisons import cost_unit, difference_unit
from weighbridge.analysis.curves import EnvironmentCurve, LoadSweep, MetricCurve
from weighbridge.analysis.judgement import Family, family_of
from weighbridge.analysis.latency import PERCENTS, Latency, LatencyReport
from weighbridge.analysis.program_use import program_use
from weighbridge.analysis.results import Analysis, Comparison, Explanation, MetricReport, Remark
from weighbridge.model.power_cut import PowerCut
from weighbridge.report.export.document import (
    VERSION,
    CostFigures,
    CostRow,
    CurveRow,
    EnvironmentRow,
    ExplanationRow,
    Hidden,
    Interval,
    MechanismRow,
    MetricPlace,
    Noise,
    Pairs,
    Peak,
    PeakCost,
    Penalty,
    Percentile,
    Percentiles,
    PlaceEffectRow,
    PowerCutRow,
    ProgramRow,
    RemarkRow,
    Report,
    SessionRow,
    Step,
)
from weighbridge.report.export.provenance import provenance, utc
from weighbridge.report.export.within import within_json
from weighbridge.report.text.explanation import explanation_sentence
from weighbridge.report.text.remarks import remark_text
from weighbridge.report.text.steps import change_text
from weighbridge.statistics import Cost, looks_share
from weighbridge.store.run import RunStore


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
    curve_cost = next((each for each in metric.whole_costs if each.environment == curve.environment), None)
    errors, peak = sweep.errors.get(curve.environment), curve.peak
    peak_row: Peak | None = None
    if peak is not None:
        peak_row = {"level": peak.level.text, "value": peak.value, "highest": peak.highest, "of": peak.total}
    return {
        "environment": curve.environment, **within_json(analysis, curve.environment), "workload": sweep.workload,
        "metric": metric.metric, "unit": metric.unit, "load": sweep.load, "fixed": sweep.fixed, "peak": peak_row,
        "peak_cost": _ratio(curve_cost.peak_cost if curve_cost else None),
        "errors_from": errors.first.text if errors else None,
    }  # fmt: skip


def _ratio(cost: Cost | None) -> PeakCost | None:
    """A ratio to the baseline; a single block has no interval."""
    if cost is None or cost.scale != "ratio":
        return None
    limits = (cost.low, cost.high) if cost.blocks > 1 else (None, None)
    low, high = (each if each is not None and math.isfinite(each) else None for each in limits)
    return {"typical": cost.typical, "low": low, "high": high, "blocks": cost.blocks}


def programs_json(store: RunStore, analysis: Analysis) -> list[ProgramRow]:
    """One object per workload, level, role and environment, with medians over the blocks."""
    cells = {trial.label: trial.cell for trial in analysis.trials}
    return [
        {
            "environment": each.environment,
            **within_json(analysis, each.environment),
            "workload": cells[label].workload,
            "level": cells[label].level.factors,
            "role": each.role,
            "blocks": each.blocks,
            "medians": dict(each.medians),
        }
        for label, rows in program_use(store, analysis).items()
        for each in rows
    ]


def remark_json(remark: Remark) -> RemarkRow:
    """Return ``code``, the fields of the remark's class under their names, and ``text``."""
    return {"code": remark.code, **_plain(remark), "text": remark_text(remark)}


def _plain(value: object) -> Any:
    """A value as JSON has it: data as objects by the names of its fields, numbers that are not finite as null."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=True)
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        named = getattr(value, "_asdict", None)
        return named() if named else [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class RemarkTable:
    """The remarks of a document, each once."""

    def __init__(self) -> None:
        self.rows: list[RemarkRow] = []
        self._places: dict[Remark, int] = {}

    def places(self, remarks: Iterable[Remark]) -> list[int]:
        """Return where these remarks are in `rows`; those that are not yet there are added."""
        return [self._place(each) for each in remarks]

    def _place(self, remark: Remark) -> int:
        place = self._places.setdefault(remark, len(self.rows))
        if place == len(self.rows):
            self.rows.append(remark_json(remark))
        return place


def report_json(store: RunStore, analysis: Analysis | None = None) -> Report:
    """Give the document of ``report --json``, as docs/reference/json.md describes it; infinite numbers are null."""
    analysis, origin = analysis or analyse(store), provenance(store)
    noise, trust, remarks = _noise(analysis.trust.noise), analysis.trust, RemarkTable()
    costs: list[CostRow] = [
        {**cost_json(analysis, report, row), "pairs": _pairs(row), "remarks": remarks.places(row.remarks)}
        for report in analysis.metrics
        for row in report.comparisons
    ]
    steps: list[Step] = [
        {**cost_json(analysis, ladder.report, step.row, step.previous), "pairs": _pairs(step.row),
         "remarks": remarks.places(step.row.remarks), "against": step.previous, "change": change_text(step.changes)}
        for ladder in analysis.ladder
        for step in ladder.steps
    ]  # fmt: skip
    explained = [_explanation(analysis, each) for each in analysis.explanations]
    judged: list[CostFigures] = [*costs, *steps, *(part for each in explained for part in _parts(each))]
    tested = Counter(each["family"] for each in judged if each["adjusted_p"] is not None)
    return {
        "version": VERSION,
        "study": analysis.study,
        "run": analysis.run_id,
        "question": analysis.question,
        "baseline": analysis.baseline,
        "aa_arm": analysis.aa_arm,
        "equivalence": analysis.equivalence,
        "looks": analysis.looks.total,
        "error_share": looks_share(analysis.looks),
        "control_error_share": looks_share(analysis.control_looks),
        "families": {family: tested[family] for family in Family},
        "date": origin["date"],
        "kernel": origin["kernel"],
        "engine": origin["engine"],
        "versions": origin["versions"],
        "hosts": origin["hosts"],
        "paths": origin["paths"],
        "noise_floor": trust.noise_floor,
        "noise_low": noise["noise_low"],
        "noise_high": noise["noise_high"],
        "trusted": trust.trusted,
        "trust_reason": trust.reason,
        "shifted": [_metric_place(each) for each in trust.shifted],
        "unchecked": [_metric_place(each) for each in trust.unchecked],
        "disturbed": analysis.disturbance.heavy,
        "visible_shift": trust.visible_shift,
        "place_effects": place_effects_json(analysis),
        "sessions": [_session(analysis, number) for number in range(len(analysis.sessions.sessions))],
        "mixed_blocks": list(analysis.sessions.mixed),
        "environments": _environments(store, analysis),
        "notices": remarks.places(analysis.notices),
        "confounders": remarks.places(analysis.confounders),
        "costs": costs,
        "ladder": steps,
        "explanations": explained,
        "remarks": remarks.rows,
        "percentiles": [_percentiles(analysis, report, row) for report in analysis.latencies for row in report.rows],
        "curves": curves_json(analysis),
        "bottlenecks": [
            {"environment": arm.environment, **within_json(analysis, arm.environment), "workload": arm.cell.workload,
             "level": arm.cell.level.factors, "trials": dict(each.by_kind), "of": each.total}
            for arm, each in analysis.bottlenecks.items()
        ],
        "broke": [
            {"environment": arm.environment, **within_json(analysis, arm.environment), "workload": arm.cell.workload,
             "level": arm.cell.level.factors, "broke": each.trials, "of": each.total, "reason": each.reason}
            for arm, each in analysis.broken.items()
        ],
        "left_out": [
            {"environment": each.environment, "kind": each.kind, "why": each.why, "remedy": each.remedy}
            for each in analysis.left_out
        ],
        "trial_lengths": [
            {
                "workload": each.workload, "level": each.level.factors,
                "asked_s": each.asked_s, "chosen_s": each.chosen_s, "beside_s": each.beside_s,
            }
            for each in analysis.lengths
        ],
        "time_shared": analysis.time_shared,
        "programs": programs_json(store, analysis),
        "power_cuts": [power_cut_json(cut) for cut in analysis.power_cuts],
    }  # fmt: skip


def _environments(store: RunStore, analysis: Analysis) -> dict[str, EnvironmentRow]:
    """The environments that were measured, as the study has them."""
    arms = {name: (kind, options, aa_of) for name, kind, options, aa_of in store.environments()}
    written = store.study_file().environments
    rows: dict[str, EnvironmentRow] = {}
    for name in analysis.environments:
        kind, options, aa_of = arms[name]
        own = written[name].workloads if name in written else None
        rows[name] = {
            **within_json(analysis, name), "kind": kind, "aa_of": aa_of, "options": _plain(options),
            "workloads": _plain(own or {}),
        }  # fmt: skip
    return rows


def _metric_place(report: MetricReport) -> MetricPlace:
    return {"workload": report.workload, "metric": report.metric, "level": report.level.factors}


def _pairs(row: Comparison) -> Pairs:
    return {
        "block": [pair.block for pair in row.pairs],
        "baseline": [pair.baseline for pair in row.pairs],
        "environment": [pair.value for pair in row.pairs],
    }


def place_effects_json(analysis: Analysis) -> list[PlaceEffectRow]:
    """Give the metrics whose value depends on a trial's place in its block; positive: it rises with the place."""
    units = {each.metric_id: each.unit for each in analysis.metrics}
    return [
        {
            "workload": each.workload, "metric": each.metric, "level": each.level.factors,
            "per_place": 100 * math.expm1(each.per_place) if each.logs else each.per_place,
            "per_place_unit": "%" if each.logs else difference_unit(units[each.metric_id]),
            "adjusted_p": each.adjusted_p, "blocks": each.blocks,
        }
        for each in analysis.trust.places
    ]  # fmt: skip


def power_cut_json(cut: PowerCut) -> PowerCutRow:
    """Give a check by power cut, with its verdict; also of ``durability --json``."""
    return {**asdict(cut), "verdict": cut.verdict.value}  # type: ignore[typeddict-item]


def _percentiles(analysis: Analysis, report: LatencyReport, row: Latency) -> Percentiles:
    percentiles: dict[str, Percentile] = {}
    for percent, value, cost in zip(PERCENTS, row.percentiles, row.costs, strict=True):
        ratio = cost if cost is not None and cost.scale == "ratio" else None
        typical = finite(ratio.typical) if ratio else None
        percentiles[f"{percent:g}"] = {
            "value": value,
            **penalty_json(cost, "s"),
            "typical": typical,
            **limits_of(ratio),
        }
    return {
        "environment": row.environment,
        **within_json(analysis, row.environment),
        "workload": report.workload,
        "metric": report.metric,
        "level": report.level.factors,
        "unit": "s",
        "runs": row.runs,
        "requests": row.requests,
        "percentiles": percentiles,
    }


def hidden_json(limit: Bottleneck | None) -> Hidden | None:
    """The limit that hides a difference, for machines."""
    if limit is None:
        return None
    return {
        "by": limit.kind, "share": limit.share, "rate": limit.rate, "unit": limit.unit or None,
        "trials": limit.trials, "of": limit.total,
    }  # fmt: skip


def finite(value: float | None) -> float | None:
    """A number that JSON has; None if it has not."""
    return value if value is not None and math.isfinite(value) else None


def limits_of(cost: Cost | None) -> Interval:
    """The interval; a single block has none."""
    bounded = cost if cost is not None and cost.blocks > 1 else None
    return {"low": finite(bounded.low), "high": finite(bounded.high)} if bounded else {"low": None, "high": None}


def penalty_json(cost: Cost | None, unit: str) -> Penalty:
    """Return the cost as sentences say it: positive is worse, in percent or in the metric's `unit`."""
    if cost is None:
        return {"cost": None, "cost_low": None, "cost_high": None, "cost_unit": None}
    worse, bounded = cost.penalty, cost.blocks > 1
    return {
        "cost": finite(worse.estimate),
        "cost_low": finite(worse.low) if bounded else None,
        "cost_high": finite(worse.high) if bounded else None,
        "cost_unit": cost_unit(cost.scale, unit),
    }


def _session(analysis: Analysis, number: int) -> SessionRow:
    """One session; a fact of sites has their environments before it."""
    sessions = analysis.sessions
    facts = {": ".join([*filter(None, [", ".join(each.environments)]), each.fact]): each.values[number]
             for each in sessions.differences}  # fmt: skip
    session = sessions.sessions[number]
    return {"started": utc(session.started_at), "blocks": list(session.blocks), "facts": facts}


def _noise(noise: tuple[float, float] | None) -> Noise:
    low, high = noise or (None, None)
    return {"noise_low": low, "noise_high": high}


def _explanation(analysis: Analysis, explanation: Explanation) -> ExplanationRow:
    report = explanation.report

    def part(row: Comparison, against: str, of: MetricReport = report) -> CostFigures:
        family = Family.MECHANISMS if of is report else Family.COUNTERS
        return cost_json(analysis, of, row, against, family)

    together, left = explanation.interaction, explanation.unexplained
    mechanisms: list[MechanismRow] = [
        {
            "kind": each.mechanism.kind,
            "title": each.mechanism.title,
            "switched": each.mechanism.switched,
            "off_with": list(each.mechanism.off_with),
            "remedy": each.mechanism.remedy,
            "source": each.mechanism.source,
            "why_not": each.why_not or None,
            "proof": {"state": each.proof, "with": each.facts[0] or None, "without": each.facts[1] or None},
            "rules": {"with": each.rules[0] or None, "without": each.rules[1] or None},
            "without": each.without or None,
            "cost": part(each.row, each.without) if each.row is not None else None,
            "counters": [part(moved.row, each.without, moved.report) for moved in each.counters],
        }
        for each in explanation.mechanisms
    ]
    return {
        "environment": explanation.environment,
        **_metric_place(report),
        "text": explanation_sentence(analysis, explanation),
        "crossed": explanation.crossed,
        "mechanisms": mechanisms,
        "pairs": [
            {"one": each.one.kind, "other": each.other.kind, "cost": part(each.row, explanation.environment)}
            for each in explanation.pairs
        ],
        "interaction": part(together, explanation.unexplained_arm) if together is not None else None,
        "unexplained": part(left, analysis.baseline) if left is not None else None,
    }


def _parts(explanation: ExplanationRow) -> Iterator[CostFigures]:
    """The costs of an explanation."""
    for mechanism in explanation["mechanisms"]:
        yield from (part for part in (mechanism["cost"], *mechanism["counters"]) if part is not None)
    yield from (pair["cost"] for pair in explanation["pairs"])
    yield from (part for part in (explanation["interaction"], explanation["unexplained"]) if part is not None)


def cost_json(
    analysis: Analysis,
    report: MetricReport,
    row: Comparison,
    against: str | None = None,
    judged_in: Family = Family.LADDER,
) -> CostFigures:
    """The figures of one object of ``costs``, or of ``ladder``: the cost ``against`` another than the baseline.

    Then it is ``judged_in`` this family.
    """
    family = None if row.aa else family_of(report) if against is None else judged_in
    cost = row.cost
    ratio = cost if cost is not None and cost.scale == "ratio" else None
    aa = report.aa.cost if report.aa is not None else None
    same_scale = cost is not None and aa is not None and aa.scale == cost.scale
    return {
        "environment": row.environment,
        **within_json(analysis, row.environment),
        "aa": row.aa,
        **_metric_place(report),
        "unit": report.unit,
        "better": report.better,
        "headline": report.headline,
        "resource_use": report.resource_use,
        "family": family,
        "baseline_value": row.baseline_value if row.blocks or against is not None else report.baseline_value,
        "value": row.value,
        **penalty_json(cost, report.unit),
        **_noise(report.noise if same_scale else None),
        "scale": cost.scale if cost else None,
        "typical": finite(ratio.typical) if ratio else None,
        **limits_of(ratio),
        "geometric": finite(ratio.geometric.estimate) if ratio and ratio.geometric else None,
        "arithmetic": finite(ratio.arithmetic.estimate) if ratio else None,
        "blocks": row.blocks,
        "exploratory": cost.exploratory if cost else None,
        "adjusted_p": row.adjusted_p,
        "verdict": None if row.aa else row.verdict,
        "visible_cost": finite(row.visible.cost) if row.visible else None,
        "blocks_to_settle": row.visible.blocks if row.visible else None,
        "seconds_to_settle": row.visible.seconds if row.visible else None,
        "baseline_emulated": within_json(analysis, against or analysis.baseline)["emulated"],
        "unresolved": list(row.unresolved),
        "hidden": hidden_json(row.hidden),
    }
