"""Contrasts: a claim about environments is a weighted sum over the arms of a block, with one effect per block.

A cost is the contrast of two arms, ``environment - baseline``. A step of a ladder, a published pair, the cost of a
mechanism and the comparison of two whole curves are also contrasts. The *interaction* of two mechanisms is a contrast
of four arms: ``both - first - second + neither``.

The sum is over logarithms, so that a contrast is a ratio (for two arms: other / baseline). Without a ratio, it is
over plain values in the metric's unit. The weights add up to 0, so the drift, the neighbours and the unit that all
arms of a block share cancel.
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
"""The share of the error that one of several looks can spend: 5% becomes 3.5%, the 96.5% interval."""


FURTHER_SHARE = 0.5
"""The factor on the share of the error for each unplanned look."""

INTERIM_SHARE = 0.06
"""The share of the error for a look at an unfinished run, relative to the look at its end.

It is small because a run can be looked at in every block, and the look at its end must lose nothing
(`benchmarks/rule.py`, ``watched``). With a smaller share, ten blocks with several planned looks would have no
interval."""


@dataclass(frozen=True, slots=True)
class Looks:
    """How often the data can be looked at: at the ``planned`` numbers of blocks, and ``further`` times.

    A further look is followed by a change of the number of blocks. ``interim`` means that the run has not ended, so
    that there can be any number of such looks.
    """

    planned: int = 1
    further: int = 0
    interim: bool = False

    @property
    def total(self) -> int:
        """Return the number of planned and further looks."""
        return self.planned + self.further


def looks_share(looks: int | Looks) -> float:
    """Return the share of the error that the last of these looks can spend. A plain number means planned looks.

    It is `LOOKS_SHARE` for several looks, times `FURTHER_SHARE` for each further look. This bounds the error of all
    looks together, however often a run is extended. Before the end it is multiplied by `INTERIM_SHARE`.
    """
    counted = Looks(looks) if isinstance(looks, int) else looks
    share = LOOKS_SHARE * FURTHER_SHARE**counted.further if counted.total > 1 else 1.0
    return share * INTERIM_SHARE if counted.interim else share


def shown_level(looks: int | Looks, confidence: float = 0.95) -> float:
    """Return the level at which a report shows intervals that `Contrast.cost` computes.

    For planned looks it is `confidence`: several looks have wider intervals (96.5% for 95%), so that all looks
    together keep it. For an extended or unfinished run it is the level at which the intervals are computed: 98.25%
    after one unplanned look at a run with a fixed number of blocks, 99.7% before the end of such a run.
    """
    counted = Looks(looks) if isinstance(looks, int) else looks
    if counted.further or counted.interim:
        return 1 - (1 - confidence) * looks_share(counted)
    return confidence


Paired = tuple[Sequence[float], Sequence[float]]
"""The values of the baseline and of an environment, block by block."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Weights over the arms of a block, which add up to 0.

    Its methods take the values of each arm in the order of `arms`; value *i* of every arm is from block *i*. Raises
    ValueError for weights that do not add up to 0.
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
        """Return the effect of each block: the weighted sum of its logarithms or, on the difference scale, its
        values.

        Raises ValueError if the arms have different numbers of values, and for a ratio of values that are not
        positive.
        """
        if len({len(arm) for arm in values}) > 1:
            raise ValueError(_unequal(values))
        # math.log: numpy's can differ from it in the last bit, and all p-values so far were computed with this one
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
        """Return the value of the contrast as a cost, with its intervals.

        The typical cost is exp of the Hodges-Lehmann estimate of the blocks' effects. From 10 blocks on it has the
        exact signed-rank interval. With 2 to 9 blocks it has a t interval of the effects, marked exploratory, and
        with one block the interval 0 to inf. The cost also has the ratio of geometric means (t interval) and of
        arithmetic means (Fieller's interval for two arms, a linearised one for more). If any value is zero or
        negative (loss, jitter), a ratio does not exist, and plain differences in the metric's unit are used:
        ``scale="difference"``. `scale` can request differences even if a ratio exists, for example for counts (5000
        events against 1 are not a cost of 500,000%). "ratio" is refused if there is none.

        The p-value is from an exact sign-flip permutation test: of the signed-rank sum from 10 blocks on (the test
        that the interval inverts), of the mean effect below.

        `equivalence` is the margin as a fraction. Two one-sided tests (Schuirmann 1987) at level 1 - confidence must
        show the ratio between 1 / (1 + margin) and 1 + margin, which is symmetric in its arms. If a cost is both
        different and equivalent, equivalent wins: it is proven but negligible. On the difference scale, a relative
        margin cannot be decided (None) unless all effects are exactly 0, which is equivalent.

        `looks` is the total number of looks at the data. With more than one, every interval, the equivalence tests
        and the p-value spend only 0.7 of the error (96.5% for 95%), and are reported as the nominal ones.

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
        """Return the contrast of arms for which only mean, deviation and number of runs are known (Welch).

        Returns None without any spread or with a single run.
        """
        return welch_interval(samples, self.weights, confidence)

    def _sum(self, terms: Sequence[Floats]) -> Floats:
        """Return the weighted sum of the arms' terms, block by block; for two arms this is exactly second - first."""
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

        Two arms get Fieller's interval. More arms get the product of the means to the power of their weights, with a
        linearised t interval of its logarithm (Cochran, *Sampling Techniques*, 3rd ed. 1977, section 6.4).
        """
        if self.weights == (-1.0, 1.0):
            return fieller_interval(arms[0], arms[1], level)
        shares = [arm / float(arm.max()) for arm in arms]  # dividing by the maximum prevents overflow of the sums
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
    """Return the cost of `other` against `baseline` (see `Contrast.cost`); value *i* of both is from block *i*."""
    return OF_TWO.cost(
        (baseline, other), better=better, confidence=confidence, equivalence=equivalence, looks=looks, scale=scale
    )


def check_settings(better: Better, confidence: float, equivalence: float | None, looks: int | Looks) -> None:
    """Raise ValueError for settings that a comparison cannot have."""
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
    """Return the Hodges-Lehmann estimate with the interval that the number of blocks allows."""
    if effects.size >= MIN_BLOCKS_SIGNED_RANK:
        return signed_rank_interval(effects, level)
    mean = t_interval(effects, level)
    estimate = hodges_lehmann(effects)  # the interval must not exclude its own estimate
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
