"""Every remark about one comparison. Nothing here changes a number."""

from collections.abc import Collection, Sequence

from weighbridge.analysis.bottleneck import limit_of_most
from weighbridge.analysis.condition_remarks import (
    Capped,
    FewReadings,
    Fragments,
    InterruptTimeApart,
    NoPath,
    OtherPacketSize,
    OtherPath,
)
from weighbridge.analysis.confounders import bare
from weighbridge.analysis.context import Context
from weighbridge.analysis.durability import other_durability
from weighbridge.analysis.isolation import guest_ticks, of_comparison
from weighbridge.analysis.readings import ReadingRate
from weighbridge.analysis.remarks import (
    AAArm,
    AboutEnvironment,
    AsDifference,
    Exploratory,
    Extended,
    Identical,
    Incomplete,
    NoBlocks,
    NotAfterHolm,
    OneBlock,
    Remark,
    RemarkCode,
    Stalls,
    TargetMissed,
    WithinNoise,
)
from weighbridge.analysis.resources import CPU_TIME, SITES_CPU, by_difference
from weighbridge.analysis.results import Comparison, MetricReport
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.host import InterruptTime
from weighbridge.model.isolation import OUTSIDE
from weighbridge.statistics import cost_percent, next_look
from weighbridge.statistics.verdicts import ALPHA, excludes_no_cost, proves_nothing, within_noise
from weighbridge.store.extensions import Extension

_UDP_HEADERS = 28
"""Bytes of the headers of IPv4 (RFC 791) and UDP (RFC 768) in a packet."""


def remarks_about(report: MetricReport, row: Comparison, context: Context) -> tuple[Remark, ...]:
    """Give every remark about one comparison, the ones that weigh most first."""
    here = context.of_cell(report.workload, report.level)
    found: list[Remark] = [AAArm(context.baseline)] if row.aa else []
    found += of_comparison(context.isolation, row.environment, context.baseline)
    found += _about_blocks(row, here, context)
    found += context.extended
    found += _about_target(report, row, context.target)
    found += _about_cost(report, row, context)
    found += _about_sizes(report, row, context)
    found += _about_limits(report, row, context)
    found += _about_fragments(report, row, context)
    found += _about_paths(report, row, context)
    if unlike := other_durability(context.durability, report.label, row.environment, context.baseline):
        found.append(unlike)
    found += _about_interrupts(report, context.interrupts)
    if report.metric.startswith(CPU_TIME):
        found += guest_ticks(context.isolation, row.environment, context.baseline)
    found += _about_readings(report, here, context.readings)
    for environment in (context.baseline, row.environment):
        found += context.about_arm(report, environment)
    names = {context.baseline, row.environment, OUTSIDE}
    found += [each for each in context.confounders if _confounds(each, names)]
    return tuple(found)


def extended(changes: Sequence[Extension]) -> tuple[Extended, ...]:
    """Give the remark that the number of blocks was changed after results were there to be looked at."""
    looked = [change for change in changes if change.looked]
    if not looked:
        return ()
    return (Extended(looked[0].planned, looked[-1].blocks, tuple(change.after for change in looked)),)


def _confounds(remark: Remark, names: Collection[str]) -> bool:
    """Whether a remark is a confounder of these environments; what differs between hosts is said of the run alone."""
    about = isinstance(remark, AboutEnvironment) and remark.environment in names
    return about and remark.code == RemarkCode.CONFOUNDER


def _about_blocks(row: Comparison, trials: Sequence[TrialRow], context: Context) -> list[Remark]:
    planned = context.planned_blocks or len({t.block for t in trials if t.environment == row.environment})
    if row.cost is None:
        return [] if row.broke_instead else [NoBlocks()]
    found: list[Remark] = []
    if row.blocks == 1:
        found.append(OneBlock())
    elif row.cost.exploratory:
        found.append(Exploratory(row.blocks))
    arms = (context.baseline, row.environment)
    broke = {trial.block for trial in trials if trial.broke and trial.environment in arms}
    if row.blocks + len(broke) < planned:
        found.append(Incomplete(row.blocks, planned))
    return found


def _about_target(report: MetricReport, row: Comparison, target: float | None) -> list[Remark]:
    """The target is about each workload's headline metric."""
    cost = row.cost
    if target is None or cost is None or row.aa or not report.headline or cost.half_width <= target:
        return []
    predicted = next_look(cost.blocks, [cost], target).predicted_blocks
    return [TargetMissed(target, cost.half_width, cost.blocks, predicted)]


def _about_cost(report: MetricReport, row: Comparison, context: Context) -> list[Remark]:
    cost = row.cost
    found: list[Remark] = []
    if cost is None:
        return []
    if cost.scale == "difference":
        found.append(AsDifference(cost.interval, report.unit))
    if row.blocks > 1 and proves_nothing(cost) and not row.aa:
        found.append(Identical(row.blocks))
    if row.verdict == "inconclusive" and excludes_no_cost(cost) and not cost.equivalent and not row.aa:
        if row.adjusted_p is not None and row.adjusted_p > ALPHA:
            found.append(NotAfterHolm(row.adjusted_p))
        aa = report.aa.cost if report.aa else None
        if within_noise(cost, aa):
            low, high = report.noise if report.noise and report.noise_floor is not None else (None, None)
            found.append(WithinNoise(report.noise_floor, low, high))
    gap = cost.disagreement
    if cost.exploratory or gap is None or context.tolerance is None:
        return found  # with few blocks, neither of the two means says much
    if gap > context.tolerance and not cost.arithmetic.low <= cost.typical <= cost.arithmetic.high:
        found.append(Stalls(cost_percent(cost.arithmetic, cost.better)))
    return found


def _about_sizes(report: MetricReport, row: Comparison, context: Context) -> list[OtherPacketSize]:
    """A size that was probed and one that was given are the same when they are as large."""
    names = (f"{name}/{report.label}" for name in (row.environment, context.baseline))
    mine, other = (bare(context.sizes.get(name, "")) for name in names)
    if not mine or not other or mine == other:
        return []
    return [OtherPacketSize(mine, other)]


def _about_limits(report: MetricReport, row: Comparison, context: Context) -> list[Capped]:
    """Which of the two alone could do no better: where both could not, the verdict says so."""
    if report.resource_use or row.cost is None or row.aa:
        return []
    found = []
    for name in (context.baseline, row.environment):
        side = context.limits.get((report.workload, report.level, name), ())
        if limited := limit_of_most(side, report.unit):
            found.append(Capped(name, limited[0], limited[1], len(side), name == context.baseline))
    return found if len(found) == 1 else []


def _about_fragments(report: MetricReport, row: Comparison, context: Context) -> list[Fragments]:
    """Which of the two alone sends its datagrams in pieces: that is a cost of their size on this path."""
    found = []
    for name in (row.environment, context.baseline):
        path, size = context.paths.of(name, report.level), bare(context.sizes.get(f"{name}/{report.label}", ""))
        payload = int(size.split()[0]) if size.endswith(" B") and size.split()[0].isdecimal() else 0
        if path is not None and path.mtu and payload + _UDP_HEADERS > path.mtu:
            found.append(Fragments(name, payload, path.mtu - _UDP_HEADERS))
    return found if len(found) == 1 else []


def _about_paths(report: MetricReport, row: Comparison, context: Context) -> list[Remark]:
    where = report.workload, report.level
    if context.paths.missing(*where, context.baseline, row.environment):
        return [NoPath()]
    unlike = context.paths.difference(*where, row.environment, context.baseline)
    return [OtherPath(unlike)] if unlike else []


def _about_readings(
    report: MetricReport, trials: Sequence[TrialRow], readings: ReadingRate | None
) -> list[FewReadings]:
    """What a host used and what memory peaked at is read a few times a second: short trials have too few readings."""
    if readings is None or not by_difference(report.metric):
        return []
    few = readings.too_few([trial.id for trial in trials if trial.ok])
    return [few] if few else []


def _about_interrupts(report: MetricReport, kinds: Collection[str]) -> list[InterruptTimeApart]:
    charged: InterruptTime = "charged to the interrupted task"
    apart: InterruptTime = "accounted apart"
    if not report.metric.startswith(SITES_CPU) or set(kinds) <= {charged}:
        return []
    return [InterruptTimeApart(apart in kinds)]
