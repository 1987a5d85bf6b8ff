"""The interval of one environment's own values."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from weighbridge.statistics import has_median_interval, median_interval, typical_interval


@pytest.mark.parametrize("n", range(1, 61))
def test_the_interval_of_the_median_covers_at_least_what_it_says(n):
    found = median_interval([float(value) for value in range(n)])
    k = int(found.low) + 1
    assert found.high == n - k and has_median_interval(n) == (n >= 6)
    if has_median_interval(n):
        assert binom.cdf(k - 1, n, 0.5) <= 0.025 < binom.cdf(k, n, 0.5)
    else:
        assert (found.low, found.high) == (0.0, n - 1)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(st.floats(0, 1e9, allow_subnormal=False), min_size=1, max_size=30))
def test_the_interval_holds_its_median_and_is_no_number_only_for_one_block(values):
    found = typical_interval(values)
    assert found.low <= found.estimate <= found.high
    assert math.isinf(found.high) <= (len(values) < 3) or max(values) > 0
    assert found.low >= 0 or len(values) == 1
