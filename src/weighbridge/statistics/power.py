"""What a comparison can see: its power, from the width of its interval."""

import math

DETECTABLE = (1.96 + 0.84) / 1.96
"""A cost this many times the half-width of a 95 % interval is told from none in four runs of five
(two-sided 5 %, power 80 %: Cohen 1988, section 2.4)."""


def smallest_visible_cost(half_width: float, spent_s: float, span_s: float) -> float:
    """Return the smallest cost that shows in `span_s`, from an interval that took `spent_s`; both are in seconds.

    The width falls with the square root of the time spent.
    """
    return DETECTABLE * half_width * math.sqrt(spent_s / span_s)
