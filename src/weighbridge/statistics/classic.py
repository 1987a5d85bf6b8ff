"""The tests that published studies report: for parity with the literature, not for a verdict.

They take runs as independent and (the t-tests) as normal; `weighbridge.statistics.compare` does neither.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TwoSample:
    """A two-sample statistic and its two-sided p-value."""

    statistic: float
    p_value: float


@dataclass(frozen=True, slots=True)
class PairedT:
    """A paired t-test as the published storage study tabulates it; differences are other - baseline."""

    mean_difference: float
    deviation: float
    """Sample standard deviation of the differences."""
    t: float
    degrees: int
    p_value: float


@dataclass(frozen=True, slots=True)
class ClassicTests:
    """Classic tests and effect sizes of two samples; None where one is undefined for them.

    Signs follow other - baseline: positive where `other` has the larger values.
    """

    welch: TwoSample | None
    """Welch's t (Biometrika 34 (1947)); None with fewer than 2 values in a sample or no variance at all."""
    paired: PairedT | None
    """Paired t; None with unequal lengths, fewer than 2 pairs, or differences that do not vary."""
    mann_whitney: TwoSample
    """U of `other` (Mann & Whitney 1947): pairs in which `other` is larger, ties half; exact for small, untied."""
    cliffs_delta: float
    """P(other > baseline) - P(other < baseline), -1 .. 1 (Cliff, Psychol. Bull. 114 (1993))."""
    hedges_g: float | None
    """Standardised mean difference, small-sample corrected (Hedges, J. Educ. Statist. 6, 1981); None as Welch."""
    cv_baseline: float | None
    """Coefficient of variation of the baseline as a fraction; None with one value or mean 0."""
    cv_other: float | None
    """The same of `other`."""


def classic_tests(baseline: Sequence[float], other: Sequence[float]) -> ClassicTests:
    """Give the classic tests of two samples, paired by position where the lengths are equal.

    Raises ValueError for an empty sample or values that are not finite.
    """
    from scipy.stats import mannwhitneyu

    first, second = (np.asarray(values, dtype=np.float64) for values in (baseline, other))
    if not (first.size and second.size and np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("Both samples need at least one value, all of them finite.")
    u = mannwhitneyu(second, first)
    return ClassicTests(
        welch=_welch(first, second),
        paired=_paired(first, second),
        mann_whitney=TwoSample(float(u.statistic), float(u.pvalue)),
        cliffs_delta=2 * float(u.statistic) / (first.size * second.size) - 1,
        hedges_g=_hedges_g(first, second),
        cv_baseline=_cv(first),
        cv_other=_cv(second),
    )


def _varies(values: Floats) -> bool:
    return bool(np.any(values != values[0]))


def _testable(first: Floats, second: Floats) -> bool:
    return min(first.size, second.size) > 1 and (_varies(first) or _varies(second))


def _welch(first: Floats, second: Floats) -> TwoSample | None:
    if not _testable(first, second):
        return None
    from scipy.stats import ttest_ind

    result = ttest_ind(second, first, equal_var=False)
    return TwoSample(float(result.statistic), float(result.pvalue))


def _paired(first: Floats, second: Floats) -> PairedT | None:
    if first.size != second.size or first.size < 2:
        return None
    differences = second - first
    if not _varies(differences):
        return None
    from scipy.stats import ttest_1samp

    result = ttest_1samp(differences, 0.0)
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1))
    return PairedT(mean, deviation, float(result.statistic), first.size - 1, float(result.pvalue))


def _hedges_g(first: Floats, second: Floats) -> float | None:
    """Divide by the pooled deviation and correct with the exact gamma-function factor."""
    if not _testable(first, second):
        return None
    degrees = first.size + second.size - 2
    pooled = ((first.size - 1) * first.var(ddof=1) + (second.size - 1) * second.var(ddof=1)) / degrees
    correction = math.exp(math.lgamma(degrees / 2) - math.lgamma((degrees - 1) / 2)) / math.sqrt(degrees / 2)
    return correction * float(second.mean() - first.mean()) / math.sqrt(float(pooled))


def _cv(values: Floats) -> float | None:
    mean = float(values.mean())
    return float(values.std(ddof=1)) / abs(mean) if values.size > 1 and mean else None
