"""Remarks about a cost: its precision, its verdict, and how typical it is."""

from collections.abc import Iterator
from dataclasses import dataclass

from weighbridge.analysis.context import Context
from weighbridge.analysis.remarks.rules import ComparisonInRun, about_comparison
from weighbridge.analysis.results import Comparison, Remark, RemarkPlace
from weighbridge.statistics import LOOKS, Cost, Interval, blocks_to_target, cost_percent, looks_share, widened
from weighbridge.statistics.precision import LATEST
from weighbridge.statistics.verdicts import ALPHA, excludes_no_cost, proves_nothing


@dataclass(frozen=True, slots=True)
class TargetMissed(Remark):
    """The requested precision was not reached. ``target`` and ``half_width`` are fractions, and can be infinite."""

    code = "target"
    placement = RemarkPlace.COST
    target: float
    half_width: float
    rounds: int
    predicted_rounds: int | None


@about_comparison(100)
def _target_missed(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield a missed target; targets apply to headline metrics in the study's own comparisons."""
    row, context = comparison.row, comparison.context
    target = context.plan.target if context.of_study else None
    if target is None or row.cost is None or row.aa or not comparison.report.headline:
        return
    if not row.cost.half_width <= target:
        predicted = _blocks_to_target(row.cost, target, context)
        yield TargetMissed(target, row.cost.half_width, row.cost.blocks, predicted)


def _blocks_to_target(cost: Cost, target: float, context: Context) -> int | None:
    """Return after how many blocks the interval will likely reach the target.

    Adding blocks widens the interval, because the user has seen the costs before.
    """
    now, then = (ALPHA * looks_share(looks) for looks in (context.plan.looks, context.plan.next_looks))
    width = widened(cost.half_width, now, then)
    blocks = blocks_to_target(width, cost.blocks, target, LATEST)
    return None if blocks is None else max(LOOKS[0], blocks)


@dataclass(frozen=True, slots=True)
class AsDifference(Remark):
    """The cost is a difference in ``unit``; positive is worse."""

    code = "difference"
    placement = RemarkPlace.COST
    difference: Interval
    unit: str


@about_comparison(110)
def _as_difference(comparison: ComparisonInRun) -> Iterator[Remark]:
    cost = comparison.row.cost
    if cost is not None and cost.scale == "difference":
        yield AsDifference(cost.penalty, comparison.report.unit)


@dataclass(frozen=True, slots=True)
class Identical(Remark):
    """All blocks have the same result, and are too few to rule out chance."""

    code = "identical"
    placement = RemarkPlace.COST
    rounds: int


@about_comparison(120)
def _identical(comparison: ComparisonInRun) -> Iterator[Remark]:
    row = comparison.row
    if row.cost is not None and row.blocks > 1 and proves_nothing(row.cost) and not row.aa:
        yield Identical(row.blocks)


@dataclass(frozen=True, slots=True)
class NotAfterHolm(Remark):
    """The interval excludes "no cost", but the adjusted p-value does not."""

    code = "holm"
    placement = RemarkPlace.COST
    adjusted_p: float


@about_comparison(130)
def _not_after_holm(comparison: ComparisonInRun) -> Iterator[Remark]:
    adjusted_p = comparison.row.adjusted_p
    if _undecided_beside_no_cost(comparison.row) and adjusted_p is not None and adjusted_p > ALPHA:
        yield NotAfterHolm(adjusted_p)


@dataclass(frozen=True, slots=True)
class Unproven(Remark):
    """This cost proves nothing because the session's control shows a cost although there is none."""

    code = "unproven"
    placement = RemarkPlace.COST


@about_comparison(140)
def _unproven(comparison: ComparisonInRun) -> Iterator[Remark]:
    row, unproven = comparison.row, comparison.context.unproven(headline=comparison.report.headline)
    if unproven and row.cost is not None and not row.aa and (row.cost.equivalent or _undecided_beside_no_cost(row)):
        yield Unproven()


@dataclass(frozen=True, slots=True)
class WithinNoise(Remark):
    """The cost is not larger than the metric's noise floor: of resource use, few blocks or a disturbed run.

    ``noise_floor`` is a fraction; ``low`` and ``high`` are costs in percent. All are None if the cost is a
    difference.
    """

    code = "noise"
    placement = RemarkPlace.COST
    noise_floor: float | None = None
    low: float | None = None
    high: float | None = None


@about_comparison(150)
def _within_noise(comparison: ComparisonInRun) -> Iterator[Remark]:
    report, row = comparison.report, comparison.row
    if _undecided_beside_no_cost(row) and report.within_noise(row):
        low, high = report.noise if report.noise and report.noise_floor is not None else (None, None)
        yield WithinNoise(report.noise_floor, low, high)


def _undecided_beside_no_cost(row: Comparison) -> bool:
    """Return whether a comparison is inconclusive although its own interval excludes "no cost"."""
    cost = row.cost if row.verdict == "inconclusive" and not row.aa else None
    return cost is not None and excludes_no_cost(cost) and not cost.equivalent


@dataclass(frozen=True, slots=True)
class Stalls(Remark):
    """The mean cost is far from the typical cost; both are in percent."""

    code = "stalls"
    placement = RemarkPlace.LEAD
    mean_percent: Interval
    typical_percent: Interval


@about_comparison(160)
def _stalls(comparison: ComparisonInRun) -> Iterator[Remark]:
    """Yield a large disagreement of the two means, unless there are too few blocks to rely on them."""
    cost, tolerance = comparison.row.cost, comparison.context.tolerance
    if cost is None or cost.exploratory or cost.disagreement is None or tolerance is None:
        return
    if cost.disagreement > tolerance and not cost.arithmetic.low <= cost.typical <= cost.arithmetic.high:
        yield Stalls(cost_percent(cost.arithmetic, cost.better), cost.penalty)
