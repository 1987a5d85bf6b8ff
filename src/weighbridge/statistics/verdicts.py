"""Verdicts on many comparisons in one report: p-values for Holm's correction, noise floor, verdict.

**Different** is a cost whose exact interval excludes "no cost", and whose p-value after Holm in its family is at most
5%, in a session whose control passes (`weighbridge.analysis.judgement`). A further condition on the control would
guard against a lasting difference between two sites of the same environment, which blocks do not average out. No such
difference is visible in the results of programs (`benchmarks/aa_sessions.py`, docs/methods), and the condition would
need 1.2 to 1.7 times the blocks. CPU time per unit of work does differ so: the cost in resource use must also lie
**beyond the noise**.

**Which p-value Holm gets.** The exact one (`Cost.p_value`) holds for any noise, but cannot be below 2 / 2^n (0.002
with ten blocks, 0.03 with six). It counts if Holm could reject the smallest one: with six blocks in a family of one,
with ten in a family of 25, with 14 in a family of 400. In a larger family Student's t on the effects decides, but
only if all blocks have the same sign. Noise that alternates between two values gives six blocks such signs by chance
in 3%, which t takes for certain. So below ten blocks a cost must also lie **beyond the noise**, and in a study
without a control t decides nothing there. The choice depends only on the numbers of blocks and comparisons
(`PValues`).

**Identical differences** (a latency in histogram steps: 55 -> 63 us in every block) have no spread for t, which would
give p = 0 and certainty from two blocks. They get the sign test's 2^(1-n), the most that n equal signs can show: 0.25
for three blocks, so those can never be ``different``. It does not apply to other differences: as a floor for all it
would bring Holm's problem above back. By the same measure identical differences prove no equivalence below six
blocks: two equal readings of a coarse clock have an interval without width, and prove next to nothing.

**Never equivalent**: if the baseline or the environment failed in more than one of ten trials of a cell, the
successful runs are a selection, and cannot show that anything is ``equivalent``. The same applies to two environments
that differ in keeping acknowledged data.

**Hidden** (set by the caller): if most trials of both sides met the same limit, and this limit gives both the same
result whatever their cost, a verdict of ``equivalent`` or ``inconclusive`` becomes ``hidden``.

**Noise floor** of a metric: the control is the baseline itself, so any cost that it shows is noise. The floor is the
limit of its 95% interval that is further from "no cost": exp(max(|log low|, |log high|)) - 1. Reports show it on the
scale of the costs (`noise_range`): a floor of 0.5 is a ratio between 1 / 1.5 and 1.5, and so, for a throughput, a
cost between -50 and 33.3%.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from weighbridge.statistics.contrast import Looks, looks_share
from weighbridge.statistics.cost import Cost, Interval, Verdict, cost_percent
from weighbridge.statistics.parametric import t_test
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK

ALPHA = 0.05
"""Probability of any false "different" in a family of comparisons."""

FAILING = 0.1
"""The share of failed trials of a cell above which an environment's costs come from a selection of its runs."""

SAME = 1e-9
"""Relative distance below which differences are equal, to allow for the rounding of logarithms."""


def family_p_value(effects: Sequence[float], looks: int | Looks) -> float:
    """Return the two-sided p-value of Student's t that the effects of blocks are 0; 1 with fewer than two blocks.

    Equal effects get the sign test's p-value instead: 2^(1-n), or 1 if they are 0. It is never 0.
    """
    test = t_test(effects)
    if test is None:
        return 1.0
    p_value = test.p
    if p_value is None or max(effects) - min(effects) <= SAME * max(abs(each) for each in effects):
        p_value = 2.0 ** (1 - len(effects)) if effects[0] else 1.0
    return min(1.0, p_value / looks_share(looks))


@dataclass(frozen=True, slots=True)
class PValues:
    """The two-sided p-values that the effects of ``blocks`` are 0, as if this comparison were the only one."""

    blocks: int
    exact: float
    """`Cost.p_value`."""
    smallest: float
    """The value of `exact` if all effects have one sign: 2^(1-n) for n blocks, and more with several looks."""
    by_t: float
    """The p-value by Student's t: `family_p_value`."""
    guarded: bool = False
    """Whether a cost from few blocks must exceed the control's cost (`within_noise`) to be different."""

    def among(self, number: int, alpha: float) -> float:
        """Return the p-value that counts among ``number`` comparisons, held to ``alpha`` after Holm."""
        one_sign = self.exact <= self.smallest * (1 + SAME)
        enough = self.blocks >= MIN_BLOCKS_SIGNED_RANK or self.guarded
        return min(1.0, self.by_t if self.smallest * number > alpha and enough and one_sign else self.exact)

    def spending(self, share: float) -> "PValues":
        """Return the p-values divided by ``share``, for a test at the full level that can spend only that share."""
        return replace(self, exact=self.exact / share, smallest=self.smallest / share, by_t=self.by_t / share)


def p_values_of(effects: Sequence[float], cost: Cost, looks: int | Looks, *, guarded: bool = False) -> PValues:
    """Return the p-values that the effects of a cost are 0."""
    smallest, by_t = smallest_p_value(len(effects), looks), family_p_value(effects, looks)
    return PValues(len(effects), cost.p_value, smallest, by_t, guarded)


def smallest_p_value(blocks: int, looks: int | Looks) -> float:
    """Return the smallest exact p-value that this number of blocks can have."""
    return min(1.0, 2.0 ** (1 - blocks) / looks_share(looks))


def fewest_blocks(level: float, looks: int | Looks) -> int:
    """Return the fewest blocks with which a comparison can be different at Holm's ``level`` (see `PValues`)."""
    return next(
        blocks for blocks in count(2)
        if smallest_p_value(blocks, looks) <= level or blocks >= MIN_BLOCKS_SIGNED_RANK
    )  # fmt: skip


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p-values adjusted for their number, in the given order: reject a hypothesis if its value is <= 0.05.

    The chance of any false rejection is then at most 5%, whatever the dependence (Holm, "A simple sequentially
    rejective multiple test procedure", Scand. J. Statist. 6 (1979)). Raises ValueError for a value outside 0 to 1.
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError("Every p-value must be between 0 and 1.")
    adjusted, largest, number = [0.0] * len(p_values), 0.0, len(p_values)
    for rank, place in enumerate(sorted(range(number), key=lambda each: p_values[each])):
        largest = max(largest, (number - rank) * p_values[place])
        adjusted[place] = min(1.0, largest)
    return tuple(adjusted)


def adjusted(p_values: Sequence[PValues | float | None], alpha: float = ALPHA) -> list[float | None]:
    """Return Holm's adjusted p-values in the given order, held to ``alpha``; None stays None and does not count."""
    tested = [each for each in p_values if each is not None]
    holm_values = iter(
        holm([each.among(len(tested), alpha) if isinstance(each, PValues) else each for each in tested])
    )
    return [None if each is None else next(holm_values) for each in p_values]


def excludes_no_cost(cost: Cost) -> bool:
    """Return whether the interval lies on one side of "no cost"."""
    nothing = 1.0 if cost.scale == "ratio" else 0.0
    return cost.low > nothing or cost.high < nothing


def proves_nothing(cost: Cost) -> bool:
    """Return whether the blocks are equal, but too few to rule out chance: 2^(1-n) is above 5%."""
    same = cost.high - cost.low <= SAME * max(abs(cost.low), abs(cost.high))
    return same and 2.0 ** (1 - cost.blocks) > ALPHA


def within_noise(cost: Cost, aa: Cost | None) -> bool:
    """Return whether the typical cost lies within the noise that the control shows on the same scale."""
    if aa is None or aa.scale != cost.scale:
        return False
    if cost.scale == "difference":
        return abs(cost.typical) <= max(abs(aa.low), abs(aa.high))
    floor = noise_floor(aa)
    return floor is not None and max(cost.typical, 1 / cost.typical) - 1 <= floor


def failing(outcomes: Sequence[bool]) -> bool:
    """Return whether an environment failed in more than one of ten trials of a cell; `outcomes` are the successes."""
    return outcomes.count(False) > FAILING * len(outcomes)


def verdict(
    cost: Cost | None,
    adjusted_p: float | None,
    *,
    never_equivalent: bool = False,
    never_different: bool = False,
    hidden: bool = False,
) -> Verdict:
    """Return the report's verdict: equivalent (two one-sided tests), else different after Holm, else inconclusive.

    `never_equivalent`: an arm failed too often, or one keeps less acknowledged data than the other;
    `never_different`: the difference is negligible, or within the noise; both are set if the control failed;
    `hidden`: both sides met the same limit, so that only a difference can be claimed.
    """
    if cost is None:
        return "inconclusive"
    if cost.equivalent and hidden:
        return "hidden"
    if cost.equivalent and not proves_nothing(cost):
        return "inconclusive" if never_equivalent else "equivalent"
    if excludes_no_cost(cost) and (adjusted_p is None or adjusted_p <= ALPHA):
        return "inconclusive" if never_different else "different"
    return "hidden" if hidden else "inconclusive"


def noise_floor(aa: Cost | None) -> float | None:
    """Return the noise floor as a fraction; None without a control, limits or a ratio scale."""
    if aa is None or aa.scale == "difference" or aa.low <= 0 or math.isinf(aa.high):
        return None
    return math.expm1(max(abs(math.log(aa.low)), abs(math.log(aa.high))))


def noise_range(aa: Cost | None) -> tuple[float, float] | None:
    """Return the lowest and the highest cost within the noise floor, positive is worse.

    They are in percent, or in the metric's unit if it is compared by difference; None if the floor is unknown.
    """
    if aa is not None and aa.scale == "difference":
        size = max(abs(aa.low), abs(aa.high))
        return (-size, size) if math.isfinite(size) else None
    floor = noise_floor(aa)
    if aa is None or floor is None:
        return None
    percent = cost_percent(Interval(1.0, 1 / (1 + floor), 1 + floor), aa.better)
    return percent.low, percent.high
