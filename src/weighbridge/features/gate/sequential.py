"""The looks at which a gate can end, and the error that each can spend: a gate stops on its answer, not on precision.

A procedure that stops as soon as an interval is on one side of a limit looks for the answer repeatedly. With five
looks at 95% it is wrong nearly three times as often as with one. So the looks share the error: their levels add up to
less than the total (Bonferroni), which holds for exact tests of any number of blocks and for any dependence between
looks. Limits of Pocock or O'Brien and Fleming are a few per cent narrower, but assume normal differences. The
intervals of all looks together hold at 95% (repeated confidence intervals: Jennison and Turnbull, "Interim analyses:
the repeated confidence interval approach", J. R. Statist. Soc. B 51 (1989)).
"""

import math
from collections.abc import Sequence

from weighbridge.features.gate.between import CostShift, shift_p_value
from weighbridge.statistics.contrast import OF_TWO, Looks, Paired, looks_share
from weighbridge.statistics.cost import Cost
from weighbridge.statistics.precision import GROWTH
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import PValues, p_values_of, smallest_p_value

MOST_LOOKS = 5
"""The largest number of looks of one extension, including its first and last one."""

SPENT = 0.8
"""The share of the remaining error that a gate plans to spend, in one or several looks; a later gate has the rest."""

LEAST_SHARE = 1e-6
"""The share of the error below which a look spends nothing, and decides nothing."""


def decision_looks(blocks: int, most: int) -> tuple[int, ...]:
    """Return the numbers of blocks at which a gate looks, from ``blocks`` to ``most``, both included.

    Each is at least 1.27 times the one before if there is room for that. Raises ValueError if ``most`` is less than
    ``blocks``, or without blocks.
    """
    if not 1 <= blocks <= most:
        raise ValueError(f"From {blocks} blocks a gate cannot go on to {most}.")
    growth = most / blocks
    steps = min(MOST_LOOKS - 1, max(1, math.floor(math.log(growth) / math.log(GROWTH))))
    return tuple(sorted({round(blocks * growth ** (step / steps)) for step in range(steps + 1)}))


def look_shares(looks: Sequence[int], left: float = 1.0) -> tuple[float, ...]:
    """Return the share of the total error (1 is all of it) that each look spends of the share that is ``left``.

    Shares are proportional to the root of the blocks: in proportion to the blocks themselves, ten blocks would get
    less than their exact interval needs. The share is 0 with too few blocks to decide anything.
    """
    weights = [math.sqrt(look) if look >= MIN_BLOCKS_VERDICT else 0.0 for look in looks]
    total = sum(weights)
    shares = (left * SPENT * weight / total if total else 0.0 for weight in weights)
    return tuple(share if share >= LEAST_SHARE else 0.0 for share in shares)


def limit_p_values(values: Paired, cost: Cost, limit: float, looks: int | Looks, *, guarded: bool = False) -> PValues:
    """Return the p-values of "the cost is not above ``limit``"; `PValues.among` selects the one that counts.

    ``limit`` is in the unit of ``cost.penalty``: percent, or the metric's; ``guarded`` is described in `PValues`.
    The p-values are two-sided, so that they are held to the same 5% as the interval; 1 if the cost is not above the
    limit.
    """
    smallest, (baseline, other) = smallest_p_value(cost.blocks, looks), values
    worse = 1.0 if cost.better == "lower" else -1.0
    ratio = 1 + worse * limit / 100
    if not cost.penalty.estimate > limit:
        return PValues(cost.blocks, 1.0, smallest, 1.0, guarded)
    if cost.scale == "ratio" and ratio <= 0:  # no ratio is that low: for a latency every cost is above the limit
        certain = 0.0 if worse > 0 else 1.0
        return PValues(cost.blocks, certain, smallest, certain, guarded)
    moved = [each - worse * limit if cost.scale == "difference" else each / ratio for each in other]
    at_limit = OF_TWO.cost((baseline, moved), better=cost.better, looks=looks, scale=cost.scale)
    return p_values_of(OF_TWO.effects((baseline, moved), cost.scale), at_limit, looks, guarded=guarded)


def margin_p_value(
    first: Sequence[float], second: Sequence[float], change: CostShift, margin: float, looks: int | Looks
) -> float:
    """Return the p-value of "the cost became no worse than ``margin``" (percent), by Welch's t as in `shift_p_value`.

    ``first`` and ``second`` are the log ratios of two runs' blocks, ``change`` is the result of `between.change` for
    them. The session allowance is included. The p-value is two-sided as in `limit_p_values`; 1 if the change is no
    worse than the margin.
    """
    ratio = 1 + margin / 100 * (1 if change.better == "lower" else -1)
    if ratio <= 0 or not change.penalty.estimate > margin:
        return 1.0
    moved = [value - math.log(ratio) for value in second]
    return min(1.0, shift_p_value(first, moved, math.log1p(change.allowance)) / looks_share(looks))
