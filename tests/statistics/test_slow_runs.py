"""The rate of slow runs, against scipy."""

import math

import pytest
from scipy import stats

from weighbridge.statistics import slow_run_rate


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
