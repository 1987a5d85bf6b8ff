"""Student's t, Welch's and Fieller's intervals, for fewer than ten blocks, for means and for published figures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weighbridge.statistics.cost import Floats, Interval
from weighbridge.statistics.distributions import t_cdf, t_quantile_at


@dataclass(frozen=True, slots=True)
class Sample:
    """Mean, deviation and number of runs, on the scale on which they are compared."""

    mean: float
    deviation: float
    runs: int


def t_quantile(degrees: float, confidence: float) -> float:
    """Return the two-sided critical value of Student's t."""
    return t_quantile_at(degrees, (1 + confidence) / 2)


@dataclass(frozen=True, slots=True)
class TTest:
    """Student's t-test that the mean of some differences is 0, as papers print it.

    ``mean`` and ``deviation`` (n - 1) are in the differences' unit, ``p`` is two-sided. ``t`` and ``p`` are None if
    all differences are equal.
    """

    mean: float
    deviation: float
    pairs: int
    t: float | None
    p: float | None

    def interval(self, confidence: float) -> Interval:
        """Return the mean with Student's t interval."""
        half = t_quantile(self.pairs - 1, confidence) * self.deviation / self.pairs**0.5
        return Interval(self.mean, self.mean - half, self.mean + half)


def t_test(differences: Sequence[float]) -> TTest | None:
    """Return the t-test of paired differences (Student, Biometrika 6, 1908); None below two."""
    values = np.asarray(differences, dtype=np.float64)
    if values.size < 2:
        return None
    mean, deviation = float(values.mean()), float(values.std(ddof=1))
    if not np.any(values != values[0]) or deviation == 0:
        return TTest(mean, 0.0, values.size, None, None)
    t = mean / (deviation / values.size**0.5)
    return TTest(mean, deviation, values.size, t, 2 * t_cdf(values.size - 1, -abs(t)))


def t_interval(values: Floats, confidence: float) -> Interval:
    """Return the mean with Student's t interval; infinite limits for a single value."""
    mean = float(values.mean())
    if values.size < 2:
        return Interval(mean, -np.inf, np.inf)
    if np.all(values == values[0]):  # no rounding noise if nothing varies
        return Interval(float(values[0]), float(values[0]), float(values[0]))
    half = t_quantile(values.size - 1, confidence) * float(values.std(ddof=1)) / values.size**0.5
    return Interval(mean, mean - half, mean + half)


def fieller_interval(baseline: Floats, other: Floats, confidence: float) -> Interval:
    """Return mean(other) / mean(baseline) of paired positive values with Fieller's interval.

    Source: Fieller, "Some problems in interval estimation", J. R. Statist. Soc. B 16 (1954). The limits are the
    ratios r for which the paired t-test of other - r baseline = 0 just passes; the lower one is at least 0. If the
    baseline's mean is not significantly above 0 (or there is one block), no ratio is excluded: 0 and inf.
    """
    n = baseline.size
    x_unit, y_unit = float(baseline.max()), float(other.max())  # prevents overflow and underflow of squares
    x, y = baseline / x_unit, other / y_unit
    with np.errstate(over="ignore"):
        back = float(np.divide(y_unit, x_unit))
    mean_x, mean_y = float(x.mean()), float(y.mean())
    estimate = mean_y / mean_x * back
    if n < 2:
        return Interval(estimate, 0.0, np.inf)
    ratios = y / x
    if np.all(ratios == ratios[0]):
        return Interval(estimate, estimate, estimate)
    squared = t_quantile(n - 1, confidence) ** 2 / n
    (var_x, cov), (_, var_y) = np.cov(x, y)
    a = mean_x**2 - squared * var_x
    b = mean_x * mean_y - squared * cov
    c = mean_y**2 - squared * var_y
    if a <= 0:
        return Interval(estimate, 0.0, np.inf)
    root = float(np.sqrt(max(0.0, b * b - a * c)))
    low, high = max(0.0, float(b - root) / float(a)) * back, float(b + root) / float(a) * back
    return Interval(estimate, min(low, estimate), max(high, estimate))


def welch_interval(samples: Sequence[Sample], weights: Sequence[float], confidence: float) -> Interval | None:
    """Return the weighted sum of the samples' means with its t interval (Welch 1947, freedom after Satterthwaite).

    ``weights`` of -1 and 1 mean second - first. Returns None without any spread or with a single run.
    """
    sides = list(zip(weights, samples, strict=True))
    parts = [(weight * sample.deviation) ** 2 / sample.runs for weight, sample in sides]
    runs = [sample.runs for sample in samples]
    if sum(parts) == 0 or min(runs) < 2:
        return None
    half = t_quantile(welch_degrees(parts, runs), confidence) * math.sqrt(sum(parts))
    estimate = sum(weight * sample.mean for weight, sample in sides)
    return Interval(estimate, estimate - half, estimate + half)


def welch_p_value(first: Sample, second: Sample, allowed: float = 0.0) -> float:
    """Return the two-sided p-value of "the means differ by no more than `allowed`", by Welch's t.

    Raises ValueError without any spread or with a single run.
    """
    parts = [sample.deviation**2 / sample.runs for sample in (first, second)]
    if sum(parts) == 0 or min(first.runs, second.runs) < 2:
        raise ValueError("Welch's t needs two runs of each and some spread.")
    beyond = max(0.0, abs(second.mean - first.mean) - allowed)
    return 2 * t_cdf(welch_degrees(parts, (first.runs, second.runs)), -beyond / math.sqrt(sum(parts)))


def welch_degrees(parts: Sequence[float], runs: Sequence[int]) -> float:
    """Return Satterthwaite's degrees of freedom; ``parts`` are the samples' variances by their runs, not all 0."""
    total = sum(parts)
    return 1 / sum((part / total) ** 2 / (number - 1) for part, number in zip(parts, runs, strict=True))
