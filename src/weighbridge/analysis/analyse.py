"""Computes the results of a run: every cost with its interval, verdict and remarks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from statistics import median
from typing import cast

from weighbridge.analysis.bottleneck import limit_of
from weighbridge.analysis.comparisons import (
    analyse_ladder,
    comparison,
    contrast_cost,
    no_cost_is_likely,
    per_block,
    values_by_metric,
    without_cost,
)
from weighbridge.analysis.conditions import (
    by_label,
    calibration_of,
    durabilities,
    interrupt_times,
    isolations,
    packet_sizes,
    polled,
    power_cuts,
)
from weighbridge.analysis.context import Context
from weighbridge.analysis.curves import load_sweeps
from weighbridge.analysis.explanation import explanations
from weighbridge.analysis.judgement import (
    ControlCheck,
    after_holm,
    by_family,
    family_of,
    holm_levels,
    judged,
    session_trust,
    shifted_controls,
    with_visible_cost,
)
from weighbridge.analysis.latency import latencies
from weighbridge.analysis.overload import breakages, standing_values
from weighbridge.analysis.paths import paths_of
from weighbridge.analysis.plan import Comparisons, plan_of
from weighbridge.analysis.readings import ReadingRate, readings, without_selections
from weighbridge.analysis.remarks import remarks_about
from weighbridge.analysis.remarks.entry import starts_of
from weighbridge.analysis.remarks.rules import about_run, on_top
from weighbridge.analysis.resources import negligible
from weighbridge.analysis.results import Analysis, MetricReport, disturbance_among
from weighbridge.analysis.sessions import sessions
from weighbridge.analysis.trends import place_effects
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import ArmId, CellId, MetricId, grouped_by_arm
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import is_event, is_rare_event, is_resource_use
from weighbridge.statistics import Better, verdicts
from weighbridge.statistics.contrast import Contrast
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import PValues
from weighbridge.store.consistency import require_consistent
from weighbridge.store.run import RunStore, Value


class Depth(StrEnum):
    """How much of a run is analysed."""

    FULL = "full"
    """Everything that the run's own report shows."""
    PRIMARY = "primary"
    """The costs of primary metrics with their verdicts, without remarks, and the control: enough for a history."""
    VALUES = "values"
    """The values of both sides in primary metrics without their costs, and the control: enough for a fleet."""


def analyse(store: RunStore, depth: Depth = Depth.FULL) -> Analysis:
    """Compare everything in a run. A run without a finished trial gives an Analysis without metrics.

    `weighbridge.statistics.verdicts` explains verdicts, and `weighbridge.analysis.judgement` explains trust. Raises
    RunDirectoryError if the store cannot be read or is damaged.
    """
    require_consistent(store)
    info, plan, facts = store.info(), plan_of(store), store.facts()
    rate = readings(store)
    read = _telling_values(store, rate)
    trials = _trials(store, read)
    broken, values = breakages(trials), values_by_metric(standing_values(read, trials))
    cells = [cell.id for cell in store.cells()]
    isolation = isolations(facts, plan.environments)
    durability = durabilities(facts)
    paths = paths_of(facts, info)
    limits = _limits(trials)
    disturbance = disturbance_among(trials, {plan.baseline, plan.aa_arm})
    reports, checks, p_values = _metric_reports(values, plan, cells, depth, disturbed=disturbance.heavy)
    shifted = shifted_controls(checks)
    context = Context(
        plan=plan,
        trials=trials,
        cells=cells,
        facts=facts,
        study=store.study_file(),
        sizes=packet_sizes(facts),
        durability=durability,
        readings=rate,
        interrupts=interrupt_times(facts),
        limits=limits,
        broken=broken,
        paths=paths,
        isolation=isolation,
        shifted=[each.headline for each in shifted],
    )
    if depth is not Depth.VALUES:
        reports = _add_verdicts(reports, p_values, context, depth)
    analysis = Analysis(
        run_id=info.get("run_id", ""),
        study=info.get("study", ""),
        question=info.get("question", ""),
        baseline=plan.baseline,
        aa_arm=plan.aa_arm,
        environments=plan.environments,
        others=plan.others,
        equivalence=plan.equivalence,
        target=plan.target,
        labels=tuple(cell.label for cell in cells),
        metrics=tuple(reports),
        trust=session_trust(reports, checks, shifted, plan.aa_arm, plan.control_looks),
        trials=trials,
        polled=polled(facts),
        calibration=calibration_of(facts),
        broken=broken,
        limits=limits,
        durability=by_label(durability),
        power_cuts=power_cuts(facts, plan.environments),
        paths=paths,
        left_out=tuple(each for each in store.left_out() if each.environment not in plan.explaining),
        lengths=store.lengths(),
        time_shared=any(each.blocks < each.until - each.after for each in store.block_schedules()),
        rungs=plan.ladder,
        isolation=isolation,
        looks=plan.looks,
        control_looks=plan.control_looks,
        context=context,
    )
    if depth is not Depth.FULL:
        return analysis
    own_metrics = {each.metric_id: (each.unit, each.better) for each in reports if not each.resource_use}
    return replace(
        analysis,
        trust=replace(analysis.trust, places=place_effects(trials)),
        confounders=tuple(about_run.remarks(context)),
        notices=tuple(on_top.remarks(context)),
        ladder=analyse_ladder(store, values, reports, plan, context),
        latencies=latencies(store, plan, cells, trials),
        sweeps=load_sweeps(store, trials, own_metrics, plan, broken),
        explanations=explanations(store, values, reports, plan, context),
        sessions=sessions(facts, trials, {kind for _, kind, *_ in store.environments()}, store.session_starts()),
    )


def _telling_values(store: RunStore, rate: ReadingRate | None) -> list[Value]:
    """Return the values without selections, and without counts of rare events that never happened."""
    robbed = {row.id for row in store.trials() if any(flag.code == FlagCode.STEAL for flag in row.flags)}
    values = without_selections(store.values(), rate, robbed)
    rare = {metric for metric in {each.metric for each in values} if is_rare_event(metric)}
    happened = {each.metric_id for each in values if each.metric in rare and each.value}
    return [each for each in values if each.metric not in rare or each.metric_id in happened]


def metrics_in_order(metrics: Iterable[MetricId], cells: Sequence[CellId]) -> list[MetricId]:
    """Return the metrics in the order of the study's cells, with a workload's own metrics before its resource use."""
    order = {cell: position for position, cell in enumerate(cells)}
    return sorted(metrics, key=lambda each: (order.get(each.cell, len(order)), is_resource_use(each.metric)))


def _trials(store: RunStore, measured: Sequence[Value]) -> tuple[TrialRow, ...]:
    values: dict[int, dict[str, float]] = {}
    for value in measured:
        values.setdefault(value.trial_id, {})[value.metric] = value.value
    return tuple(
        TrialRow(
            row.id, order, row.block, row.attempt, row.environment, row.workload, row.level,
            str(row.outcome), row.message, row.started_at, row.duration_s, row.flags, values.get(row.id, {}),
        )
        for order, row in enumerate(store.trials(), 1)
    )  # fmt: skip


def _limits(trials: Sequence[TrialRow]) -> dict[ArmId, list[Flag | None]]:
    """Return the bottleneck of each good trial."""
    arms = grouped_by_arm(each for each in trials if each.ok)
    return {arm: [limit_of(trial.flags) if trial.flags else None for trial in good] for arm, good in arms.items()}


def _metric_reports(
    values: Mapping[MetricId, Sequence[Value]],
    plan: Comparisons,
    cells: Sequence[CellId],
    depth: Depth,
    *,
    disturbed: bool,
) -> tuple[list[MetricReport], list[ControlCheck], list[PValues | None]]:
    """Return the reports before Holm's correction, the A/A checks, and the p-values of all comparisons in order."""
    reports: list[MetricReport] = []
    checks: list[ControlCheck] = []
    p_values: list[PValues | None] = []
    cells_with_headline: set[CellId] = set()
    control = replace(plan, looks=plan.control_looks)
    for metric_id in metrics_in_order(values, cells):
        cell, metric, metric_values = metric_id.cell, metric_id.metric, values[metric_id]
        headline = cell not in cells_with_headline and not is_resource_use(metric)
        cells_with_headline.add(cell)
        arms, compare = plan.compared_on(cell), without_cost if depth is Depth.VALUES else comparison
        wanted = headline or depth is Depth.FULL or (depth is Depth.PRIMARY and is_event(metric))  # of its family
        compared = [compare(metric_values, plan, arm, plan.against(arm)) for arm in arms if wanted]
        baseline_values = per_block(metric_values, plan.baseline)
        aa = next((each.cost for each, _ in compared if each.aa), None)
        report = MetricReport(
            metric_id, metric_values[0].unit,
            cast(Better, metric_values[0].better), headline, median(baseline_values) if baseline_values else None,
            verdicts.noise_floor(aa) if aa is not None and aa.blocks >= MIN_BLOCKS_VERDICT else None,
            tuple(each for each, _ in compared), disturbed, tuple(baseline_values),
        )  # fmt: skip
        reports.append(report)
        p_values.extend(None if each.aa else p for each, p in compared)
        if plan.aa_arm not in arms:
            continue
        contrast = Contrast.between(plan.aa_arm, plan.baseline)
        if depth is not Depth.FULL and no_cost_is_likely(metric_values, contrast):
            checks.append(ControlCheck(report, None, 1.0))
            continue
        at_99 = contrast_cost(metric_values, contrast, control, 0.99)
        if at_99 is not None:
            nothing = negligible(report.metric, at_99.cost.typical)
            checks.append(ControlCheck(report, at_99.cost, 1.0 if nothing else at_99.p_values, at_99.effects))
    return reports, checks, p_values


def _add_verdicts(
    reports: Sequence[MetricReport], p_values: Sequence[PValues | None], context: Context, depth: Depth
) -> list[MetricReport]:
    """Return the reports with verdicts and, at full depth, remarks."""
    families = [family_of(report) for report in reports for _ in report.comparisons]
    after, failing = after_holm(families, p_values), context.failing()
    adjusted, levels = iter(after), iter(by_family(families, after, holm_levels))
    with_verdicts = []
    for report in reports:
        rows = [
            judged(report, each, next(adjusted), context.of(each.against), failing) for each in report.comparisons
        ]
        rows = [with_visible_cost(report, each, next(levels), context.of(each.against)) for each in rows]
        with_verdicts.append(replace(report, comparisons=tuple(rows)))
    if depth is not Depth.FULL:
        return with_verdicts
    context = replace(context, starts=starts_of(with_verdicts, context.study))
    return [
        replace(
            report,
            comparisons=tuple(
                replace(each, remarks=remarks_about(report, each, context.of(each.against)))
                for each in report.comparisons
            ),
        )
        for report in with_verdicts
    ]
