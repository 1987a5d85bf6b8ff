"""A run for machines: how the document of ``report --json`` is filled from an analysis."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from pydantic import BaseModel

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.bottleneck import Bottleneck
from weighbridge.analysis.comparisons import difference_unit
from weighbridge.analysis.conditions import NO_HYPERVISOR
from weighbridge.analysis.curves import EnvironmentCurve, LoadSweep, MetricCurve
from weighbridge.analysis.judgement import Family, family_of
from weighbridge.analysis.latency import PERCENTS, Latency, LatencyReport
from weighbridge.analysis.program_use import program_use
from weighbridge.analysis.results import Analysis, Comparison, Explanation, LadderStep, MetricReport, Remark
from weighbridge.analysis.run_result import (
    VERDICT_CODES,
    VERSION,
    ArmCost,
    Bottlenecks,
    Curve,
    ExplainedCost,
    HiddenBy,
    LimitAnswer,
    MatchedRules,
    MeasuredCost,
    MeasuredEnvironment,
    MechanismPairCost,
    MechanismProof,
    MechanismResult,
    MetricPlace,
    Overloaded,
    Pairs,
    Peak,
    PeakCost,
    Percentile,
    Percentiles,
    PlaceboResult,
    PlaceEffectResult,
    PowerCutResult,
    ProgramMedians,
    RemarkRow,
    RunResult,
    SessionResult,
    Step,
    TrialLengths,
    document_json,
)
from weighbridge.model.address import ArmId, HasMetricId
from weighbridge.model.power_cut import PowerCut
from weighbridge.report.export.next_steps import next_steps
from weighbridge.report.export.provenance import provenance, utc
from weighbridge.report.text.answer import answer
from weighbridge.report.text.environments import names_of, use_display_names
from weighbridge.report.text.explanation import explanation_sentence
from weighbridge.report.text.formatting import SPACE
from weighbridge.report.text.remarks import remark_text
from weighbridge.report.text.steps import change_text
from weighbridge.report.text.trust import checked_sentence
from weighbridge.statistics import Cost, looks_share
from weighbridge.store.run import RunStore


def report_json(
    store: RunStore,
    analysis: Analysis | None = None,
    limits: Iterable[LimitAnswer] = (),
    *,
    yes: bool = False,
    lasting: bool = True,
) -> dict[str, Any]:
    """Return the document of ``report --json`` (docs/reference/json.md); ``yes``, ``lasting`` as in `next_steps`."""
    return document_json(run_result(store, analysis or analyse(store), limits, yes=yes, lasting=lasting))


def run_result(
    store: RunStore,
    analysis: Analysis,
    limits: Iterable[LimitAnswer] = (),
    *,
    yes: bool = False,
    lasting: bool = True,
) -> RunResult:
    """Return the result of a run; ``limits`` are those of ``--fail-if``. ``yes``, ``lasting`` as in `next_steps`."""
    trust, remarks, sessions = analysis.trust, RemarkTable(), analysis.sessions
    costs = tuple(
        MeasuredCost(**vars(arm_cost(analysis, report, row)), **_basis(row, remarks))
        for report in analysis.metrics
        for row in report.comparisons
    )
    steps = tuple(
        _step(analysis, ladder.report, step, remarks) for ladder in analysis.ladder for step in ladder.steps
    )
    explained = tuple(_explanation(analysis, each) for each in analysis.explanations)
    judged = [*costs, *steps, *(part for each in explained for part in _parts(each))]
    tested = Counter(each.family for each in judged if each.adjusted_p is not None)
    with use_display_names(names_of(analysis)):
        sentence, control_sentence = (
            text.replace(SPACE, " ") for text in (answer(analysis), checked_sentence(analysis))
        )
        steps_ahead = tuple(next_steps(store, analysis, yes=yes, lasting=lasting))
    return RunResult(
        version=VERSION,
        study=analysis.study,
        run=analysis.run_id,
        directory=str(store.directory),
        answer=sentence,
        control_sentence=control_sentence,
        question=analysis.question,
        baseline=analysis.baseline,
        control=analysis.aa_arm,
        margin=analysis.equivalence,
        looks=analysis.looks.total,
        error_share=looks_share(analysis.looks),
        control_error_share=looks_share(analysis.control_looks),
        families={family: tested[family] for family in Family},
        **vars(provenance(store)),
        noise_floor=trust.noise_floor,
        **_noise(trust.noise),
        control_passed=trust.trusted,
        control_reason=trust.reason,
        control_failed=tuple(MetricPlace(**_place(each)) for each in trust.shifted),
        control_unchecked=tuple(MetricPlace(**_place(each)) for each in trust.unchecked),
        disturbed=analysis.disturbance.heavy,
        visible_shift=trust.visible_shift,
        place_effects=_place_effects(analysis),
        sessions=tuple(_session(analysis, number) for number in range(len(sessions.sessions))),
        mixed_rounds=sessions.mixed,
        environments=_environments(store, analysis),
        notices=remarks.places(analysis.notices),
        confounders=remarks.places(analysis.confounders),
        costs=costs,
        ladder=steps,
        explanations=explained,
        remarks=tuple(remarks.rows),
        percentiles=tuple(
            _percentiles(analysis, report, row) for report in analysis.latencies for row in report.rows
        ),
        curves=tuple(
            _curve(analysis, sweep, metric, curve)
            for sweep in analysis.sweeps
            for metric in sweep.metrics
            if metric.throughput
            for curve in metric.curves
        ),
        bottlenecks=tuple(
            Bottlenecks(**_in_cell(analysis, arm), trials=each.by_kind, of=each.total)
            for arm, each in analysis.bottlenecks.items()
        ),
        overloaded=tuple(
            Overloaded(**_in_cell(analysis, arm), overloaded=each.trials, of=each.total, reason=each.reason)
            for arm, each in analysis.broken.items()
        ),
        left_out=analysis.left_out,
        trial_lengths=tuple(
            TrialLengths(**each.model_dump(exclude={"level"}), level=each.level.factors) for each in analysis.lengths
        ),
        time_shared=analysis.time_shared,
        programs=_programs(store, analysis),
        power_cuts=tuple(map(power_cut_result, analysis.power_cuts)),
        limits=tuple(limits),
        next_steps=steps_ahead,
    )


# -- parts that several documents have -----------------------------------------------------------------


def within(analysis: Analysis, environment: str) -> dict[str, Any]:
    """Return the fields of `Within`; of a run of an older version no hypervisors are known."""
    hypervisors = analysis.isolation.get(environment, NO_HYPERVISOR)
    return {"layers": hypervisors.layers, "emulated": hypervisors.emulated}


def in_environment(analysis: Analysis, environment: str) -> dict[str, Any]:
    """Return the fields of `InEnvironment`."""
    return {"environment": environment, **within(analysis, environment)}


def penalty(cost: Cost | None, unit: str) -> dict[str, Any]:
    """Return the fields of `Penalty`: in percent, or in the metric's ``unit``. A single round has no interval."""
    if cost is None:
        return {"cost": None, "cost_low": None, "cost_high": None, "cost_unit": None}
    worse = cost.penalty
    low, high = (worse.low, worse.high) if cost.blocks > 1 else (None, None)
    cost_unit = "%" if cost.scale == "ratio" else difference_unit(unit)
    return {"cost": worse.estimate, "cost_low": low, "cost_high": high, "cost_unit": cost_unit}


def limits_of(cost: Cost | None) -> dict[str, Any]:
    """Return the fields of `RatioLimits`; a single round has no interval."""
    low, high = (cost.low, cost.high) if cost is not None and cost.blocks > 1 else (None, None)
    return {"low": low, "high": high}


def hidden_by(limit: Bottleneck | None) -> HiddenBy | None:
    """Return the limit that hides a difference."""
    if limit is None:
        return None
    return HiddenBy(
        by=limit.kind,
        share=limit.share,
        rate=limit.rate,
        unit=limit.unit or None,
        trials=limit.trials,
        of=limit.total,
    )


def power_cut_result(cut: PowerCut) -> PowerCutResult:
    """Return a check by power cut with its verdict; ``durability --json`` has it, too."""
    return PowerCutResult(**asdict(cut), verdict=cut.verdict)


def _in_cell(analysis: Analysis, arm: ArmId) -> dict[str, Any]:
    fields_of_cell = {"workload": arm.cell.workload, "level": arm.cell.level.factors}
    return in_environment(analysis, arm.environment) | fields_of_cell


def _place(of: HasMetricId) -> dict[str, Any]:
    return {"workload": of.workload, "metric": of.metric, "level": of.level.factors}


def _noise(noise: tuple[float, float] | None) -> dict[str, Any]:
    low, high = noise or (None, None)
    return {"noise_low": low, "noise_high": high}


# -- remarks -------------------------------------------------------------------------------------------


def remark_json(remark: Remark) -> RemarkRow:
    """Return ``code``, the fields of the remark's class under their names, and ``text``."""
    return {"code": remark.code, **_plain(remark), "text": remark_text(remark)}


def _plain(value: object) -> Any:
    """Return a value as JSON has it: data as objects by the names of its fields, infinite numbers as null."""
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

    def places(self, remarks: Iterable[Remark]) -> tuple[int, ...]:
        """Return the indices of these remarks in `rows`, after adding the new ones."""
        return tuple(self._place(each) for each in remarks)

    def _place(self, remark: Remark) -> int:
        place = self._places.setdefault(remark, len(self.rows))
        if place == len(self.rows):
            self.rows.append(remark_json(remark))
        return place


# -- costs ---------------------------------------------------------------------------------------------


def arm_cost(
    analysis: Analysis,
    report: MetricReport,
    row: Comparison,
    judged_in: Family | None = None,
) -> ArmCost:
    """Return a cost, ``judged_in`` another family than its metric's costs if that is given."""
    cost, aa = row.cost, report.aa.cost if report.aa is not None else None
    ratio = cost if cost is not None and cost.scale == "ratio" else None
    same_scale = cost is not None and aa is not None and aa.scale == cost.scale
    return ArmCost(
        **in_environment(analysis, row.environment),
        **_place(report),
        **penalty(cost, report.unit),
        **limits_of(ratio),
        **_noise(report.noise if same_scale else None),
        unit=report.unit,
        better=report.better,
        primary=report.headline,
        resource_use=report.resource_use,
        control=row.aa,
        family=None if row.aa else judged_in or family_of(report),
        baseline_value=row.baseline_value if row.blocks or judged_in else analysis.references(report)[row.against],
        value=row.value,
        scale=cost.scale if cost else None,
        typical=ratio.typical if ratio else None,
        geometric=ratio.geometric.estimate if ratio and ratio.geometric else None,
        arithmetic=ratio.arithmetic.estimate if ratio else None,
        rounds=row.blocks,
        exploratory=cost.exploratory if cost else None,
        adjusted_p=row.adjusted_p,
        verdict=None if row.aa else VERDICT_CODES[row.verdict],
        visible_cost=row.visible.cost if row.visible else None,
        rounds_to_settle=row.visible.blocks if row.visible else None,
        seconds_to_settle=row.visible.seconds if row.visible else None,
        baseline_emulated=analysis.isolation.get(row.against, NO_HYPERVISOR).emulated,
        unresolved=row.unresolved,
        hidden=hidden_by(row.hidden),
    )


def _basis(row: Comparison, remarks: RemarkTable) -> dict[str, Any]:
    """Return what a cost is computed from, and its remarks."""
    numbers, baseline, environment = zip(*row.pairs, strict=True) if row.pairs else ((), (), ())
    pairs = Pairs(round=numbers, baseline=baseline, environment=environment)
    return {"against": row.against, "pairs": pairs, "remarks": remarks.places(row.remarks)}


def _step(analysis: Analysis, report: MetricReport, step: LadderStep, remarks: RemarkTable) -> Step:
    cost = vars(arm_cost(analysis, report, step.row, Family.LADDER))
    return Step(**cost, **_basis(step.row, remarks), change=change_text(step.changes))


def _explanation(analysis: Analysis, explanation: Explanation) -> ExplainedCost:
    report = explanation.report

    def part(row: Comparison, of: MetricReport = report) -> ArmCost:
        return arm_cost(analysis, of, row, Family.MECHANISMS if of is report else Family.COUNTERS)

    together, left = explanation.interaction, explanation.unexplained
    mechanisms = tuple(
        MechanismResult(
            **each.mechanism.model_dump(include={"kind", "title", "switched", "off_with", "remedy", "source"}),
            why_not=each.why_not or None,
            proof=MechanismProof(state=each.proof, on=each.facts[0] or None, off=each.facts[1] or None),
            rules=MatchedRules(on=each.rules[0] or None, off=each.rules[1] or None),
            without=each.without or None,
            cost=part(each.row) if each.row is not None else None,
            counters=tuple(part(moved.row, moved.report) for moved in each.counters),
        )
        for each in explanation.mechanisms
    )
    return ExplainedCost(
        environment=explanation.environment,
        **_place(report),
        text=explanation_sentence(analysis, explanation),
        crossed=explanation.crossed,
        mechanisms=mechanisms,
        pairs=tuple(
            MechanismPairCost(one=each.one.kind, other=each.other.kind, cost=part(each.row))
            for each in explanation.pairs
        ),
        interaction=part(together) if together is not None else None,
        unexplained=part(left) if left is not None else None,
        placebo=PlaceboResult(
            arm=explanation.placebo_arm,
            cost=part(explanation.placebo),
            excludes_zero=explanation.placebo_excludes_zero,
        )
        if explanation.placebo is not None
        else None,
    )


def _parts(explanation: ExplainedCost) -> Iterator[ArmCost]:
    """Return the costs of an explanation."""
    for mechanism in explanation.mechanisms:
        yield from (part for part in (mechanism.cost, *mechanism.counters) if part is not None)
    yield from (pair.cost for pair in explanation.pairs)
    yield from (part for part in (explanation.interaction, explanation.unexplained) if part is not None)
    if explanation.placebo is not None:
        yield explanation.placebo.cost


# -- the rest ------------------------------------------------------------------------------------------


def _curve(analysis: Analysis, sweep: LoadSweep, metric: MetricCurve, curve: EnvironmentCurve) -> Curve:
    curve_cost = next((each for each in metric.whole_costs if each.environment == curve.environment), None)
    errors, peak, cost = sweep.errors.get(curve.environment), curve.peak, curve_cost.peak_cost if curve_cost else None
    peak_cost = None
    if cost is not None and cost.scale == "ratio":
        peak_cost = PeakCost(**limits_of(cost), typical=cost.typical, rounds=cost.blocks)
    return Curve(
        **in_environment(analysis, curve.environment),
        workload=sweep.workload,
        metric=metric.metric,
        unit=metric.unit,
        load=sweep.load,
        fixed=sweep.fixed,
        peak=Peak(level=peak.level.text, value=peak.value, highest=peak.highest, of=peak.total) if peak else None,
        peak_cost=peak_cost,
        errors_from=errors.first.text if errors else None,
    )


def _programs(store: RunStore, analysis: Analysis) -> tuple[ProgramMedians, ...]:
    cells = {trial.label: trial.cell for trial in analysis.trials}
    return tuple(
        ProgramMedians(
            **_in_cell(analysis, ArmId(cells[label], each.environment)),
            role=each.role, rounds=each.blocks, medians=each.medians,
        )
        for label, rows in program_use(store, analysis).items()
        for each in rows
    )  # fmt: skip


def _environments(store: RunStore, analysis: Analysis) -> dict[str, MeasuredEnvironment]:
    """Return the environments that were measured, as the study has them."""
    arms = {name: (kind, options, aa_of) for name, kind, options, aa_of in store.environments()}
    written = store.study_file().environments
    rows: dict[str, MeasuredEnvironment] = {}
    for name in analysis.environments:
        kind, options, aa_of = arms[name]
        rows[name] = MeasuredEnvironment(
            **within(analysis, name), kind=kind, control_of=aa_of, options=_plain(options),
            workloads=_plain((written[name].workloads if name in written else None) or {}),
        )  # fmt: skip
    return rows


def _place_effects(analysis: Analysis) -> tuple[PlaceEffectResult, ...]:
    units = {each.metric_id: each.unit for each in analysis.metrics}
    return tuple(
        PlaceEffectResult(
            **_place(each),
            per_place=100 * math.expm1(each.per_place) if each.logs else each.per_place,
            per_place_unit="%" if each.logs else difference_unit(units[each.metric_id]),
            adjusted_p=each.adjusted_p,
            rounds=each.blocks,
        )
        for each in analysis.trust.places
    )


def _percentiles(analysis: Analysis, report: LatencyReport, row: Latency) -> Percentiles:
    percentiles: dict[str, Percentile] = {}
    for percent, value, cost in zip(PERCENTS, row.percentiles, row.costs, strict=True):
        ratio = cost if cost is not None and cost.scale == "ratio" else None
        percentiles[f"{percent:g}"] = Percentile(
            **penalty(cost, "s"), **limits_of(ratio), value=value, typical=ratio.typical if ratio else None
        )
    return Percentiles(
        **in_environment(analysis, row.environment), **_place(report), unit="s", runs=row.runs,
        requests=row.requests, percentiles=percentiles,
    )  # fmt: skip


def _session(analysis: Analysis, number: int) -> SessionResult:
    """Return one session; a fact of sites has their environments before it."""
    session = analysis.sessions.sessions[number]
    facts = {
        ": ".join([*filter(None, [", ".join(each.environments)]), each.fact]): each.values[number]
        for each in analysis.sessions.differences
    }
    return SessionResult(started=utc(session.started_at), rounds=session.blocks, facts=facts)
