"""A run's numbers, compared: every cost with its interval, verdict and remarks."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import cast

from weighbridge.report import family, remarks
from weighbridge.report.content import Analysis, Comparison, MetricReport, TrialRow, Trust
from weighbridge.statistics import Better, Cost, compare, planned_looks, scale_of, slow_run_rate
from weighbridge.store.pairs import metrics, pairs
from weighbridge.store.run import RunStore, Value


@dataclass(frozen=True, slots=True)
class _Plan:
    """What the study asked for, as far as the comparisons need it."""

    baseline: str
    aa_arm: str | None
    environments: tuple[str, ...]
    equivalence: float | None
    target: float | None
    looks: int
    planned_blocks: int | None


def analyse(store: RunStore) -> Analysis:
    """Compare everything in a run. A run without a finished trial gives an Analysis without metrics.

    `weighbridge.report.family` says how the noise floor, `trusted` and the verdicts come about. Raises
    RunDirectoryError where the store cannot be read.
    """
    info, plan = store.info(), _plan(store)
    trials = _trials(store)
    confounders = remarks.confounders(store.facts(), plan.baseline, plan.environments)
    labels = {(workload, level): label for workload, level, _, label, _ in store.cells()}
    reports, checks, p_values = _compared(store.values(), plan, labels)
    reports = _judged(reports, p_values, plan, trials)
    context = remarks.Context(
        trials, confounders, plan.baseline, plan.planned_blocks, plan.target or plan.equivalence, plan.target
    )
    reports = [_remarked(report, context) for report in reports]
    return Analysis(
        run_id=info.get("run_id", ""),
        study=info.get("study", ""),
        question=info.get("question", ""),
        baseline=plan.baseline,
        aa_arm=plan.aa_arm,
        environments=plan.environments,
        equivalence=plan.equivalence,
        target=plan.target,
        labels=tuple(labels.values()),
        metrics=tuple(reports),
        trust=_trust(reports, checks, plan),
        confounders=confounders,
        trials=trials,
        calibration=tuple(f"{key} {value}" for scope, key, value, _ in store.facts() if scope == "calibration"),
    )


def _plan(store: RunStore) -> _Plan:
    info, arms = store.info(), store.environments()
    repetitions = json.loads(info.get("repetitions", "{}"))
    target = repetitions.get("target")
    looks = len(planned_looks(repetitions["min"], repetitions["max"])) if target else 1
    return _Plan(
        baseline=info.get("baseline", ""),
        aa_arm=next((name for name, _, _, aa_of in arms if aa_of is not None), None),
        environments=tuple(name for name, *_ in arms),
        equivalence=float(info["equivalence"]) if "equivalence" in info else None,
        target=target,
        looks=looks,
        planned_blocks=repetitions.get("blocks"),
    )


def _trials(store: RunStore) -> tuple[TrialRow, ...]:
    labels = {(workload, level): label for workload, level, _, label, _ in store.cells()}
    values: dict[int, dict[str, float]] = {}
    for value in store.values():
        values.setdefault(value.trial_id, {})[value.metric] = value.value
    rows = sorted(store.trials(), key=lambda row: (cast(float, row["started_at"]), cast(int, row["id"])))
    return tuple(
        TrialRow(
            id=cast(int, row["id"]),
            order=order,
            block=cast(int, row["block"]),
            attempt=cast(int, row["attempt"]),
            environment=str(row["environment"]),
            workload=str(row["workload"]),
            level=str(row["level"]),
            label=labels.get((str(row["workload"]), str(row["level"])), str(row["workload"])),
            outcome=str(row["outcome"]),
            message=str(row["message"]),
            started_at=cast(float, row["started_at"]),
            duration_s=cast(float, row["duration_s"]),
            flags=tuple(cast(list[str], row["flags"])),
            values=values.get(cast(int, row["id"]), {}),
        )
        for order, row in enumerate(rows, 1)
    )


_Check = tuple[str, Cost, float]
"""A metric's title, the A/A arm's cost at 99 % confidence and its p-value."""


def _compared(
    values: Sequence[Value], plan: _Plan, labels: dict[tuple[str, str], str]
) -> tuple[list[MetricReport], list[_Check], list[float | None]]:
    """Give the reports before Holm, the A/A checks, and the p-value of every comparison in their order."""
    reports: list[MetricReport] = []
    checks: list[_Check] = []
    p_values: list[float | None] = []
    order = {cell: position for position, cell in enumerate(labels)}
    for key in sorted(metrics(values), key=lambda key: order.get(key[:2], len(order))):  # stable: metrics keep theirs
        workload, level, metric = key
        here = [value for value in values if (value.workload, value.level, value.metric) == key]
        headline = not any((each.workload, each.level) == (workload, level) for each in reports)
        others = [name for name in plan.environments if name not in (plan.baseline, plan.aa_arm)]
        arms = [*others, plan.aa_arm] if plan.aa_arm else others
        made = [_comparison(here, plan, arm) for arm in arms]
        baseline_values = _per_block(here, plan.baseline)
        aa = next((each.cost for each, _ in made if each.aa), None)
        report = MetricReport(
            workload, level, labels.get((workload, level), workload), metric, here[0].unit,
            cast(Better, here[0].better), headline, median(baseline_values) if baseline_values else None,
            family.noise_floor(aa), tuple(each for each, _ in made),
        )  # fmt: skip
        reports.append(report)
        p_values.extend(None if each.aa else p for each, p in made)
        if aa is not None and plan.aa_arm:
            sides = _paired(here, plan, plan.aa_arm)
            scale = scale_of(report.unit)
            at_99 = compare(*sides, better=report.better, confidence=0.99, looks=plan.looks, scale=scale)
            checks.append((report.title, at_99, family.family_p_value(sides, at_99, plan.looks)))
    return reports, checks, p_values


def _paired(values: Sequence[Value], plan: _Plan, environment: str) -> family.Paired:
    found = pairs(values, plan.baseline, environment)
    return [pair.baseline.value for pair in found], [pair.other.value for pair in found]


def _per_block(values: Sequence[Value], environment: str) -> list[float]:
    """One value a block: of the first attempt that has one."""
    mine = sorted((v for v in values if v.environment == environment), key=lambda v: (v.block, v.attempt))
    first: dict[int, float] = {}
    for value in mine:
        first.setdefault(value.block, value.value)
    return list(first.values())


def _comparison(values: Sequence[Value], plan: _Plan, environment: str) -> tuple[Comparison, float | None]:
    better = cast(Better, values[0].better)
    sides = _paired(values, plan, environment)
    mine = _per_block(values, environment)
    cost, p_value = None, None
    if sides[0]:
        scale = scale_of(values[0].unit)
        cost = compare(*sides, better=better, equivalence=plan.equivalence, looks=plan.looks, scale=scale)
        p_value = family.family_p_value(sides, cost, plan.looks)
    made = Comparison(
        environment=environment,
        aa=environment == plan.aa_arm,
        cost=cost,
        baseline_value=median(sides[0]) if sides[0] else None,
        value=median(sides[1] or mine) if mine else None,
        slow=slow_run_rate(mine, better=better) if mine and min(mine) >= 0 else None,
        adjusted_p=None,
        verdict="inconclusive",
        remarks=(),
    )
    return made, p_value


def _failing(trials: Sequence[TrialRow]) -> set[tuple[str, str, str]]:
    """Each (workload, level, environment) that failed too often."""
    outcomes: dict[tuple[str, str, str], list[bool]] = {}
    for trial in trials:
        outcomes.setdefault((trial.workload, trial.level, trial.environment), []).append(trial.ok)
    return {where for where, ok in outcomes.items() if family.failing(ok)}


def _judged(
    reports: list[MetricReport], p_values: list[float | None], plan: _Plan, trials: Sequence[TrialRow]
) -> list[MetricReport]:
    after_holm, failing = iter(family.adjusted(p_values)), _failing(trials)
    judged = []
    for report in reports:
        rows, aa = [], report.aa.cost if report.aa else None
        for each in report.comparisons:
            p_value = next(after_holm)
            arms = {(report.workload, report.level, name) for name in (plan.baseline, each.environment)}
            verdict = family.verdict(each.cost, p_value, None if each.aa else aa, selected=bool(arms & failing))
            rows.append(replace(each, adjusted_p=p_value, verdict=verdict))
        judged.append(replace(report, comparisons=tuple(rows)))
    return judged


def _remarked(report: MetricReport, context: remarks.Context) -> MetricReport:
    rows = tuple(replace(each, remarks=remarks.about(report, each, context)) for each in report.comparisons)
    return replace(report, comparisons=rows)


def _trust(reports: list[MetricReport], checks: list[_Check], plan: _Plan) -> Trust:
    return family.trust(reports, checks, plan.aa_arm)
