"""Looks at which a gate may end, and what of the error each may spend: it stops on its answer, not on precision.

Whoever stops as soon as an interval leaves a limit behind looks for the answer again and again, and with five looks
at 95 % is wrong nearly three times as often as with one. So the looks share the error: their levels add up to less
than the whole (Bonferroni), which holds for exact tests of any number of blocks and however the looks depend on one
another; limits of Pocock or O'Brien and Fleming are a few per cent narrower, but lean on normal differences. The
intervals of all looks together hold at 95 % (repeated confidence intervals: Jennison and Turnbull, "Interim analyses:
the repeated confidence interval approach", J. R. Statist. Soc. B 51 (1989)).
"""

import math
from collections.abc import Sequence

from weighbridge.statistics.between import CostShift, shift_p_value
from weighbridge.statistics.contrast import OF_TWO, Looks, Paired, looks_share
from weighbridge.statistics.cost import Cost
from weighbridge.statistics.precision import GROWTH
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import PValues, p_values_of, smallest_p_value

MOST_LOOKS = 5
"""Looks of one extension, its first and last one too."""

SPENT = 0.8
"""What a gate plans to spend of the error that is left, in one look or in several: a later one has a fifth of it."""

LEAST_SHARE = 1e-6
"""The share of the error below which a look spends nothing, and decides nothing."""


def decision_looks(blocks: int, most: int) -> tuple[int, ...]:
    """Give the numbers of blocks at which a gate looks that has ``blocks`` and may go on to ``most``, both included.

    Each has at least 1.27 times as many blocks as the one before where there is room for that. Raises ValueError
    where ``most`` is less than ``blocks``, or there is none.
    """
    if not 1 <= blocks <= most:
        raise ValueError(f"From {blocks} blocks a gate cannot go on to {most}.")
    growth = most / blocks
    steps = min(MOST_LOOKS - 1, max(1, math.floor(math.log(growth) / math.log(GROWTH))))
    return tuple(sorted({round(blocks * growth ** (step / steps)) for step in range(steps + 1)}))


def look_shares(looks: Sequence[int], left: float = 1.0) -> tuple[float, ...]:
    """Give the share of the whole error (1 is all of it) that each look spends, of what is ``left`` of it.

    In proportion to the root of the blocks: in proportion to the blocks themselves ten blocks would get less than an
    exact interval of theirs needs. Nothing where there are too few to decide anything.
    """
    weights = [math.sqrt(look) if look >= MIN_BLOCKS_VERDICT else 0.0 for look in looks]
    total = sum(weights)
    shares = (left * SPENT * weight / total if total else 0.0 for weight in weights)
    return tuple(share if share >= LEAST_SHARE else 0.0 for share in shares)


def limit_p_values(values: Paired, cost: Cost, limit: float, looks: int | Looks, *, guarded: bool = False) -> PValues:
    """Give the p-values of "the cost is not above ``limit``", of which `PValues.among` says which one counts.

    ``limit`` is in the unit of ``cost.worsening``: percent, or the metric's; ``guarded`` as in `PValues`. They are
    two-sided, so that they stand against the same 5 % as the interval; 1 where the cost is not above the limit.
    """
    smallest, (baseline, other) = smallest_p_value(cost.blocks, looks), values
    worse = 1.0 if cost.better == "lower" else -1.0
    ratio = 1 + worse * limit / 100
    if not cost.worsening.estimate > limit:
        return PValues(cost.blocks, 1.0, smallest, 1.0, guarded)
    if cost.scale == "ratio" and ratio <= 0:  # no ratio is as low: of a latency every cost is above the limit
        certain = 0.0 if worse > 0 else 1.0
        return PValues(cost.blocks, certain, smallest, certain, guarded)
    moved = [each - worse * limit if cost.scale == "difference" else each / ratio for each in other]
    at_limit = OF_TWO.cost((baseline, moved), better=cost.better, looks=looks, scale=cost.scale)
    return p_values_of(OF_TWO.effects((baseline, moved), cost.scale), at_limit, looks, guarded=guarded)


def margin_p_value(
    first: Sequence[float], second: Sequence[float], change: CostShift, margin: float, looks: int | Looks
) -> float:
    """Give the p-value of "the cost became no worse than ``margin``" (percent), by Welch's t as `shift_p_value`.

    ``first`` and ``second`` are the log ratios of two runs' blocks, ``change`` what `between.change` makes of them.
    The session allowance is given; two-sided, as `limit_p_values`; 1 where the change is no worse than the margin.
    """
    ratio = 1 + margin / 100 * (1 if change.better == "lower" else -1)
    if ratio <= 0 or not change.worsening.estimate > margin:
        return 1.0
    moved = [value - math.log(ratio) for value in second]
    return min(1.0, shift_p_value(first, moved, math.log1p(change.allowance)) / looks_share(looks))
