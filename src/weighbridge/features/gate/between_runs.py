"""Compares runs of one question: what changed between them, and by how much each cost changed.

Each run has its own log ratios within blocks; `between` decides which claims their difference
allows. Verdicts are corrected (Holm) in the same families as in a report, separately for each pair of runs.

    first, second = read_run(RunStore(one)), read_run(RunStore(other))
    (pair,) = compare_runs(first, second).pairs
    row = pair.row(MetricId(CellId("tcp", Level()), "throughput"), "bridge")
    row.change.penalty_with_allowance, row.verdict

**Own values.** A cost is measured within blocks, so a machine that is slower today slows both sides. This does not
hold for an absolute rate, because two runs are "all of A, then all of B". Rates are therefore compared only if the
facts of the machine agree and the A/A arms of both runs hold. They then get an interval, but no verdict.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median

from weighbridge.analysis.comparisons import per_block
from weighbridge.analysis.judgement import after_holm, family_of, never_equivalent
from weighbridge.analysis.resources import negligible
from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.features.gate import between
from weighbridge.features.gate.compared_run import (
    ComparedRun,
    FactChange,
    OnlyIn,
    SettingChange,
    changed_facts,
    changed_settings,
    only_in,
    require_changed,
    require_one_question,
)
from weighbridge.model.address import ArmId, MetricId
from weighbridge.model.measurement import scale_of
from weighbridge.statistics import Contrast, Interval, Looks, Verdict, looks_share
from weighbridge.statistics.sample_size import MIN_BLOCKS_INTERVAL, MIN_BLOCKS_VERDICT
from weighbridge.store.blocks import arm_values


class NoChange(StrEnum):
    """The reason why a cost has no change although both runs have the comparison."""

    NO_COST = "no-cost"
    """A run has no complete block."""
    BROKE = "broke"
    """In one run, the environment or the baseline broke under the load in every block."""
    FEW = "few-blocks"
    """A run has a single block."""
    UNIT = "other-unit"
    """The two runs measured it in different units."""


@dataclass(frozen=True, slots=True)
class CostChange:
    """The change of a cost between two runs, with each run's effects by block."""

    first: Sequence[float]
    second: Sequence[float]
    change: between.CostShift


def why_no_change(
    reports: tuple[MetricReport, MetricReport], sides: tuple[Comparison, Comparison]
) -> NoChange | None:
    """Return why a comparison that both runs have has no change; None if it has one."""
    before, after = reports
    if (before.unit, before.better) != (after.unit, after.better):
        return NoChange.UNIT
    if any(each.broke_instead for each in sides):
        return NoChange.BROKE
    if any(each.cost is None for each in sides):
        return NoChange.NO_COST
    return NoChange.FEW if min(each.blocks for each in sides) < MIN_BLOCKS_INTERVAL else None


def cost_change(
    reports: tuple[MetricReport, MetricReport],
    sides: tuple[Comparison, Comparison],
    runs: tuple[ComparedRun, ComparedRun],
    *,
    looks: Looks,
    confidence: float = 0.95,
    equivalence: float | None = None,
    allowance: float = between.SESSION_ALLOWANCE,
) -> CostChange:
    """Return the change of a cost that both runs have (`why_no_change` is None).

    It is a change of ratios if the metric is compared by ratio and both costs are ratios, otherwise of differences.
    An A/A arm has no noise floors because they are computed from it.
    """
    before, after = reports
    metric_scale = scale_of(before.metric, before.unit)
    scales = {side.cost.scale for side in sides if side.cost is not None}
    on = metric_scale or ("ratio" if scales == {"ratio"} else "difference")
    floor = None
    if not sides[0].aa and before.aa is not None and after.aa is not None:
        floor = between.joint_floor(before.aa.cost, after.aa.cost, on)
    first, second = (
        contrast.effects(arm_values(run.values[before.metric_id], contrast.arms), on)
        for run, side in zip(runs, sides, strict=True)
        for contrast in (Contrast.between(side.environment, side.against),)
    )
    change = between.change(
        first, second, better=before.better, scale=on, confidence=confidence, equivalence=equivalence, looks=looks,
        allowance=allowance, floor=floor,
    )  # fmt: skip
    return CostChange(first, second, change)


# -- the environments' own values ---------------------------------------------------------------


class WhyNot(StrEnum):
    """The reason why absolute values are not compared."""

    MACHINE = "machine"
    """Facts of the machine differ."""
    UNTRUSTED = "untrusted"
    """A run's A/A arm shows a cost although there is none."""
    NOT_KNOWN = "not-known"
    """A run has no A/A arm, or too few blocks of it."""
    DISTURBED = "disturbed"
    """Other processes took more of the machine in one run than in the other."""


@dataclass(frozen=True, slots=True)
class WhyNoOwnValues:
    """A reason; ``subjects`` has the facts that differ, or the names of the runs concerned."""

    reason: WhyNot
    about: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OwnValues:
    """One environment's own values of a metric in both runs: medians in its unit, and the shift between them.

    ``penalty`` is positive if worse, in percent, or in the metric's unit for a difference; None with too few blocks.
    """

    environment: str
    before: float
    after: float
    penalty: Interval | None
    scale: str
    blocks: tuple[int, int]


def disturbed_alike(first: ComparedRun, second: ComparedRun, environment: str | None = None) -> bool:
    """Return whether both runs were disturbed about equally; otherwise a difference can come from the disturbance.

    The trials of the environment count, and of the one that it is compared with. Without a name, these are the trials
    of all environments that both runs have.
    """
    one, other = first.analysis, second.analysis
    names = first.environments if environment is None else (one.plan.against(environment), environment)
    return all(
        one.disturbance_in(name).alike(other.disturbance_in(name)) for name in names if name in second.environments
    )


def why_no_own_values(
    first: ComparedRun, second: ComparedRun, facts: Sequence[FactChange]
) -> tuple[WhyNoOwnValues, ...]:
    """Return the reasons why absolute values of two runs cannot be compared; empty if they can.

    ``facts`` are the facts that changed, without those changed on purpose.
    """
    runs = first, second
    reasons = []
    if machine := tuple(dict.fromkeys(each.fact for each in facts if each.of_machine)):
        reasons.append(WhyNoOwnValues(WhyNot.MACHINE, machine))
    if shifted := tuple(run.name for run in runs if run.analysis.trust.trusted is False):
        reasons.append(WhyNoOwnValues(WhyNot.UNTRUSTED, shifted))
    if unknown := tuple(run.name for run in runs if run.analysis.trust.trusted is None):
        reasons.append(WhyNoOwnValues(WhyNot.NOT_KNOWN, unknown))
    if not disturbed_alike(first, second):
        reasons.append(WhyNoOwnValues(WhyNot.DISTURBED, tuple(run.name for run in runs)))
    return tuple(reasons)


def own_values(
    first: ComparedRun, second: ComparedRun, before: MetricReport, after: MetricReport
) -> tuple[OwnValues, ...]:
    """Return the own values of all environments that both runs compare, the baseline first."""
    theirs = {row.environment for row in after.comparisons if not row.aa}
    rows = [row for row in before.comparisons if row.environment in theirs and not row.aa]
    names = dict.fromkeys(
        [first.analysis.baseline, *(name for row in rows for name in (row.against, row.environment))]
    )
    return tuple(own for name in names if (own := _of(first, second, before, after, name)) is not None)


def _of(
    first: ComparedRun, second: ComparedRun, before: MetricReport, after: MetricReport, environment: str
) -> OwnValues | None:
    sides = [per_block(run.values.get(before.metric_id, ()), environment) for run in (first, second)]
    if before.unit != after.unit or not all(sides):
        return None
    positive = min(map(min, sides)) > 0
    on = scale_of(before.metric, before.unit) or ("ratio" if positive else "difference")
    on = on if positive else "difference"
    penalty = None
    if min(map(len, sides)) >= MIN_BLOCKS_INTERVAL:
        values = [[math.log(each) for each in side] if on == "ratio" else side for side in sides]
        shift = between.change(*values, better=before.better, scale=on, allowance=0.0)
        penalty = shift.penalty
    blocks = len(sides[0]), len(sides[1])
    return OwnValues(environment, median(sides[0]), median(sides[1]), penalty, on, blocks)


# -- whole runs ---------------------------------------------------------------------------------

Failing = Collection[ArmId]


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One environment's cost on one metric in both runs, and its change."""

    environment: str
    aa: bool
    """Whether this is the A/A arm, which shows only noise and has no verdict."""
    before: Comparison
    after: Comparison
    change: between.CostShift | None
    unknown: NoChange | None
    """The reason why there is no change."""
    adjusted_p: float | None
    verdict: Verdict
    untrusted: bool = False
    """Whether a run's A/A arm shows a cost although there is none; the only verdict is then "hidden"."""
    disturbed: bool = False
    """Whether other processes took more of the machine in one run; the verdict is then never "different"."""

    @property
    def few(self) -> bool:
        """Whether a run has so few blocks that its report shows values instead of costs."""
        return self.change is not None and min(self.change.blocks) < MIN_BLOCKS_VERDICT


@dataclass(frozen=True, slots=True)
class MetricChanges:
    """One metric of one workload at one level, in both runs."""

    before: MetricReport
    after: MetricReport
    rows: tuple[ChangeRow, ...]
    """The environments that both runs have, in the first run's order; the A/A arm is last."""
    own_values: tuple[OwnValues, ...] = ()
    """The environments' own values, the baseline's first; empty if they cannot be compared."""

    @property
    def headline(self) -> bool:
        """Whether this is the workload's headline metric."""
        return self.before.headline


@dataclass(frozen=True, slots=True)
class RunPair:
    """One run compared with the first one."""

    first: ComparedRun
    second: ComparedRun
    facts: tuple[FactChange, ...]
    settings: tuple[SettingChange, ...]
    only: tuple[OnlyIn, ...]
    metrics: tuple[MetricChanges, ...]
    no_own_values: tuple[WhyNoOwnValues, ...]
    """The reasons why own values are not compared; empty if they are."""
    on_purpose: tuple[FactChange, ...] = ()
    """The ``facts`` that were changed on purpose; they do not prevent a comparison of own values."""

    @property
    def headlines(self) -> tuple[MetricChanges, ...]:
        """The first metric of each workload and level."""
        return tuple(each for each in self.metrics if each.headline)

    def row(self, metric_id: MetricId, environment: str) -> ChangeRow | None:
        """Return one comparison; None unless both runs have it."""
        for each in self.metrics:
            if each.before.metric_id == metric_id:
                return next((row for row in each.rows if row.environment == environment), None)
        return None


@dataclass(frozen=True, slots=True)
class RunsCompared:
    """Runs of one question, each compared with the first."""

    first: ComparedRun
    pairs: tuple[RunPair, ...]

    @property
    def runs(self) -> tuple[ComparedRun, ...]:
        """Return all compared runs, in the order given."""
        return (self.first, *(pair.second for pair in self.pairs))


def compare_runs(
    first: ComparedRun,
    *others: ComparedRun,
    allowance: float = between.SESSION_ALLOWANCE,
    margin: float | None = None,
    on_purpose: Collection[str] = (),
) -> RunsCompared:
    """Compare each of the other runs with the first.

    `allowance` is how much a cost ratio can differ between two sessions of the same thing. `margin` is the margin of
    equivalence; by default the smaller one of the two studies. Both are fractions. `on_purpose` names facts that were
    changed on purpose (`FactChange.is_named`).

    Raises `OtherQuestionError` if two runs have different baselines or nothing in common, and `FactNotChangedError`
    if a named fact is the same in all runs, or in none.
    """
    for other in others:
        require_one_question(first, other)
    facts = [changed_facts(first, other) for other in others]
    for name in on_purpose:
        require_changed(name, facts, (first, *others))
    return RunsCompared(
        first,
        tuple(
            _pair(first, other, changed, on_purpose, allowance, margin)
            for other, changed in zip(others, facts, strict=True)
        ),
    )


def primary_changes(first: ComparedRun, second: ComparedRun) -> tuple[MetricChanges, ...]:
    """Return the changes of primary metrics as `compare_runs` does, with the same verdicts.

    It needs only the `Depth.PRIMARY` of both analyses.

    Raises `OtherQuestionError` if the runs have different baselines or nothing in common.
    """
    require_one_question(first, second)
    families = {family_of(each) for each in first.analysis.headlines}  # Holm's correction needs the whole family
    reports = [each for each in first.analysis.metrics if family_of(each) in families]
    return tuple(each for each in _changes(first, second, reports, between.SESSION_ALLOWANCE, None) if each.headline)


def _pair(
    first: ComparedRun, second: ComparedRun, facts: tuple[FactChange, ...], names: Collection[str], allowance: float,
    margin: float | None,
) -> RunPair:  # fmt: skip
    on_purpose = tuple(each for each in facts if any(each.is_named(name) for name in names))
    why = why_no_own_values(first, second, [each for each in facts if each not in on_purpose])
    judged = _changes(first, second, first.analysis.metrics, allowance, margin)
    if not why:
        judged = [replace(each, own_values=own_values(first, second, each.before, each.after)) for each in judged]
    settings, only = changed_settings(first, second), only_in(first, second)
    return RunPair(first, second, facts, settings, only, tuple(judged), why, on_purpose)


def _changes(
    first: ComparedRun, second: ComparedRun, reports: Sequence[MetricReport], allowance: float, margin: float | None
) -> list[MetricChanges]:
    """Return the changes of some of the first run's metrics. All metrics of a family must be among them."""
    margins = [each for each in (first.margin, second.margin) if each is not None]
    equivalence = margin if margin is not None else min(margins, default=None)
    after = {report.metric_id: report for report in second.analysis.metrics}
    failing = [run.analysis.context.failing() for run in (first, second)]
    changes = [
        _metric(report, after[report.metric_id], (first, second), failing, allowance, equivalence)
        for report in reports
        if report.metric_id in after
    ]
    return _after_holm(changes, failing, (first, second))


def _metric(
    before: MetricReport, after: MetricReport, runs: tuple[ComparedRun, ComparedRun], failing: Sequence[Failing],
    allowance: float, margin: float | None,
) -> MetricChanges:  # fmt: skip
    """Return both runs' comparisons on a metric, without verdicts."""
    theirs = {row.environment: row for row in after.comparisons if not row.aa}
    sides = [(row, theirs[row.environment]) for row in before.comparisons if row.environment in theirs and not row.aa]
    if before.aa is not None and after.aa is not None:
        sides.append((before.aa, after.aa))
    rows = [_row(before, after, each, runs, allowance, margin) for each in sides]
    return MetricChanges(before, after, tuple(rows))


def _row(
    before: MetricReport, after: MetricReport, sides: tuple[Comparison, Comparison],
    runs: tuple[ComparedRun, ComparedRun], allowance: float, margin: float | None,
) -> ChangeRow:  # fmt: skip
    one, other = sides
    unknown, change = why_no_change((before, after), sides), None
    if unknown is None:
        looks = min((run.analysis.context.plan.looks for run in runs), key=looks_share)
        change = cost_change(
            (before, after), sides, runs, looks=looks, equivalence=margin, allowance=allowance
        ).change
    return ChangeRow(one.environment, one.aa, one, other, change, unknown, None, "inconclusive")


def _after_holm(
    metrics: Sequence[MetricChanges], failing: Sequence[Failing], runs: tuple[ComparedRun, ComparedRun]
) -> list[MetricChanges]:
    """Return the changes of each metric with their verdicts, after Holm's correction."""
    rows = [row for each in metrics for row in each.rows]
    p_values = [row.change.p_value if row.change is not None and not row.aa else None for row in rows]
    adjusted = iter(after_holm([family_of(each.before) for each in metrics for _ in each.rows], p_values))
    names = dict.fromkeys(row.environment for row in rows)
    disturbed = {name: not disturbed_alike(*runs, name) for name in names}  # it reads every trial
    return [
        replace(
            each,
            rows=tuple(
                _judge_row(each, row, next(adjusted), failing, runs, disturbed=disturbed[row.environment])
                for row in each.rows
            ),
        )
        for each in metrics
    ]


def _judge_row(
    metric: MetricChanges, row: ChangeRow, adjusted_p: float | None, failing: Sequence[Failing],
    runs: tuple[ComparedRun, ComparedRun], *, disturbed: bool,
) -> ChangeRow:  # fmt: skip
    """Return a row with its verdict. Anything that prevents a verdict in either run prevents it for the change."""
    reports = metric.before, metric.after
    contexts = [
        run.analysis.context.of(side.against) for run, side in zip(runs, (row.before, row.after), strict=True)
    ]
    environments = row.before.environment, row.after.environment
    never = any(
        never_equivalent(context, report, name, selected)
        for context, report, name, selected in zip(contexts, reports, environments, failing, strict=True)
    )
    no_path = any(
        context.paths.missing(report.cell, context.baseline, name)
        for context, report, name in zip(contexts, reports, environments, strict=True)
    )
    nothing = row.change is not None and negligible(metric.before.metric, row.change.typical)
    untrusted = any(run.analysis.trust.trusted is False for run in runs)
    verdict = between.verdict(
        row.change, adjusted_p, never_equivalent=never or no_path or untrusted,
        never_different=nothing or no_path or untrusted or disturbed,
        hidden="hidden" in (row.before.verdict, row.after.verdict),
    )  # fmt: skip
    return replace(row, adjusted_p=adjusted_p, verdict=verdict, untrusted=untrusted, disturbed=disturbed)
