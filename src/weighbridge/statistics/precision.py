"""How many blocks: when to stop, how many a precision needs, and which workloads get a limited time.

A run stops on precision, at looks fixed beforehand, never because a cost seems significant. A cost that is precise
enough but not `decided` continues to a second precision, at which every cost is decided (`deciding_half_width`). So
each cost is judged at no more than two looks.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from weighbridge.statistics.contrast import Looks, looks_share
from weighbridge.statistics.cost import Cost
from weighbridge.statistics.distributions import chi_square_quantile, normal_quantile, t_quantile_at
from weighbridge.statistics.ranks import signed_rank_interval
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK
from weighbridge.statistics.verdicts import ALPHA, SAME, excludes_no_cost

LOOKS = (10, 13, 17, 22, 28, 35, 44, 60)
"""Numbers of blocks at which the precision is checked."""

GROWTH = 1.27
"""The factor between looks after the last of `LOOKS`, if more blocks are allowed."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision after a block."""

    action: Literal["continue", "reached", "cap"]
    """``continue`` to `next_blocks`; stop because the target is ``reached``; stop at the ``cap`` without it."""
    blocks: int
    """Number of finished blocks."""
    next_blocks: int | None
    """Number of blocks at the next look; None if the run stops."""
    width: float
    """Largest relative half-width among the comparisons (0.02 is ±2%); inf if there is none."""
    target: float
    """The half-width to reach."""
    reached: tuple[bool, ...]
    """For each comparison, in the given order, whether it can leave the schedule; all False between looks."""
    predicted_blocks: int | None
    """Total number of blocks after which every comparison should reach the target; None if unknown."""

    @property
    def stop(self) -> bool:
        """Return whether the run stops after this block."""
        return self.action != "continue"


def planned_looks(minimum: int = LOOKS[0], maximum: int = LOOKS[-1]) -> tuple[int, ...]:
    """Return the numbers of blocks at which a run is checked, including its minimum and maximum.

    Raises ValueError if the minimum is below 2 or above the maximum.
    """
    if not 2 <= minimum <= maximum:
        raise ValueError(
            f"Blocks must be at least 2, and at most the maximum: {minimum} to {maximum} is not a range."
        )
    looks = list(LOOKS)
    while looks[-1] < maximum:
        looks.append(round(looks[-1] * GROWTH))
    return (*sorted({minimum, maximum, *(look for look in looks if minimum < look < maximum)}),)


def next_look(
    blocks: int, costs: Sequence[Cost], target: float, *, minimum: int = LOOKS[0], maximum: int = LOOKS[-1]
) -> Decision:
    """Return whether to continue, from the widths of the intervals alone.

    `costs` are the costs of the comparisons still in the schedule, computed with ``looks`` > 1 (see `planned_looks`).
    `target` is the relative half-width to reach. A comparison on the difference scale has no relative width and
    continues to the maximum unless its interval is one point. The prediction lets the width fall with the square root
    of the blocks. Raises ValueError for a target that is not positive or an impossible range.
    """
    if not 0 < target < math.inf:
        raise ValueError(f"The target must be a positive fraction such as 0.02, not {target}.")
    looks = planned_looks(minimum, maximum)
    widths = [cost.half_width for cost in costs]
    width = max(widths, default=math.inf)
    looking = blocks in looks or blocks >= maximum
    reached = tuple(looking and each <= target for each in widths)
    all_reached = looking and all(reached)
    following = next((look for look in looks if look > blocks), None)
    return Decision(
        action="reached" if all_reached else "cap" if following is None else "continue",
        blocks=blocks,
        next_blocks=None if all_reached else following,
        width=width,
        target=target,
        reached=reached,
        predicted_blocks=_predicted(costs, target, minimum),
    )


def _predicted(costs: Sequence[Cost], target: float, minimum: int) -> int | None:
    needed = [blocks_to_target(cost.half_width, cost.blocks, target) for cost in costs]
    known = [each for each in needed if each is not None]
    return max(minimum, *known) if known and len(known) == len(needed) else None


# -- how precise a verdict has to be ----------------------------------------------------------------


def decided(cost: Cost, comparisons: int, looks: int | Looks) -> bool:
    """Return whether a cost is within its margin, or different among ``comparisons`` (with Bonferroni's correction).

    Also return True if no number of blocks can decide it: differences have no margin.
    """
    if cost.equivalent is not False or not (cost.low > 0 and cost.high < math.inf):
        return cost.equivalent is not False
    level = ALPHA * looks_share(looks)
    size = math.log1p(widened(cost.half_width, level, level / comparisons))
    return excludes_no_cost(cost) and abs(math.log(cost.typical)) > size


def deciding_half_width(margin: float, comparisons: int, looks: int | Looks) -> float:
    """Return the relative half-width at which every cost, whatever its size, is either within the margin or
    different.

    ``margin`` is a fraction. For blocks whose mean is about normal, the limits of "different" among ``comparisons``
    and of "equivalent" meet there. For one comparison it is 0.54 of the margin: ±1.6% for ±3%.
    """
    level = ALPHA * looks_share(looks)
    levels = (level, level / comparisons, 2 * level)
    interval, different, equivalent = (normal_quantile(1 - each / 2) for each in levels)
    return math.expm1(math.log1p(margin) * interval / (different + equivalent))


# -- how precise a run will be --------------------------------------------------------------------

SOONEST, LATEST = -2.0, 1.0
"""The usual range of the spread of a forecast by `half_width_after`."""
OUT_OF_REACH = -4.5
"""The spread of a forecast that hardly any run exceeds."""


def half_width_after(half_width: float, blocks: int, later: int, spread: float = 0.0) -> float:
    """Return the expected relative half-width after ``later`` blocks in all, given that after ``blocks`` blocks.

    Its logarithm falls with the square root of the blocks. A width from few blocks is itself uncertain, and too large
    for blocks with heavy tails. It then falls by up to exp(``spread`` * sqrt(1 / blocks - 1 / later)) more. For
    normal blocks, a width's logarithm has a standard deviation of 0.7 / sqrt(blocks), in eight kept runs up to 2.

    `benchmarks/forecasts.py` simulates both as a run applies them, at each look, with noise of all sizes. "Out of
    reach" (`OUT_OF_REACH`) is wrong in 0 to 4% of the runs that get it (up to 11% for two alternating values, whose
    interval narrows at once). The square root alone was wrong in 11 to 37%. With blocks resampled from four real runs
    it is wrong in 3%, with stretches of 40 blocks in their order in 1 to 5% (square root: 23 to 32%). Targets are
    reached between `SOONEST` and `LATEST` at 78 to 97% of the looks (noise in episodes 65%, real blocks in their
    order 72%, two alternating values 56%).
    """
    factor = math.sqrt(blocks / later) * math.exp(spread * math.sqrt(max(0.0, 1 / blocks - 1 / later)))
    return math.expm1(min(700.0, math.log1p(half_width) * factor))


_TINY = 1e-9
"""A target that no number of blocks reaches."""


def blocks_to_target(half_width: float, blocks: int, target: float, spread: float = 0.0) -> int | None:
    """Return the total number of blocks, at least ``blocks``, at which `half_width_after` is ``target``; or None."""
    if not half_width < 1e6 or blocks < 1 or target < _TINY:
        return None
    low, high = blocks, max(blocks, math.ceil(blocks * (math.log1p(half_width) / math.log1p(target)) ** 2))
    if half_width <= target or not spread:
        return high
    while half_width_after(half_width, blocks, high, spread) > target:
        low, high = high, 2 * high
    while low + 1 < high:
        middle = (low + high) // 2
        enough = half_width_after(half_width, blocks, middle, spread) <= target
        low, high = (low, middle) if enough else (middle, high)
    return high


def widened(half_width: float, before: float, after: float) -> float:
    """Return a relative half-width at an error of ``after`` instead of ``before``, as for a further look."""
    factor = normal_quantile(1 - after / 2) / normal_quantile(1 - before / 2)
    return math.expm1(min(700.0, math.log1p(half_width) * factor))


# -- what a comparison can see ------------------------------------------------------------------

_Z = 2.108
"""Quantile of the normal distribution for the 96.5% interval of one of several looks."""
_EFFICIENCY = 3 / math.pi
"""Efficiency of the median of Walsh averages against the mean, for normal differences (Hodges & Lehmann 1963)."""
_Z_POWER = 0.8416
"""Quantile of the normal distribution at 80%."""
DETECTABLE = (1.96 + _Z_POWER) / 1.96
"""A cost of this multiple (1.43) of a 95% interval's half-width is called different in four of five runs.

That is the power of 80% of one comparison of many blocks at a two-sided 5% (Cohen 1988, section 2.4), which
`tests/statistics/test_precision.py` simulates."""


def smallest_visible_cost(half_width: float, spent_s: float, span_s: float) -> float:
    """Return the smallest cost that shows in `span_s`, from an interval that needed `spent_s`; both are in seconds.

    The width falls with the square root of the time spent.
    """
    return DETECTABLE * half_width * math.sqrt(spent_s / span_s)


POWER = 0.8
"""The share of runs that find a cost or shift of the size that is called visible."""


SURE = 0.8
"""The probability that the blocks' spread is at most the one that a visible effect assumes."""


def error_at(effects: Sequence[float], level: float) -> float:
    """Return the standard error of blocks' effects, as their two-sided test at ``level`` has it, in their unit.

    It is the half-width of the interval that the test inverts, divided by the quantile of Student's t (Lehmann,
    Annals of Mathematical Statistics 34, 1963). From 10 blocks on, it is the exact signed-rank interval, which a few
    slow trials hardly change in runs of 20 blocks or more. With fewer than 10 blocks, and if that interval has no
    limits at this level or only one value, the error is that of the mean, which Student's t uses. It is 0 if all
    effects are the same up to rounding, and inf with fewer than two blocks.
    """
    blocks = len(effects)
    if blocks < 2:
        return math.inf
    rounding = SAME * max(abs(each) for each in effects)
    if blocks >= MIN_BLOCKS_SIGNED_RANK:
        interval = signed_rank_interval(np.asarray(effects, dtype=np.float64), 1 - level)
        error = (interval.high - interval.low) / 2 / t_quantile_at(blocks - 1, 1 - level / 2)
        if rounding < error < math.inf:
            return error
    error = float(np.std(effects, ddof=1)) / math.sqrt(blocks)
    return error if error > rounding else 0.0


def visible_effect(standard_error: float, blocks: int, level: float, *, known_from: int | None = None) -> float:
    """Return the smallest effect that at least four of five runs like this one find, in the error's unit.

    ``standard_error`` belongs to the blocks' effects (logarithms, or differences): see `error_at`. An effect is found
    if a test is significant at ``level`` (two-sided; in a family, the level that Holm leaves). ``known_from`` is the
    number of blocks that showed the spread, if it comes from other blocks. Returns inf with fewer than two blocks.

    It is the noncentrality m of Student's t with power 80% in its normal approximation (Johnson & Welch, Biometrika
    31, 1940), in which the standard errors of both runs vary by 1 / (2 degrees of freedom): m = c + z sqrt(1 + (c^2 +
    m^2) / (2 degrees)), c the critical value; times the upper limit at `SURE` of the standard error (Browne,
    Statistics in Medicine 14, 1995), because one run can meet fewer slow trials than the next. ``benchmarks/rule.py``
    simulates it.
    """
    if min(blocks, known_from or blocks) < 2:
        return math.inf
    known_degrees = (known_from or blocks) - 1
    degrees, z = blocks - 1, normal_quantile(POWER)
    critical = t_quantile_at(degrees, 1 - level / 2)
    rest = 1 - z**2 / (2 * degrees)
    significant = (critical + math.sqrt(critical**2 - rest * (rest * critical**2 - z**2))) / rest
    return significant * standard_error * math.sqrt(known_degrees / chi_square_quantile(known_degrees, 1 - SURE))


MOST_BLOCKS = 1000
"""The largest number of blocks of a run."""


def blocks_to_settle(
    standard_error: float, blocks: int, level: float, margin: float, looks_share: float = 1.0
) -> int | None:
    """Return the total number of blocks that show a cost of the margin, and prove that no cost is within it.

    Both hold in at least four of five runs: see `visible_effect`; for equivalence, both one-sided tests must hold if
    there is no cost (each in 90%). ``margin`` is on the scale of the standard error, which falls with the square root
    of the blocks. Returns None beyond `MOST_BLOCKS`.
    """
    both_sides = normal_quantile((1 + POWER) / 2)

    def effect(number: int) -> float:
        """Return the effect that is shown or ruled out after ``number`` blocks."""
        error = standard_error * math.sqrt(blocks / number)
        one_sided = t_quantile_at(number - 1, 1 - 0.05 * looks_share) + both_sides
        return max(visible_effect(error, number, level), one_sided * error / math.sqrt(_EFFICIENCY))

    if blocks > 1 and effect(blocks) <= margin:
        return blocks
    number = max(blocks, 2)
    for _ in range(4):  # except for the degrees of freedom, effects fall with the square root of the blocks
        further = number * (effect(number) / margin) ** 2
        if further > MOST_BLOCKS:
            return None
        number = max(blocks, 2, math.ceil(further))
    while effect(number) > margin:
        number += 1
    while number > max(blocks, 2) and effect(number - 1) <= margin:
        number -= 1
    return number


def expected_half_width(variation: float, blocks: int) -> float:
    """Return the relative half-width to expect of a comparison: 0.02 is ±2%.

    ``variation`` is the standard deviation of its within-block log ratios.
    """
    return math.expm1(_Z * variation / math.sqrt(blocks * _EFFICIENCY))


def blocks_needed(variation: float, target: float) -> int:
    """Return the number of blocks at which `expected_half_width` is ``target``, at least `LOOKS[0]`."""
    return max(LOOKS[0], math.ceil((_Z * variation / math.log1p(target)) ** 2 / _EFFICIENCY))


# -- blocks of a limited time -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Contender:
    """A workload at a level, with comparisons that are not precise enough yet."""

    blocks: int
    """Number of finished blocks."""
    needed: tuple[float, ...]
    """For each open comparison, the total number of blocks at which it will be precise enough; inf if unknown."""
    trial_s: tuple[float, ...]
    """For each open comparison, the seconds of a trial of its environment."""
    base_s: float
    """Seconds of the other trials of each block: the baseline and its A/A arm."""

    def gain(self, further: int) -> tuple[float, float]:
        """Return the gain of the block after ``further`` more, and its seconds; zeros if all is precise enough then.

        An interval's width falls with the square root of the blocks: its logarithm by half of log((n + 1) / n). So
        halving a wide interval is worth as much as halving a narrow one.
        """
        total_blocks = self.blocks + further
        open_s = [each for needed, each in zip(self.needed, self.trial_s, strict=True) if needed > total_blocks]
        if not open_s:
            return 0.0, 0.0
        return 0.5 * len(open_s) * math.log1p(1 / max(1, total_blocks)), self.base_s + sum(open_s)


def allotted(contenders: Sequence[Contender], left_s: float, most: int) -> list[int]:
    """Return how many more blocks each contender gets in the time that is left, by the gain per second.

    No contender gets more than ``most`` blocks in all. The choice depends on blocks, times and widths, never on an
    observed difference.

    The gain per second falls from block to block until a comparison is precise enough and leaves the blocks; later
    blocks can be much cheaper. So the choice is between runs of blocks, not only the next block: the greedy choice
    along the concave hulls of gain by time, which is the best of the relaxed knapsack (Dantzig, Operations Research
    5, 1957). If a complete run of blocks does not fit after the earlier choices, a solution with that run first is
    tried too.
    """
    curves = [_GainCurve(each, left_s, most) for each in contenders]
    floors = [0] * len(curves)
    best, further = _greedy(curves, floors, left_s)
    improved = True
    while improved:
        improved = False
        for number, curve in enumerate(curves):
            for floor in (each for each in curve.ends if each > floors[number]):
                tried = [*floors[:number], floor, *floors[number + 1 :]]
                gain, blocks = _greedy(curves, tried, left_s)
                if gain > best * (1 + 1e-9):
                    best, further, improved, forced = gain, blocks, True, tried
        if improved:
            floors = forced
    return further


class _GainCurve:
    def __init__(self, contender: Contender, left_s: float, most: int) -> None:
        needed = max(contender.needed, default=0)
        last = max(0, min(most, math.ceil(min(needed, most))) - contender.blocks)
        gains, seconds = [0.0], [0.0]
        for further in range(last):
            gain, step_s = contender.gain(further)
            gains.append(gains[-1] + gain)
            seconds.append(seconds[-1] + max(step_s, 1e-9))
            if seconds[-1] > left_s:
                break
        self.gain, self.seconds = np.array(gains), np.array(seconds)
        ends = {math.ceil(each) - contender.blocks for each in contender.needed if math.isfinite(each)}
        self.ends = sorted(end for end in ends if 0 < end < len(gains))
        """The numbers of further blocks after which a comparison leaves, so that the next block is cheaper."""

    def next_run(self, first: int, left_s: float) -> tuple[float, int] | None:
        """Return the gain per second of the best run of blocks after ``first`` that fits, and its end; or None."""
        fits = int(np.searchsorted(self.seconds, self.seconds[first] + left_s + 1e-9, side="right"))
        if fits <= first + 1:
            return None
        # after the last end, the gain falls from block to block
        until = first + 2 if not self.ends or first >= self.ends[-1] else fits
        run = slice(first + 1, until)
        rates = (self.gain[run] - self.gain[first]) / (self.seconds[run] - self.seconds[first])
        best = int(rates.argmax())
        return float(rates[best]), first + 1 + best


def _greedy(curves: Sequence[_GainCurve], floors: Sequence[int], left_s: float) -> tuple[float, list[int]]:
    """Return the gain, and each curve's number of further blocks, which is at least its number in ``floors``.

    The gain is negative if the floors alone do not fit.
    """
    further = [*floors]
    left_s -= sum(float(curve.seconds[floor]) for curve, floor in zip(curves, floors, strict=True))
    waiting: list[tuple[float, int, int]] = []

    def enter(number: int) -> None:
        if (run := curves[number].next_run(further[number], left_s)) is not None:
            heapq.heappush(waiting, (-run[0], number, run[1]))

    if left_s < -1e-9:
        return -1.0, further
    for number in range(len(curves)):
        enter(number)
    while waiting:
        _, number, until = heapq.heappop(waiting)
        seconds = float(curves[number].seconds[until] - curves[number].seconds[further[number]])
        if seconds <= left_s + 1e-9:
            left_s -= seconds
            further[number] = until
        enter(number)  # if the run did not fit, enter the best run that does
    return sum(float(curve.gain[each]) for curve, each in zip(curves, further, strict=True)), further


def shared(further: Sequence[int], contenders: Sequence[Contender], blocks: int) -> list[int]:
    """Return how many of the next ``blocks`` blocks include each contender, which gets ``further`` blocks in all.

    If the time suffices for all contenders, each takes part in all blocks, so that none has to wait.
    """
    pairs = list(zip(further, contenders, strict=True))
    enough = all(each.blocks + extra_blocks >= max(each.needed) for extra_blocks, each in pairs)
    largest = max(further, default=0)
    if enough or not largest:
        return [blocks] * len(pairs)
    return [min(blocks, round(blocks * extra_blocks / largest)) for extra_blocks, _ in pairs]
