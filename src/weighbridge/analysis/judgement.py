"""Rules for the verdicts of all comparisons, and for whether their session can be trusted.

**Families** are comparisons whose verdicts are corrected together (Holm), so that none is a chance among many. A
primary metric answers the question of a study. Percentiles, deviations and resource use answer further questions, and
in one family they would weaken the primary metric. So comparisons with the baseline have three families: the primary
metrics of all workloads and levels, their further metrics, and resource use. In a run of two versions, these families
have the comparisons of each head with its base, in all environments (`Comparisons.pairs`). The steps of a ladder are
a fourth family (`comparisons.analyse_ladder`). In each family the chance of any false "different" is at most 5%. For
a whole report it can be more; the page says so.

**The noise floor** of a session is the median over the primary metrics (the first of each workload) whose control is
not hidden; noise is invisible behind a limit. With an even number, it is the noisier of the two in the middle, so
that it belongs to one metric. Reports also name the largest one.

**Trusted**: a 99% interval per metric would raise a false alarm in one of seven sessions with fifteen metrics. A
session is not trusted if, for any metric, the control's 99% interval excludes "no cost" and its p-value is at most 1%
after Holm's correction in its family. The primary metrics are one family, and all other metrics are the other, so
that a shift of a primary metric is not lost among percentiles and meters. At most two in a hundred good sessions are
not trusted by mistake, however many metrics there are. Metrics with fewer blocks than any verdict needs
(`MIN_BLOCKS_VERDICT`) are not checked.

`Trust.visible_shift` is the shift that a check would have found, from `weighbridge.statistics.visible_effect`.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from weighbridge.analysis.bottleneck import Bottleneck, shared_limit
from weighbridge.analysis.context import Context
from weighbridge.analysis.resources import negligible
from weighbridge.analysis.results import Comparison, MetricReport, Trust, TrustReason, VisibleCost
from weighbridge.model.address import ArmId, CellId
from weighbridge.model.measurement import is_event
from weighbridge.statistics import Cost, Looks, blocks_to_settle, error_at, looks_share, verdicts, visible_effect
from weighbridge.statistics.ranks import fewest_differences
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK, MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import PValues, adjusted, excludes_no_cost


def judged(
    report: MetricReport,
    row: Comparison,
    p_value: float | None,
    context: Context,
    failing: Collection[ArmId],
) -> Comparison:
    """Return a comparison of a metric with the context's baseline, with its verdict but without remarks.

    ``p_value`` is corrected with Holm's method; ``failing`` comes from `Context.failing`.
    """
    unproven = context.unproven(headline=report.headline) and not row.aa
    never = unproven or never_equivalent(context, report, row.environment, failing)
    unknown = context.paths.missing(report.cell, context.baseline, row.environment)
    nothing = row.cost is not None and (
        unproven or negligible(report.metric, row.cost.typical) or report.within_noise(row)
    )
    limit = _hiding_limit(context, report, row.environment)
    verdict = verdicts.verdict(
        row.cost, p_value, never_equivalent=never or unknown, never_different=nothing or unknown,
        hidden=limit is not None,
    )  # fmt: skip
    if row.few and verdict != "hidden":  # so few blocks prove nothing
        verdict, nothing = "inconclusive", True
    no_margin = replace(row.cost, equivalent=None) if row.cost is not None and verdict == "equivalent" else None
    proven = verdicts.verdict(no_margin, p_value, never_different=nothing or unknown) == "different"
    broke, baseline_broke = (
        context.broken.get(ArmId(report.cell, name)) for name in (row.environment, context.baseline)
    )
    return replace(
        row,
        adjusted_p=p_value,
        verdict=verdict,
        proven=proven,
        never_equivalent=never,
        broke=broke,
        baseline_broke=baseline_broke,
        hidden=limit if verdict == "hidden" else None,
    )


def never_equivalent(context: Context, report: MetricReport, environment: str, failing: Collection[ArmId]) -> bool:
    """Return whether equivalence is impossible: a side is in `failing`, or the sides' durability differs."""
    sides = context.baseline, environment
    alike = context.keep_alike(*sides, report.label)
    return not alike or any(ArmId(report.cell, name) in failing for name in sides)


def _hiding_limit(context: Context, report: MetricReport, environment: str) -> Bottleneck | None:
    """Return the limit that hides a difference from the baseline; nothing hides resource use."""
    if report.resource_use:
        return None
    baseline, other = (context.limits.get(ArmId(report.cell, name), ()) for name in (context.baseline, environment))
    return shared_limit(baseline, other, report.unit)


# -- families --------------------------------------------------------------------------------------


class Family(StrEnum):
    """A group of comparisons that are corrected together."""

    HEADLINES = "primary metrics"
    FURTHER = "further metrics"
    RESOURCE_USE = "resource use"
    EVENTS = "events"
    LADDER = "ladder"
    MECHANISMS = "mechanisms"
    COUNTERS = "counters of mechanisms"


def family_of(report: MetricReport) -> Family:
    """Return the family of a metric's comparisons with the baseline."""
    if is_event(report.metric):
        return Family.EVENTS
    if report.resource_use:
        return Family.RESOURCE_USE
    return Family.HEADLINES if report.headline else Family.FURTHER


Tested = TypeVar("Tested")


def by_family(
    families: Sequence[Family],
    p_values: Sequence[Tested],
    corrected: Callable[[list[Tested]], Sequence[float | None]],
) -> list[float | None]:
    """Return the results of a correction within each family, in the order of all comparisons."""
    results: list[float | None] = [None] * len(families)
    for family in Family:
        places = [place for place, each in enumerate(families) if each is family]
        for place, result in zip(places, corrected([p_values[each] for each in places]), strict=True):
            results[place] = result
    return results


def after_holm(families: Sequence[Family], p_values: Sequence[PValues | float | None]) -> list[float | None]:
    """Return the adjusted p-values of comparisons in these families, in their order; None stays None."""
    return by_family(families, p_values, verdicts.adjusted)


def holm_levels(adjusted_p: Sequence[float | None]) -> list[float | None]:
    """Return the p-value that each comparison of a family needs to be significant after Holm; None stays None.

    Other significant comparisons are rejected first and no longer count.
    """
    tested = [p_value for p_value in adjusted_p if p_value is not None]
    rejected = sum(p_value <= verdicts.ALPHA for p_value in tested)
    return [
        None if p_value is None else verdicts.ALPHA / (len(tested) - rejected + (p_value <= verdicts.ALPHA))
        for p_value in adjusted_p
    ]


# -- what would have shown -------------------------------------------------------------------------


def with_visible_cost(report: MetricReport, row: Comparison, level: float | None, context: Context) -> Comparison:
    """Return a judged comparison with the smallest cost that it would have shown, and the effort to decide it.

    ``level`` comes from `holm_levels`. The comparison stays unchanged if it has fewer blocks than a verdict needs in
    this family, or if all blocks are the same, because such a cost has no spread. It also stays unchanged if nothing
    can be *different*: without both paths, in an unproven session, for resource use and in disturbed runs.
    """
    cost = row.cost
    if cost is None or row.few or row.aa or level is None or report.resource_use or report.disturbed:
        return row
    never = context.paths.missing(report.cell, context.baseline, row.environment)
    share = looks_share(context.plan.looks)
    fewest = max(verdicts.fewest_blocks(level, context.plan.looks), _fewest_with_limits(cost.blocks, share))
    if never or context.unproven(headline=report.headline) or cost.blocks < fewest:
        return row
    error = error_at(row.effects, level * share)
    if not 0 < error < math.inf:
        return row
    effect = visible_effect(error, cost.blocks, level * share)
    settled = None
    # more blocks change no other verdict, and never prove equivalence if it is impossible
    undecided = row.verdict == "inconclusive" and not cost.equivalent and not row.never_equivalent
    if undecided and cost.scale == "ratio" and context.plan.equivalence:
        margin = math.log1p(context.plan.equivalence)
        then = looks_share(context.plan.next_looks)
        settled = blocks_to_settle(error, cost.blocks, level * then, margin, then)
    further = settled - cost.blocks if settled is not None and settled > cost.blocks else None
    seconds = further * context.block_s(report.cell) if further is not None else None
    return replace(row, visible=VisibleCost(_as_cost(effect, cost), settled if further else None, seconds))


def _fewest_with_limits(blocks: int, share: float) -> int:
    """Return the fewest blocks with which an exact interval has limits; 0 if Student's t is used."""
    return fewest_differences(1 - verdicts.ALPHA * share) if blocks >= MIN_BLOCKS_SIGNED_RANK else 0


def _as_cost(effect: float, cost: Cost) -> float:
    """Return an effect as a cost in the worse direction, in percent or in the metric's unit."""
    if cost.scale == "difference":
        return effect
    return 100 * (-math.expm1(-effect) if cost.better == "higher" else math.expm1(min(effect, 700.0)))


# -- trust -----------------------------------------------------------------------------------------


DISTRUST = 0.01
"""The chance that a good session is not trusted, for its primary metrics and for all of its other metrics."""


@dataclass(frozen=True, slots=True)
class ControlCheck:
    """The control's cost on one metric at 99% confidence, with its p-value and its blocks' effects."""

    report: MetricReport
    cost: Cost | None
    """None if the signs of the blocks already show that the control holds."""
    p_values: PValues | float
    effects: tuple[float, ...] = ()

    @property
    def enough(self) -> bool:
        """Whether there are as many blocks as any verdict needs."""
        return self.cost is None or self.cost.blocks >= MIN_BLOCKS_VERDICT


def shifted_controls(checks: Sequence[ControlCheck]) -> tuple[MetricReport, ...]:
    """Return the metrics with a shifted control. A session with any such metric is not trusted."""
    families = [[each for each in checks if each.enough and each.report.headline is own] for own in (True, False)]
    return tuple(
        each.report
        for family in families
        for each, p_value in zip(family, adjusted([each.p_values for each in family], DISTRUST), strict=True)
        if each.cost is not None and excludes_no_cost(each.cost) and p_value is not None and p_value <= DISTRUST
    )


TRUSTED: Mapping[TrustReason, bool | None] = {
    TrustReason.NO_CONTROL: None, TrustReason.FEW_BLOCKS: None, TrustReason.SHIFTED: False, TrustReason.HOLDS: True,
}  # fmt: skip
"""Whether a session is trusted; None if there is no usable control."""


def trust_reason(checks: Sequence[ControlCheck], shifted: Sequence[MetricReport], aa_arm: str | None) -> TrustReason:
    """Return why a session is trusted or not; ``shifted`` comes from `shifted_controls` with the same checks."""
    if aa_arm is None:
        return TrustReason.NO_CONTROL
    if not any(each.enough for each in checks):
        return TrustReason.FEW_BLOCKS
    return TrustReason.SHIFTED if shifted else TrustReason.HOLDS


def session_trust(
    metrics: Sequence[MetricReport],
    checks: Sequence[ControlCheck],
    shifted: tuple[MetricReport, ...],
    aa_arm: str | None,
    looks: Looks,
) -> Trust:
    """Judge the session; ``shifted`` comes from `shifted_controls` with the same checks."""
    headlines = [each for each in metrics if each.headline and not (each.aa and each.aa.hidden)]
    floors = [(each.noise_floor, each) for each in headlines if each.noise_floor is not None]
    ranked = sorted(floors, key=lambda each: each[0])
    middle, middle_in = ranked[len(ranked) // 2] if ranked else (None, None)
    largest, largest_in = max(floors, key=lambda each: each[0]) if floors else (None, None)
    usable = [each for each in checks if each.enough]
    blocks = min((each.cost.blocks for each in usable if each.report.headline and each.cost is not None), default=0)
    with_cost = (
        each for each in metrics if each.headline and any(row.cost and not row.aa for row in each.comparisons)
    )
    unchecked = tuple(each for each in with_cost if each.aa is None or each.aa.blocks < MIN_BLOCKS_VERDICT)
    reason = trust_reason(checks, shifted, aa_arm)
    hidden = {each.cell for each in metrics if each.headline and each.aa and each.aa.hidden}
    visible = _visible_shifts([each for each in usable if each.report.headline], hidden, looks)
    return Trust(
        TRUSTED[reason], reason, middle, middle_in, largest, largest_in, blocks, unchecked, shifted,
        visible_shift=max(visible, default=None), visible_shifts=len(visible),
    )  # fmt: skip


def _visible_shifts(headlines: Sequence[ControlCheck], hidden: Collection[CellId], looks: Looks) -> list[float]:
    """Return for each primary metric the shift, a fraction, that the check finds in four sessions of five.

    Metrics whose control is ``hidden`` are left out because a limit hides every shift. Metrics with too few blocks
    for a check among this number of metrics are left out too.
    """
    level = DISTRUST / max(1, len(headlines)) * looks_share(looks)
    fewest = verdicts.fewest_blocks(DISTRUST / max(1, len(headlines)), looks)
    return [
        math.expm1(min(700.0, visible_effect(error, each.cost.blocks, level)))
        for each in headlines
        if each.cost is not None
        and each.cost.blocks >= fewest
        and each.cost.scale == "ratio"
        and each.report.cell not in hidden
        and 0 < (error := error_at(each.effects, level)) < math.inf
    ]
