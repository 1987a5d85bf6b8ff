"""The change of a cost between two runs, for the comparison of runs and for gates.

The blocks of two runs are independent. Each block has a log ratio (environment / baseline), and the change is the
shift between the two samples of log ratios. It has the Hodges-Lehmann estimate with the exact Mann-Whitney
interval (`ranks.shift_interval`, which widens it if the spreads differ). With fewer than ten blocks in either run,
Welch's t interval is used and marked exploratory. Holm gets the p-value of Welch's t, for the same reason that it
gets Student's within a run (`weighbridge.statistics.verdicts`). On the difference scale, plain differences in the
unit replace the log ratios.

**Session allowance.** Drift, neighbours and the clock affect both sides of a block, and cancel. Some conditions
change between sessions and affect only one side: the layout of code and memory, the CPU that serves a queue, the
contents of the engine's cache. They are the same in all blocks of a run, so more blocks do not reveal them. The
*session allowance* is the ratio by which two sessions of the same environment can differ. It widens the interval that
verdicts use, and "different" is tested against a shift of that size instead of zero.

**Both noise floors.** Within a run, a cost inside the A/A arm's noise floor is never "different". A change involves
two costs, each with the noise floor of its own run. A change within the root of the sum of the squared floors is
never "different".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weighbridge.statistics.contrast import OF_TWO, Looks, check_settings, looks_share
from weighbridge.statistics.cost import (
    Better,
    Cost,
    Floats,
    Interval,
    Scale,
    Verdict,
    cost_difference,
    cost_percent,
    exp_interval,
)
from weighbridge.statistics.parametric import Sample, welch_p_value
from weighbridge.statistics.ranks import shift_interval
from weighbridge.statistics.sample_size import MIN_BLOCKS_INTERVAL, MIN_BLOCKS_SIGNED_RANK
from weighbridge.statistics.verdicts import ALPHA, SAME, noise_floor

SESSION_ALLOWANCE = 0.01
"""The fraction by which the cost ratio of one environment can differ between two sessions."""


@dataclass(frozen=True, slots=True)
class CostShift:
    """The change of one environment's cost from one run to another.

    On the ``ratio`` scale, `typical`, `low` and `high` are the second run's cost ratio divided by the first run's
    (1.0 is no change). On the ``difference`` scale, they are the second run's difference minus the first run's, in
    the metric's unit.
    """

    typical: float
    """Hodges-Lehmann estimate of the shift."""
    low: float
    """Lower limit for `typical`, from the blocks alone; 0 (ratio) or -inf (difference) with too few blocks."""
    high: float
    """Upper limit for `typical`, from the blocks alone; inf if there are too few blocks."""
    blocks: tuple[int, int]
    """Number of blocks of the first and of the second run."""
    exploratory: bool
    """True with fewer than 10 blocks in either run, because the interval then assumes normal data."""
    p_value: float
    """Two-sided p-value, for Holm, of "the shift stays within the session allowance" (Welch's t)."""
    equivalent: bool | None
    """Whether the change, with the session allowance, is proven to be within the margin; None if undecided."""
    floor: float | None
    """Both runs' combined noise floor, as a fraction or in the metric's unit; None if either is unknown."""
    allowance: float
    """The session allowance, as a fraction; 0 on the difference scale."""
    better: Better
    scale: Scale
    confidence: float
    margin: float | None
    """The equivalence margin, as a fraction."""

    @property
    def interval(self) -> Interval:
        """Return the typical change with its limits, from the blocks alone."""
        return Interval(self.typical, self.low, self.high)

    @property
    def with_allowance(self) -> Interval:
        """Return `interval` with its limits widened by the session allowance, for verdicts and gates."""
        by = 1 + self.allowance
        if self.scale == "difference":
            return self.interval
        return Interval(self.typical, self.low / by, self.high * by)

    @property
    def penalty(self) -> Interval:
        """Return the typical change, positive is worse, in percent or (difference scale) in the metric's unit."""
        return _penalty(self.interval, self.scale, self.better)

    @property
    def penalty_with_allowance(self) -> Interval:
        """Return `with_allowance`, positive is worse, in percent or (difference scale) in the metric's unit."""
        return _penalty(self.with_allowance, self.scale, self.better)

    @property
    def excludes_no_change(self) -> bool:
        """Return whether "no change" lies outside of the interval with the session allowance."""
        nothing = 1.0 if self.scale == "ratio" else 0.0
        return self.with_allowance.low > nothing or self.with_allowance.high < nothing

    @property
    def within_noise(self) -> bool:
        """Return whether the typical change lies within both runs' combined noise floor."""
        if self.floor is None:
            return False
        if self.scale == "difference":
            return abs(self.typical) <= self.floor
        return 0 < self.typical < math.inf and max(self.typical, 1 / self.typical) - 1 <= self.floor


def change(
    first: Sequence[float],
    second: Sequence[float],
    *,
    better: Better,
    scale: Scale,
    confidence: float = 0.95,
    equivalence: float | None = None,
    looks: int | Looks = 1,
    allowance: float = SESSION_ALLOWANCE,
    floor: float | None = None,
) -> CostShift:
    """Return the change from the first run to the second. The values are the blocks' effects (`Contrast.effects`).

    `equivalence` is the margin as a fraction. The change is equivalent if two one-sided tests at level 1 - confidence
    show it, widened by the allowance, between 1 / (1 + margin) and 1 + margin. On the difference scale, this is only
    decided if all values are 0. `looks` is the larger number of looks of the two runs; several looks spend only 0.7
    of the error, as within a run. `floor` is the result of `joint_floor`.

    Raises ValueError for fewer than two blocks, values that are not finite, or settings out of range.
    """
    _check_settings(better, confidence, equivalence, looks, allowance)
    one, other = _sample(first), _sample(second)
    share = looks_share(looks)
    allowed = math.log1p(allowance) if scale == "ratio" else 0.0
    shift = _shift(one, other, 1 - (1 - confidence) * share)
    p_value = min(1.0, shift_p_value(first, second, allowed) / share)
    equivalent = _equivalent(one, other, 1 - 2 * (1 - confidence) * share, equivalence, scale, allowed)
    shown = exp_interval(shift) if scale == "ratio" else shift
    return CostShift(
        typical=shown.estimate,
        low=shown.low,
        high=shown.high,
        blocks=(one.size, other.size),
        exploratory=min(one.size, other.size) < MIN_BLOCKS_SIGNED_RANK,
        p_value=p_value,
        equivalent=equivalent,
        floor=floor,
        allowance=allowance if scale == "ratio" else 0.0,
        better=better,
        scale=scale,
        confidence=confidence,
        margin=equivalence,
    )


def joint_floor(first: Cost | None, second: Cost | None, scale: Scale) -> float | None:
    """Return the combined noise floor of two runs, from the costs of their A/A arms; None if either is unknown.

    It is the root of the sum of the squared floors: a fraction (computed on logarithms), or in the metric's unit.
    """
    if first is None or second is None or {first.scale, second.scale} != {scale}:
        return None
    if scale == "difference":
        size = math.hypot(*(max(abs(each.low), abs(each.high)) for each in (first, second)))
        return size if math.isfinite(size) else None
    floors = noise_floor(first), noise_floor(second)
    if floors[0] is None or floors[1] is None:
        return None
    return math.expm1(math.hypot(math.log1p(floors[0]), math.log1p(floors[1])))


def verdict(
    cost_change: CostShift | None,
    adjusted_p: float | None,
    *,
    never_equivalent: bool = False,
    never_different: bool = False,
    hidden: bool = False,
) -> Verdict:
    """Return the verdict on a change, with the rules of `weighbridge.statistics.verdicts.verdict`.

    "Different" requires that the interval with the session allowance excludes no change, that Holm agrees
    (`adjusted_p`), and that the change exceeds the combined noise floor. The verdict is `hidden` if the cost is
    hidden in either run.
    """
    if cost_change is None:
        return "inconclusive"
    if hidden:
        return "hidden"
    if cost_change.equivalent and not proves_nothing(cost_change):
        return "inconclusive" if never_equivalent else "equivalent"
    significant = not never_different and (adjusted_p is None or adjusted_p <= ALPHA)
    floored = cost_change.scale == "ratio" or cost_change.floor is not None  # a difference has no session allowance
    if significant and cost_change.excludes_no_change and not cost_change.within_noise and floored:
        return "different"
    return "inconclusive"


def proves_nothing(cost_change: CostShift) -> bool:
    """Return whether each run's blocks are identical, but too few to rule out chance."""
    same = cost_change.high - cost_change.low <= SAME * max(abs(cost_change.low), abs(cost_change.high))
    return same and _separated_by_chance(*cost_change.blocks) > ALPHA


def shift_p_value(first: Sequence[float], second: Sequence[float], allowed: float = 0.0) -> float:
    """Return the two-sided p-value of "the means differ by no more than `allowed`", by Welch's t.

    If the values of neither run vary, return the share of all assignments of the values to the two runs that separate
    them as far. The result is never 0.
    """
    one, other = _sample(first), _sample(second)
    difference = float(other.mean() - one.mean())
    beyond = abs(difference) - allowed
    largest = max(float(np.abs(one).max()), float(np.abs(other).max()))
    if beyond <= SAME * largest:
        return 1.0
    if max(float(np.ptp(one)), float(np.ptp(other))) <= SAME * largest:
        return _separated_by_chance(one.size, other.size)
    return welch_p_value(_described(one), _described(other), allowed)


def _separated_by_chance(first: int, second: int) -> float:
    return min(1.0, 2 / math.comb(first + second, first))


def _shift(first: Floats, second: Floats, level: float) -> Interval:
    shift = shift_interval(first, second, level)
    if min(first.size, second.size) >= MIN_BLOCKS_SIGNED_RANK:
        return shift
    welch = OF_TWO.unblocked((_described(first), _described(second)), level)
    if welch is None:  # no spread in either
        return Interval(shift.estimate, shift.estimate, shift.estimate)
    return Interval(shift.estimate, min(welch.low, shift.estimate), max(welch.high, shift.estimate))


def _equivalent(
    first: Floats, second: Floats, level: float, margin: float | None, scale: Scale, allowed: float
) -> bool | None:
    if margin is None:
        return None
    if scale == "difference":
        return True if not first.any() and not second.any() else None
    interval, limit = _shift(first, second, level), math.log1p(margin)
    return -limit < interval.low - allowed and interval.high + allowed < limit


def _sample(values: Sequence[float]) -> Floats:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or sample.size < MIN_BLOCKS_INTERVAL:
        raise ValueError(
            f"A change needs at least {MIN_BLOCKS_INTERVAL} blocks of both runs, but one has {sample.size}."
        )
    if not np.isfinite(sample).all():
        raise ValueError("Every value must be finite: missing measurements cannot be compared.")
    return sample


def _check_settings(
    better: Better, confidence: float, equivalence: float | None, looks: int | Looks, allowance: float
) -> None:
    check_settings(better, confidence, equivalence, looks)
    if not 0 <= allowance < math.inf:
        raise ValueError(f"The session allowance must be a fraction such as 0.01, not {allowance}.")


def _described(values: Floats) -> Sample:
    return Sample(float(values.mean()), float(values.std(ddof=1)), values.size)


def _penalty(interval: Interval, scale: Scale, better: Better) -> Interval:
    return cost_percent(interval, better) if scale == "ratio" else cost_difference(interval, better)
