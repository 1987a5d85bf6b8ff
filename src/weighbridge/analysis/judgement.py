"""Verdicts by the same rules whatever is compared with what, and whether their session can be trusted.

**Families** are comparisons whose verdicts are corrected together (Holm), so that none is a chance among many.
A headline answers the question that a study asks; its percentiles and deviations, and what it cost, answer further
ones. In one family a headline would be demoted by what is only said beside it. So there are three, of the comparisons
with the baseline: the headlines of all workloads and levels, their further metrics, and resource use. The steps of a
ladder are a fourth (`comparisons.analyse_ladder`). In each the chance of any false "different" is at most 5 %: of a
whole report it can be more, which the page says.

**The noise floor** of a session is the median over the headline metrics (the first of each workload) in which the
A/A arm is not hidden: behind a limit there is no noise to see. The largest one is named beside it.

**Trusted**: a 99 % interval per metric would raise a false alarm in one session of seven with fifteen metrics. The
session is untrusted if, for any metric, the A/A arm's 99 % interval excludes "no cost" and its p-value is at most 1 %
after Holm across the metrics: at most one false alarm in a hundred sessions, however many metrics there are. Of fewer
blocks than any verdict needs (`MIN_BLOCKS_VERDICT`) nothing is said of it.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import StrEnum
from statistics import median

from weighbridge.analysis.bottleneck import Bottleneck, shared_limit
from weighbridge.analysis.context import Context
from weighbridge.analysis.resources import negligible
from weighbridge.analysis.results import Comparison, MetricReport, Trust, TrustReason
from weighbridge.model.level import Level
from weighbridge.statistics import Cost, holm, verdicts
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import excludes_no_cost


def judged(
    report: MetricReport,
    row: Comparison,
    p_value: float | None,
    context: Context,
    failing: Collection[tuple[str, Level, str]],
) -> Comparison:
    """Return a comparison of a metric, with the context's baseline, with its verdict; without remarks.

    ``p_value`` is the one after Holm, ``failing`` what `Context.failing` gives.
    """
    aa = report.aa.cost if report.aa is not None and not row.aa else None
    never = never_equivalent(context, report, row.environment, failing)
    unknown = context.paths.missing(report.workload, report.level, context.baseline, row.environment)
    nothing = row.cost is not None and negligible(report.metric, row.cost.typical)
    limit = _hiding_limit(context, report, row.environment)
    verdict = verdicts.verdict(
        row.cost, p_value, aa, never_equivalent=never or unknown, never_different=nothing or unknown,
        hidden=limit is not None,
    )  # fmt: skip
    broke, baseline_broke = (
        context.broken.get((report.workload, report.level, name)) for name in (row.environment, context.baseline)
    )
    return replace(
        row,
        adjusted_p=p_value,
        verdict=verdict,
        broke=broke,
        baseline_broke=baseline_broke,
        hidden=limit if verdict == "hidden" else None,
    )


def never_equivalent(
    context: Context, report: MetricReport, environment: str, failing: Collection[tuple[str, Level, str]]
) -> bool:
    """Whether one of the two sides is among the `failing`, or they do not keep alike what they acknowledged."""
    sides = context.baseline, environment
    one, other = (context.durability.get(f"{name}/{report.label}", "") for name in sides)
    return one != other or any((report.workload, report.level, name) in failing for name in sides)


def _hiding_limit(context: Context, report: MetricReport, environment: str) -> Bottleneck | None:
    """What hides a difference between an environment and the baseline; nothing hides resource use."""
    if report.resource_use:
        return None
    baseline, other = (
        context.limits.get((report.workload, report.level, name), ()) for name in (context.baseline, environment)
    )
    return shared_limit(baseline, other, report.unit)


# -- families --------------------------------------------------------------------------------------


class Family(StrEnum):
    """What is corrected together."""

    HEADLINES = "headlines"
    FURTHER = "further metrics"
    RESOURCE_USE = "resource use"


def family_of(report: MetricReport) -> Family:
    """Give the family of a metric's comparisons with the baseline."""
    if report.resource_use:
        return Family.RESOURCE_USE
    return Family.HEADLINES if report.headline else Family.FURTHER


def after_holm(families: Sequence[Family], p_values: Sequence[float | None]) -> list[float | None]:
    """Give the adjusted p-values of comparisons of these families, in their order; None stays None."""
    adjusted: list[float | None] = [None] * len(families)
    for family in Family:
        places = [place for place, each in enumerate(families) if each is family]
        for place, p_value in zip(places, verdicts.adjusted([p_values[each] for each in places]), strict=True):
            adjusted[place] = p_value
    return adjusted


# -- trust -----------------------------------------------------------------------------------------


DISTRUST = 0.01
"""Chance of calling a good session untrusted."""


def session_trust(
    metrics: Sequence[MetricReport], at_99: Sequence[tuple[MetricReport, Cost, float]], aa_arm: str | None
) -> Trust:
    """Judge the session. ``at_99``: per metric the A/A arm's cost at 99 % confidence and its p-value."""
    headlines = [each for each in metrics if each.headline and not (each.aa and each.aa.hidden)]
    floors = [(each.noise_floor, each) for each in headlines if each.noise_floor is not None]
    middle = median(floor for floor, _ in floors) if floors else None
    ranges = sorted((floor, each.noise) for floor, each in floors if each.noise is not None)
    noise = ranges[len(ranges) // 2][1] if ranges else None
    largest, largest_in = max(floors, key=lambda each: each[0]) if floors else (None, None)
    blocks = max((each.aa.blocks for each in metrics if each.headline and each.aa), default=0)
    usable = [each for each in at_99 if each[1].blocks >= MIN_BLOCKS_VERDICT]
    after_holm = holm([p for _, _, p in usable])
    shifted = tuple(
        report
        for (report, cost, _), p in zip(usable, after_holm, strict=True)
        if excludes_no_cost(cost) and p <= DISTRUST
    )
    if aa_arm is None:
        trusted, reason = None, TrustReason.NO_AA_ARM
    elif not usable:
        trusted, reason = None, TrustReason.FEW_BLOCKS
    else:
        trusted, reason = not shifted, TrustReason.SHIFTED if shifted else TrustReason.HOLDS
    return Trust(trusted, reason, middle, noise, largest, largest_in, blocks, shifted)
