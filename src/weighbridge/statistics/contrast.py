"""Contrasts: what is claimed of environments is a weighted sum over the arms of a block, one effect for each block.

A cost is the contrast of two arms, ``environment - baseline``. So are a step of a ladder, a published pair and one
whole curve against another. What a mechanism costs is one, too, and whether it costs the same beside a second one is
an *interaction*, of four arms: ``both - first - second + neither``.

The sum is one of logarithms, so that a contrast is a ratio (of two arms: other / baseline), or of plain values in the
metric's unit where there is no ratio. As the weights add up to 0, whatever all arms of a block share cancels: its
drift, its neighbours, the metric's unit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import get_args

import numpy as np

from weighbridge.statistics.cost import Better, Cost, Floats, Interval, Scale, Verdict, exp_interval
from weighbridge.statistics.parametric import Sample, fieller_interval, t_interval, welch_interval
from weighbridge.statistics.ranks import hodges_lehmann, sign_flip_p_value, signed_rank_interval, signed_rank_p_value
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK

LOOKS_SHARE = 0.7
"""Share of the error that one of several looks may spend: 5 % becomes 3.5 %, the 96.5 % interval."""


FURTHER_SHARE = 0.5
"""What each further look that nobody had planned may spend of what the one before it might."""

INTERIM_SHARE = 0.06
"""What a look at a run that has not come to its end may spend of what the one at its end may.

So little, as it may be one of many: a run may be looked at in every block, and the look at its end loses nothing
(`benchmarks/rule.py`, ``watched``). With less, ten blocks would have no interval where several looks are planned.
"""


@dataclass(frozen=True, slots=True)
class Looks:
    """How often the data may be looked at: at the ``planned`` numbers of blocks, and ``further`` times.

    A further look is one after which somebody changed how many blocks the run has. ``interim``: the run has not come
    to its end, so that this may be one look of any number.
    """

    planned: int = 1
    further: int = 0
    interim: bool = False

    @property
    def total(self) -> int:
        """The number of looks of both kinds."""
        return self.planned + self.further


def looks_share(looks: int | Looks) -> float:
    """Return the share of the error that the last of so many looks may spend; a plain number is of planned ones.

    `LOOKS_SHARE` of several planned ones, and `FURTHER_SHARE` of it to the power of the further ones: so all of
    these together stay bounded, however often a run is extended. `INTERIM_SHARE` of that before the end.
    """
    counted = Looks(looks) if isinstance(looks, int) else looks
    share = LOOKS_SHARE * FURTHER_SHARE**counted.further if counted.total > 1 else 1.0
    return share * INTERIM_SHARE if counted.interim else share


def shown_level(looks: int | Looks, confidence: float = 0.95) -> float:
    """Return the level at which a report shows intervals that `Contrast.cost` computes.

    At planned looks it is `confidence`: several of them have wider intervals (96.5% for 95%), so that all looks
    together keep it. An extended or an unfinished run has the level at which its intervals are computed: 98.25% after
    one unplanned look at a run with a fixed number of blocks, 99.7% before the end of such a run.
    """
    counted = Looks(looks) if isinstance(looks, int) else looks
    if counted.further or counted.interim:
        return 1 - (1 - confidence) * looks_share(counted)
    return confidence


Paired = tuple[Sequence[float], Sequence[float]]
"""The baseline's values and an environment's, block by block."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Weights over the arms of a block, which add up to 0. Raises ValueError where they do not.

    The values that its methods take are those of each arm, in the order of `arms`: value *i* of every arm is from
    block *i*.
    """

    arms: tuple[str, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.arms) != len(self.weights) or len(self.arms) < 2:
            raise ValueError("A contrast needs two arms at least, and one weight for each.")
        if 0 in self.weights or not abs(math.fsum(self.weights)) < 1e-9:
            raise ValueError(f"The weights of a contrast are not 0 and add up to 0, unlike {self.weights}.")

    @classmethod
    def between(cls, arm: str, against: str) -> "Contrast":
        """Return the contrast of two arms: the ratio arm / against, or the difference arm - against."""
        return cls((against, arm), (-1.0, 1.0))

    def effects(self, values: Sequence[Sequence[float]], scale: Scale) -> list[float]:
        """Return the effect of each block: the weighted sum of its logarithms, or of its values by difference.

        Raises ValueError where an arm has more values than another, and for a ratio of values that are not positive.
        """
        if len({len(arm) for arm in values}) > 1:
            raise ValueError(_unequal(values))
        # math.log, as numpy's may differ from it in the last bit, and p-values have always been made of these
        terms = [[math.log(value) for value in arm] for arm in values] if scale == "ratio" else values
        effects: list[float] = self._sum([np.asarray(arm, dtype=np.float64) for arm in terms]).tolist()
        return effects

    def cost(
        self,
        values: Sequence[Sequence[float]],
        *,
        better: Better,
        confidence: float = 0.95,
        equivalence: float | None = None,
        looks: int | Looks = 1,
        scale: Scale | None = None,
    ) -> Cost:
        """Return what the contrast is worth, with its intervals.

        The typical cost is exp of the Hodges-Lehmann estimate of the blocks' effects, with its exact signed-rank
        interval from 10 blocks on; with 2 to 9 blocks a t interval of the effects, marked exploratory; with one block
        the interval is 0 to inf. Beside it the ratio of geometric means (t interval) and of arithmetic means (of two
        arms Fieller's, of more linearised). If any value is zero or negative (loss, jitter) no ratio exists, and
        the same is done with plain differences in the metric's unit: ``scale="difference"``. `scale` may ask for that
        also where a ratio exists (counts, shares: 5000 events against 1 are no cost of 500,000 %); "ratio" is refused
        where none exists.

        The p-value is that of a sign-flip permutation test, exact: of the signed-rank sum from 10 blocks on
        (the test which the interval inverts), of the mean effect below.

        `equivalence` is the margin as a fraction: equivalent when two one-sided tests (Schuirmann 1987) at level
        1 - confidence show the ratio between 1 / (1 + margin) and 1 + margin, which is symmetric in its arms.
        Equivalent wins over different where both hold: a proven but negligible cost. On the difference scale a
        relative margin cannot be decided (None) unless all effects are exactly 0, which is equivalent.

        `looks` is how many times the data may be looked at in all. With more than one, every interval, the
        equivalence tests and the p-value spend only 0.7 of the error (96.5 % for 95 %), and are reported as the
        nominal ones.

        Raises ValueError for no block, unequal lengths, values that are not finite, or settings out of range.
        """
        check_settings(better, confidence, equivalence, looks)
        arms = self._checked(values)
        share = looks_share(looks)
        level = 1 - (1 - confidence) * share
        positive = min(float(arm.min()) for arm in arms) > 0
        if scale == "ratio" and not positive:
            raise ValueError("A ratio needs positive values: compare them as differences.")
        scale = scale or ("ratio" if positive else "difference")
        effects = self._sum([np.log(arm) for arm in arms] if scale == "ratio" else arms)
        if not np.isfinite(effects).all():
            raise ValueError("The values are too far apart for their differences to be computed.")
        inner = _typical(effects, level)
        at_margin = _typical(effects, 1 - 2 * (1 - confidence) * share)
        equivalent = _equivalent(effects, at_margin, equivalence, scale)
        if scale == "ratio":
            typical, geometric = exp_interval(inner), exp_interval(t_interval(effects, level))
            arithmetic = self._ratio_of_means(arms, level)
        else:
            typical, geometric, arithmetic = inner, None, t_interval(effects, level)
        return Cost(
            typical=typical.estimate,
            low=typical.low,
            high=typical.high,
            geometric=geometric,
            arithmetic=arithmetic,
            blocks=effects.size,
            exploratory=effects.size < MIN_BLOCKS_SIGNED_RANK,
            p_value=min(1.0, _p_value(effects) / share),
            equivalent=equivalent,
            verdict=_verdict(inner, equivalent),
            better=better,
            scale=scale,
            confidence=confidence,
            margin=equivalence,
            two_one_sided=exp_interval(at_margin) if equivalence is not None and scale == "ratio" else None,
            level=shown_level(looks, confidence),
        )

    def unblocked(self, samples: Sequence[Sample], confidence: float) -> Interval | None:
        """Return the contrast of arms of which no block is known, only mean, deviation and number of runs (Welch).

        None without any spread or with a single run.
        """
        return welch_interval(samples, self.weights, confidence)

    def _sum(self, terms: Sequence[Floats]) -> Floats:
        """Return the weighted sum of the arms' terms, block by block; of two arms exactly second - first."""
        with np.errstate(over="ignore", invalid="ignore"):
            return reduce(np.add, [weight * term for weight, term in zip(self.weights, terms, strict=True)])

    def _checked(self, values: Sequence[Sequence[float]]) -> list[Floats]:
        arms = [np.asarray(arm, dtype=np.float64) for arm in values]
        if len(arms) != len(self.arms) or any(arm.ndim != 1 or arm.shape != arms[0].shape for arm in arms):
            raise ValueError(_unequal(values))
        if not arms[0].size:
            raise ValueError("No block to compare.")
        if not all(np.isfinite(arm).all() for arm in arms):
            raise ValueError("Every value must be finite: missing measurements cannot be compared.")
        return arms

    def _ratio_of_means(self, arms: Sequence[Floats], level: float) -> Interval:
        """Return the contrast of arithmetic means of positive values, as a ratio.

        Of two arms with Fieller's interval. Of more the product of the means to the power of their weights, with a t
        interval of its logarithm, linearised (Cochran, *Sampling Techniques*, 3rd ed. 1977, section 6.4).
        """
        if self.weights == (-1.0, 1.0):
            return fieller_interval(arms[0], arms[1], level)
        shares = [arm / float(arm.max()) for arm in arms]  # keeps their sums from overflow
        total = math.fsum(
            weight * (math.log(float(arm.max())) + math.log(float(share.mean())))
            for weight, arm, share in zip(self.weights, arms, shares, strict=True)
        )
        return exp_interval(t_interval(total + self._sum([each / each.mean() for each in shares]), level))


OF_TWO = Contrast.between("other", "baseline")
"""The contrast of two arms without names."""


def compare(
    baseline: Sequence[float],
    other: Sequence[float],
    *,
    better: Better,
    confidence: float = 0.95,
    equivalence: float | None = None,
    looks: int | Looks = 1,
    scale: Scale | None = None,
) -> Cost:
    """Return the cost of `other` against `baseline`: ``other[i]`` ran in the block of ``baseline[i]``.

    As `Contrast.cost` makes it.
    """
    return OF_TWO.cost(
        (baseline, other), better=better, confidence=confidence, equivalence=equivalence, looks=looks, scale=scale
    )


def check_settings(better: Better, confidence: float, equivalence: float | None, looks: int | Looks) -> None:
    """Raise ValueError where what is asked of a comparison makes no sense."""
    if better not in get_args(Better):
        raise ValueError(f"better must be 'higher' or 'lower', not {better!r}.")
    if not 0.5 <= confidence < 1:
        raise ValueError(f"The confidence must be at least 0.5 and below 1, not {confidence}.")
    if equivalence is not None and not 0 < equivalence < math.inf:
        raise ValueError(f"The equivalence margin must be a positive fraction such as 0.03, not {equivalence}.")
    if (looks if isinstance(looks, int) else looks.total) < 1:
        raise ValueError(f"There must be at least one look, not {looks}.")


def _unequal(values: Sequence[Sequence[float]]) -> str:
    return f"Every arm needs one value per block, but there are {' and '.join(str(len(arm)) for arm in values)}."


def _typical(effects: Floats, level: float) -> Interval:
    """Give the Hodges-Lehmann estimate with the interval that the number of blocks allows."""
    if effects.size >= MIN_BLOCKS_SIGNED_RANK:
        return signed_rank_interval(effects, level)
    mean = t_interval(effects, level)
    estimate = hodges_lehmann(effects)  # may be off the mean: the interval never excludes its own estimate
    return Interval(estimate, min(mean.low, estimate), max(mean.high, estimate))


def _p_value(effects: Floats) -> float:
    exploratory = effects.size < MIN_BLOCKS_SIGNED_RANK
    return sign_flip_p_value(effects) if exploratory else signed_rank_p_value(effects)


def _equivalent(effects: Floats, interval: Interval, margin: float | None, scale: Scale) -> bool | None:
    if margin is None:
        return None
    if scale == "difference":
        return True if effects.size > 1 and not effects.any() else None
    limit = math.log1p(margin)
    return -limit < interval.low and interval.high < limit


def _verdict(interval: Interval, equivalent: bool | None) -> Verdict:
    if equivalent:
        return "equivalent"
    return "different" if interval.low > 0 or interval.high < 0 else "inconclusive"
