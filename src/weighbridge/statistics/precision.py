"""How many blocks: when to stop, how many a precision takes, and which workloads a limited time goes to.

It stops on precision, at looks fixed beforehand, never because a cost seems significant. A cost that is precise
enough and still undecided (`decided`) goes on to a second precision, at which every cost is decided
(`deciding_half_width`): so each is judged at two looks at most, and not at each one in between.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from weighbridge.statistics.contrast import Looks, looks_share
from weighbridge.statistics.cost import Cost
from weighbridge.statistics.verdicts import ALPHA, excludes_no_cost

LOOKS = (10, 13, 17, 22, 28, 35, 44, 60)
"""Numbers of blocks at which the precision is looked at."""

GROWTH = 1.27
"""How the looks go on after the last one, should more blocks be allowed."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do after a block."""

    action: Literal["continue", "reached", "cap"]
    """``continue`` to `next_blocks`; stop, the target is ``reached``; stop at the ``cap`` without it."""
    blocks: int
    """Blocks done."""
    next_blocks: int | None
    """Number of blocks at the next look; None where to stop."""
    width: float
    """Largest relative half-width among the comparisons (0.02 is ±2 %); inf while there is none."""
    target: float
    """The half-width wanted."""
    reached: tuple[bool, ...]
    """Per comparison, in the order given, whether it may leave the schedule; all False between looks."""
    predicted_blocks: int | None
    """Blocks in all after which every comparison should reach the target; None where it cannot be told."""

    @property
    def stop(self) -> bool:
        """Whether no further block is to be run."""
        return self.action != "continue"


def planned_looks(minimum: int = LOOKS[0], maximum: int = LOOKS[-1]) -> tuple[int, ...]:
    """Give the numbers of blocks at which a run with this minimum and maximum is looked at, both included.

    Raises ValueError where the minimum is below 2 or above the maximum.
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
    """Say whether to go on, from the widths of the intervals alone.

    `costs` are those of the comparisons still in the schedule, made with ``looks`` > 1 (see `planned_looks`);
    `target` is the relative half-width wanted. A comparison on the difference scale has no relative width and goes
    on to the maximum unless its interval is one point. The prediction lets the width fall with the
    square root of the blocks. Raises ValueError for a target that is not positive or an impossible range.
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
    """Whether a cost with a margin is within it, or different among so many ``comparisons`` (as Bonferroni has it).

    Also where no number of blocks decides it: by difference there is no margin.
    """
    if cost.equivalent is not False or not (cost.low > 0 and cost.high < math.inf):
        return cost.equivalent is not False
    level = ALPHA * looks_share(looks)
    size = math.log1p(widened(cost.half_width, level, level / comparisons))
    return excludes_no_cost(cost) and abs(math.log(cost.typical)) > size


def deciding_half_width(margin: float, comparisons: int, looks: int | Looks) -> float:
    """Return the relative half-width at which every cost is either within the margin or different, whatever it is.

    ``margin`` is a fraction. For blocks whose mean is about normal: there the limits of "different", among so many
    ``comparisons``, and of "equivalent" meet. Of one comparison 0.54 of the margin: ±1.6 % of ±3 %.
    """
    from scipy.special import ndtri

    level = ALPHA * looks_share(looks)
    interval, different, equivalent = (float(ndtri(1 - each / 2)) for each in (level, level / comparisons, 2 * level))
    return math.expm1(math.log1p(margin) * interval / (different + equivalent))


# -- how precise a run will be --------------------------------------------------------------------

SOONEST, LATEST = -2.0, 1.0
"""Spreads between which a forecast of `half_width_after` mostly lies."""
OUT_OF_REACH = -4.5
"""The spread of a forecast that next to no run is more favourable than."""


def half_width_after(half_width: float, blocks: int, later: int, spread: float = 0.0) -> float:
    """Return the relative half-width to expect after ``later`` blocks in all, by that after ``blocks`` of them.

    Its logarithm falls with the square root of the blocks. A width of few blocks is itself uncertain, and of blocks
    with heavy tails too large: that falls by up to exp(``spread`` * sqrt(1 / blocks - 1 / later)) more. Of normal
    blocks a width's logarithm has a standard deviation of 0.7 / sqrt(blocks), of eight kept runs up to 2.

    `benchmarks/forecasts.py` simulates both as a run applies them, at each look, with noise of all sizes. "Out of
    reach" (`OUT_OF_REACH`) is refuted in 0 to 4 % of the runs in which it is said (two values by turns, whose
    interval narrows at once, up to 11 %); by the square root alone it was in 11 to 37 %. With the blocks of four real
    runs drawn anew it is in 3 %, with stretches of 40 of them in their order in 1 to 5 % (23 to 32 %). Targets are
    reached between `SOONEST` and `LATEST` at 78 to 97 % of the looks (noise in episodes 65 %, real blocks in their
    order 72 %, two values by turns 56 %).
    """
    factor = math.sqrt(blocks / later) * math.exp(spread * math.sqrt(max(0.0, 1 / blocks - 1 / later)))
    return math.expm1(min(700.0, math.log1p(half_width) * factor))


def blocks_to_target(half_width: float, blocks: int, target: float, spread: float = 0.0) -> int | None:
    """Return after how many blocks in all `half_width_after` is ``target``, at least ``blocks``; None if never."""
    if not half_width < 1e6 or blocks < 1:
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
    """Return a relative half-width at an error of ``after`` in place of ``before``, as a further look has it."""
    from scipy.special import ndtri

    return math.expm1(min(700.0, math.log1p(half_width) * float(ndtri(1 - after / 2) / ndtri(1 - before / 2))))


# -- what a comparison can see ------------------------------------------------------------------

_Z = 2.108
"""Quantile of the normal distribution for an interval of 96.5 %, which one of several looks has."""
_EFFICIENCY = 3 / math.pi
"""Of the median of Walsh averages against the mean, for normal differences (Hodges & Lehmann 1963)."""
_Z_POWER = 0.8416
"""Quantile of the normal distribution at 80 %."""
DETECTABLE = (1.96 + _Z_POWER) / 1.96
"""A cost this many times the half-width of a 95 % interval, 1.43, is called different in four runs of five.

That is the power of 80 % of one comparison of many blocks at a two-sided 5 % (Cohen 1988, section 2.4), which
`tests/statistics/test_precision.py` simulates."""


def smallest_visible_cost(half_width: float, spent_s: float, span_s: float) -> float:
    """Return the smallest cost that shows in `span_s`, from an interval that took `spent_s`; both are in seconds.

    The width falls with the square root of the time spent.
    """
    return DETECTABLE * half_width * math.sqrt(spent_s / span_s)


POWER = 0.8
"""The share of runs in which a cost or shift of the size that is called visible is found."""


SURE = 0.8
"""How sure the spread of the blocks is to be no larger than the one that a visible effect reckons with."""


def visible_effect(standard_error: float, blocks: int, level: float) -> float:
    """Return the smallest effect that is found in at least four of five runs like this one, in the error's unit.

    ``standard_error`` is that of the mean of the blocks' effects (logarithms, or differences). An effect is found
    where a test is significant at ``level`` (two-sided: of a family the one that Holm leaves). inf with fewer than
    two blocks.

    It is the noncentrality m of Student's t with power 80 % in its normal approximation (Johnson & Welch, Biometrika
    31, 1940), in which the standard errors of both runs vary by 1 / (2 degrees of freedom): m = c + z sqrt(1 + (c^2 +
    m^2) / (2 degrees)), c the critical value; times the upper limit at `SURE` of the standard error (Browne,
    Statistics in Medicine 14, 1995), as one run may have met fewer slow trials than the next.
    ``benchmarks/rule.py`` simulates it.
    """
    from scipy.special import chdtri, ndtri, stdtrit

    if blocks < 2:
        return math.inf
    degrees, z = blocks - 1, float(ndtri(POWER))
    critical = float(stdtrit(degrees, 1 - level / 2))
    rest = 1 - z**2 / (2 * degrees)
    significant = (critical + math.sqrt(critical**2 - rest * (rest * critical**2 - z**2))) / rest
    return significant * standard_error * math.sqrt(degrees / float(chdtri(degrees, SURE)))


MOST_BLOCKS = 1000
"""More blocks a run cannot have: what takes more is out of its reach."""


def blocks_to_settle(
    standard_error: float, blocks: int, level: float, margin: float, looks_share: float = 1.0
) -> int | None:
    """Return after how many blocks in all a cost of the margin shows, and no cost is proven to be within it.

    Both in at least four of five runs: see `visible_effect`; for equivalence both one-sided tests have to hold where
    there is no cost (each in 90 %). ``margin`` is on the scale of the standard error, which falls with the square
    root of the blocks. None beyond `MOST_BLOCKS`.
    """
    from scipy.special import ndtri, stdtrit

    both_sides = float(ndtri((1 + POWER) / 2))

    def effect(number: int) -> float:
        """What is shown or ruled out after so many blocks."""
        error = standard_error * math.sqrt(blocks / number)
        one_sided = float(stdtrit(number - 1, 1 - 0.05 * looks_share)) + both_sides
        return max(visible_effect(error, number, level), one_sided * error / math.sqrt(_EFFICIENCY))

    if blocks > 1 and effect(blocks) <= margin:
        return blocks
    number = max(blocks, 2)
    for _ in range(4):  # but for the degrees of freedom, effects fall with the square root of the blocks
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
    """Return the relative half-width to expect of a comparison: 0.02 is ±2 %.

    ``variation`` is the standard deviation of its within-block log ratios.
    """
    return math.expm1(_Z * variation / math.sqrt(blocks * _EFFICIENCY))


def blocks_needed(variation: float, target: float) -> int:
    """Return after how many blocks `expected_half_width` is ``target``; at least those of the first look."""
    return max(LOOKS[0], math.ceil((_Z * variation / math.log1p(target)) ** 2 / _EFFICIENCY))


# -- blocks of a limited time -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Contender:
    """A workload at a level, with comparisons that are not precise enough yet."""

    blocks: int
    """Blocks done."""
    needed: tuple[float, ...]
    """Of each open comparison: after how many blocks in all it is precise enough; inf where that cannot be told."""
    trial_s: tuple[float, ...]
    """Of each of them: seconds of a trial of its environment."""
    base_s: float
    """Seconds of the trials that each block has beside those: the baseline's and those of its A/A arm."""

    def gain(self, further: int) -> tuple[float, float]:
        """What the block after ``further`` more gains, and its seconds; nothing where all is precise enough then.

        An interval's width falls with the square root of the blocks: its logarithm by half of log((n + 1) / n). So
        halving a wide interval is worth as much as halving a narrow one.
        """
        total_blocks = self.blocks + further
        open_s = [each for needed, each in zip(self.needed, self.trial_s, strict=True) if needed > total_blocks]
        if not open_s:
            return 0.0, 0.0
        return 0.5 * len(open_s) * math.log1p(1 / max(1, total_blocks)), self.base_s + sum(open_s)


def allotted(contenders: Sequence[Contender], left_s: float, most: int) -> list[int]:
    """Give how many more blocks each gets in the time that is left: it goes where a second gains most.

    None has more than ``most`` blocks in all. It is decided on blocks, times and widths, never on a difference seen.

    The gain per second falls from block to block until a comparison is precise enough and leaves the blocks; what
    follows may be much cheaper. So runs of blocks are weighed and not the next one alone: the greedy choice along the
    concave hulls of gain by time, which is the best of the relaxed knapsack (Dantzig, Operations Research 5, 1957).
    Where a whole such run does not fit beside what was chosen before it, it is tried with that run first.
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
    """What further blocks of a contender gain, and the seconds they take, summed up as far as the time allows."""

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
        """After how many further blocks a comparison leaves, and the next block is cheaper."""

    def next_run(self, at: int, left_s: float) -> tuple[float, int] | None:
        """Gain per second of the best run of blocks after ``at`` that fits, and its last block; None without one."""
        fits = int(np.searchsorted(self.seconds, self.seconds[at] + left_s + 1e-9, side="right"))
        if fits <= at + 1:
            return None
        until = at + 2 if not self.ends or at >= self.ends[-1] else fits  # from the last end on each block gains less
        rates = (self.gain[at + 1 : until] - self.gain[at]) / (self.seconds[at + 1 : until] - self.seconds[at])
        best = int(rates.argmax())
        return float(rates[best]), at + 1 + best


def _greedy(curves: Sequence[_GainCurve], floors: Sequence[int], left_s: float) -> tuple[float, list[int]]:
    """Give the gain, and how many further blocks each gets that has so many (``floors``) in any case.

    The gain is negative where already these do not fit.
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
        enter(number)  # where it did not fit: with the best run that does
    return sum(float(curve.gain[each]) for curve, each in zip(curves, further, strict=True)), further


def shared(further: Sequence[int], contenders: Sequence[Contender], blocks: int) -> list[int]:
    """Give in how many of the next ``blocks`` blocks each takes part, where it gets so many ``further`` in all.

    In all of them where the time suffices for everybody: then none has to wait.
    """
    pairs = list(zip(further, contenders, strict=True))
    enough = all(each.blocks + extra_blocks >= max(each.needed) for extra_blocks, each in pairs)
    largest = max(further, default=0)
    if enough or not largest:
        return [blocks] * len(pairs)
    return [min(blocks, round(blocks * extra_blocks / largest)) for extra_blocks, _ in pairs]
