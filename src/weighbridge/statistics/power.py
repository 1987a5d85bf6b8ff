"""What a comparison can see: its power, from the width of its interval."""

import math

from weighbridge.statistics.precision import LOOKS

_Z = 2.108
"""Quantile of the normal distribution for an interval of 96.5 %, which one of several looks has."""
_EFFICIENCY = 3 / math.pi
"""Of the median of Walsh averages against the mean, for normal differences (Hodges & Lehmann 1963)."""
DETECTABLE = (1.96 + 0.84) / 1.96
"""A cost this many times the half-width of a 95 % interval is told from none in four runs of five
(two-sided 5 %, power 80 %: Cohen 1988, section 2.4)."""


def smallest_visible_cost(half_width: float, spent_s: float, span_s: float) -> float:
    """Return the smallest cost that shows in `span_s`, from an interval that took `spent_s`; both are in seconds.

    The width falls with the square root of the time spent.
    """
    return DETECTABLE * half_width * math.sqrt(spent_s / span_s)


def expected_half_width(variation: float, blocks: int) -> float:
    """Return the relative half-width to expect of a comparison: 0.02 is ±2 %.

    ``variation`` is the standard deviation of its within-block log ratios.
    """
    return math.expm1(_Z * variation / math.sqrt(blocks * _EFFICIENCY))


def blocks_needed(variation: float, target: float) -> int:
    """Return after how many blocks `expected_half_width` is ``target``; at least those of the first look."""
    return max(LOOKS[0], math.ceil((_Z * variation / math.log1p(target)) ** 2 / _EFFICIENCY))
