"""The comparison of two environments, paired by block."""

import math
from collections.abc import Sequence
from typing import get_args

import numpy as np

from weighbridge.statistics.cost import Better, Cost, Interval, Scale, Verdict
from weighbridge.statistics.parametric import fieller_interval, t_interval
from weighbridge.statistics.sample_size import MIN_BLOCKS_SIGNED_RANK
from weighbridge.statistics.signed_rank import (
    Floats,
    hodges_lehmann,
    sign_flip_p_value,
    signed_rank_interval,
    signed_rank_p_value,
)

LOOKS_SHARE = 0.7
"""Share of the error that one of several looks may spend: 5 % becomes 3.5 %, the 96.5 % interval."""


def compare(
    baseline: Sequence[float],
    other: Sequence[float],
    *,
    better: Better,
    confidence: float = 0.95,
    equivalence: float | None = None,
    looks: int = 1,
    scale: Scale | None = None,
) -> Cost:
    """Give the cost of `other` against `baseline`, paired by block: ``other[i]`` ran in the block of ``baseline[i]``.

    The typical cost is exp of the Hodges-Lehmann estimate of the within-block log ratios, with its exact
    signed-rank interval from 10 blocks on; with 2 to 9 blocks a t interval of the log ratios, marked exploratory;
    with one block the interval is 0 to inf. Beside it the ratio of geometric means (t interval) and of
    arithmetic means (Fieller). If any value is zero or negative (loss, jitter) no ratio exists, and the same is done
    with plain differences in the metric's unit: ``scale="difference"``. `scale` may ask for that also where a ratio
    exists (counts, shares: 5000 events against 1 are no cost of 500,000 %); "ratio" is refused where none exists.

    The p-value is that of a sign-flip permutation test, exact: of the signed-rank sum from 10 blocks on
    (the test which the interval inverts), of the mean log ratio below.

    `equivalence` is the margin as a fraction: equivalent when two one-sided tests (Schuirmann 1987) at level
    1 - confidence show the ratio between 1 / (1 + margin) and 1 + margin, which is symmetric in the two arms.
    Equivalent wins over different where both hold: a proven but negligible cost. On the difference scale a
    relative margin cannot be decided (None) unless all differences are exactly 0, which is equivalent.

    `looks` is how many times the data may be looked at in all. With more than one, every interval, the equivalence
    tests and the p-value spend only 0.7 of the error (96.5 % for 95 %), and are reported as the nominal ones.

    Raises ValueError for no block, unequal lengths, values that are not finite, or settings out of range.
    """
    check_settings(better, confidence, equivalence, looks)
    first, second = _paired(baseline, other)
    share = LOOKS_SHARE if looks > 1 else 1.0
    level = 1 - (1 - confidence) * share
    positive = min(float(first.min()), float(second.min())) > 0
    if scale == "ratio" and not positive:
        raise ValueError("A ratio needs positive values: compare them as differences.")
    scale = scale or ("ratio" if positive else "difference")
    differences = _differences(first, second, scale)
    inner = _typical(differences, level)
    p_value = _p_value(differences)
    equivalent = _equivalent(differences, 1 - 2 * (1 - confidence) * share, equivalence, scale)
    if scale == "ratio":
        typical, geometric = _exp(inner), _exp(t_interval(differences, level))
        arithmetic = fieller_interval(first, second, level)
    else:
        typical, geometric, arithmetic = inner, None, t_interval(differences, level)
    return Cost(
        typical=typical.estimate,
        low=typical.low,
        high=typical.high,
        geometric=geometric,
        arithmetic=arithmetic,
        blocks=differences.size,
        exploratory=differences.size < MIN_BLOCKS_SIGNED_RANK,
        p_value=min(1.0, p_value / share),
        equivalent=equivalent,
        verdict=_verdict(inner, equivalent),
        better=better,
        scale=scale,
        confidence=confidence,
        margin=equivalence,
    )


def check_settings(better: Better, confidence: float, equivalence: float | None, looks: int) -> None:
    """Raise ValueError where what is asked of a comparison makes no sense."""
    if better not in get_args(Better):
        raise ValueError(f"better must be 'higher' or 'lower', not {better!r}.")
    if not 0.5 <= confidence < 1:
        raise ValueError(f"The confidence must be at least 0.5 and below 1, not {confidence}.")
    if equivalence is not None and not 0 < equivalence < math.inf:
        raise ValueError(f"The equivalence margin must be a positive fraction such as 0.03, not {equivalence}.")
    if looks < 1:
        raise ValueError(f"There must be at least one look, not {looks}.")


def _paired(baseline: Sequence[float], other: Sequence[float]) -> tuple[Floats, Floats]:
    first, second = np.asarray(baseline, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"Both environments need one value per block, but there are {first.size} and {second.size}.")
    if not first.size:
        raise ValueError("There is no block to compare.")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("Every value must be finite: a missing or failed measurement cannot be compared.")
    return first, second


def _differences(first: Floats, second: Floats, scale: Scale) -> Floats:
    if scale == "ratio":
        return np.asarray(np.log(second) - np.log(first))
    with np.errstate(over="ignore"):
        differences = np.asarray(second - first)
    if not np.isfinite(differences).all():
        raise ValueError("The values are too far apart for their differences to be computed.")
    return differences


def _typical(differences: Floats, level: float) -> Interval:
    """Give the Hodges-Lehmann estimate with the interval that the number of blocks allows."""
    if differences.size >= MIN_BLOCKS_SIGNED_RANK:
        return signed_rank_interval(differences, level)
    mean = t_interval(differences, level)
    estimate = hodges_lehmann(differences)  # may be off the mean: the interval never excludes its own estimate
    return Interval(estimate, min(mean.low, estimate), max(mean.high, estimate))


def _p_value(differences: Floats) -> float:
    exploratory = differences.size < MIN_BLOCKS_SIGNED_RANK
    return sign_flip_p_value(differences) if exploratory else signed_rank_p_value(differences)


def _equivalent(differences: Floats, level: float, margin: float | None, scale: Scale) -> bool | None:
    if margin is None:
        return None
    if scale == "difference":
        return True if differences.size > 1 and not differences.any() else None
    interval = _typical(differences, level)
    limit = math.log1p(margin)
    return -limit < interval.low and interval.high < limit


def _verdict(interval: Interval, equivalent: bool | None) -> Verdict:
    if equivalent:
        return "equivalent"
    return "different" if interval.low > 0 or interval.high < 0 else "inconclusive"


def _exp(interval: Interval) -> Interval:
    with np.errstate(over="ignore"):
        return Interval(*(float(np.exp(value)) for value in (interval.estimate, interval.low, interval.high)))
