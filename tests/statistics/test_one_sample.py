"""The interval of one environment's own values, and the rate of slow runs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import binom

from weighbridge.statistics import has_median_interval, median_interval, slow_run_rate, typical_interval


@pytest.mark.parametrize("n", range(1, 61))
def test_the_interval_of_the_median_covers_at_least_what_it_says(n):
    found = median_interval([float(value) for value in range(n)])
    k = int(found.low) + 1
    assert found.high == n - k and has_median_interval(n) == (n >= 6)
    if has_median_interval(n):
        assert binom.cdf(k - 1, n, 0.5) <= 0.025 < binom.cdf(k, n, 0.5)
    else:
        assert (found.low, found.high) == (0.0, n - 1)


@given(st.lists(st.floats(0, 1e9, allow_subnormal=False), min_size=1, max_size=30))
def test_the_interval_holds_its_median_and_is_no_number_only_for_one_block(values):
    found = typical_interval(values)
    assert found.low <= found.estimate <= found.high
    assert math.isinf(found.high) <= (len(values) < 3) or max(values) > 0
    assert found.low >= 0 or len(values) == 1


# -- slow runs ----------------------------------------------------------------------------------


def test_slow_runs_in_either_direction():
    time = [10.0] * 17 + [11.4, 11.6, 30.0]
    found = slow_run_rate(time, better="lower")
    assert (found.slow, found.runs, found.rate) == (2, 20, 0.1)
    assert found.low == pytest.approx(stats.beta.ppf(0.025, 2, 19))
    assert found.high == pytest.approx(stats.beta.ppf(0.975, 3, 18))
    assert slow_run_rate([1 / value for value in time], better="higher") == found
    assert slow_run_rate(time, better="higher").slow == 0


def test_no_slow_run_says_what_it_rules_out():
    found = slow_run_rate([10.0] * 30, better="lower")
    assert (found.low, found.high) == (0, pytest.approx(1 - 0.025 ** (1 / 30)))


def test_slow_runs_of_a_loss_metric():
    assert slow_run_rate([0.0] * 9 + [0.3], better="lower").slow == 1
    assert slow_run_rate([0.0] * 9 + [0.3], better="higher").slow == 0


@pytest.mark.parametrize("wrong", [[], [1.0, math.nan], [-1.0, 2.0]])
def test_slow_runs_need_proper_values(wrong):
    with pytest.raises(ValueError):
        slow_run_rate(wrong, better="lower")
