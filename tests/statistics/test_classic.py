"""Tests of the literature against scipy and textbook examples; Holm; slow runs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from weighbridge.statistics import classic_tests, holm, slow_run_rate

# Student (1908), "The probable error of a mean": extra hours of sleep under two drugs, 10 patients.
SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def test_students_sleep_data():
    tests = classic_tests(SLEEP_1, SLEEP_2)
    assert tests.paired.t == pytest.approx(4.0621, abs=5e-5)
    assert tests.paired.p_value == pytest.approx(0.002833, abs=5e-7)
    assert (tests.paired.mean_difference, tests.paired.degrees) == (pytest.approx(1.58), 9)
    assert tests.paired.deviation == pytest.approx(1.2300, abs=5e-5)
    assert tests.welch.statistic == pytest.approx(1.8608, abs=5e-5)
    assert tests.welch.p_value == pytest.approx(0.07939, abs=5e-6)


def test_effect_sizes():
    tests = classic_tests(SLEEP_1, SLEEP_2)
    above = sum(y > x for x in SLEEP_1 for y in SLEEP_2)
    below = sum(y < x for x in SLEEP_1 for y in SLEEP_2)
    assert tests.cliffs_delta == pytest.approx((above - below) / 100)
    pooled = math.sqrt((np.var(SLEEP_1, ddof=1) + np.var(SLEEP_2, ddof=1)) / 2)
    assert tests.hedges_g == pytest.approx(1.58 / pooled * (1 - 3 / (4 * 18 - 1)), rel=1e-3)
    assert tests.cv_other == pytest.approx(stats.variation(SLEEP_2, ddof=1))
    assert tests.mann_whitney.p_value == pytest.approx(stats.mannwhitneyu(SLEEP_1, SLEEP_2).pvalue)


def test_what_is_undefined_is_none():
    single = classic_tests([1.0], [2.0])
    assert single.welch is single.paired is single.hedges_g is single.cv_baseline is None
    assert single.cliffs_delta == 1
    constant = classic_tests([1.0] * 5, [2.0] * 5)
    assert constant.welch is constant.paired is constant.hedges_g is None
    assert constant.cv_baseline == 0
    assert classic_tests([1.0, 2.0, 3.0], [1.0, 2.0]).paired is None
    assert classic_tests([0.0, 0.0], [0.0, 1.0]).cv_baseline is None


@pytest.mark.parametrize(("one", "two"), [([], [1.0]), ([1.0], []), ([math.nan, 1.0], [1.0]), ([1.0], [math.inf])])
def test_samples_that_cannot_be_tested(one, two):
    with pytest.raises(ValueError, match="finite"):
        classic_tests(one, two)


def test_holm_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()
    assert holm([0.2]) == pytest.approx((0.2,))
    for wrong in ([-0.1], [1.1], [math.nan]):
        with pytest.raises(ValueError):
            holm(wrong)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_is_between_plain_and_bonferroni_and_keeps_the_order(p_values):
    adjusted = holm(p_values)
    for p, a in zip(p_values, adjusted, strict=True):
        assert p - 1e-12 <= a <= min(1, p * len(p_values)) + 1e-12
    assert [adjusted[i] for i in np.argsort(p_values)] == sorted(adjusted)


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
