"""Ranks, Kendall's tau and the exact signed-rank machinery, against scipy and a textbook."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from weighbridge.statistics.ranks import (
    critical_rank,
    hodges_lehmann,
    kendall_against_order,
    mid_ranks,
    sign_flip_p_value,
    signed_rank_interval,
    signed_rank_p_value,
)

VALUES = st.lists(st.one_of(st.integers(0, 9).map(float), st.floats(-1e6, 1e6)), min_size=2, max_size=60)


@given(VALUES)
def test_ranks_are_scipys(values):
    assert mid_ranks(np.array(values)) == pytest.approx(stats.rankdata(values))


@given(VALUES)
def test_tau_against_the_order_is_scipys(values):
    assume(len(set(values)) > 1)
    expected = stats.kendalltau(np.arange(len(values)), values)
    tau, p_value = kendall_against_order(np.array(values))
    assert tau == pytest.approx(expected.statistic, abs=1e-12)
    assert p_value == pytest.approx(expected.pvalue, rel=1e-9)


@pytest.mark.parametrize("swapped", [0, 1, 2])
@pytest.mark.parametrize("n", [5, 33, 34, 80])
def test_nearly_sorted_series(n, swapped):
    values = np.arange(float(n))
    for place in range(swapped):
        values[[2 * place, 2 * place + 1]] = values[[2 * place + 1, 2 * place]]
    for series in (values, values[::-1]):
        expected = stats.kendalltau(np.arange(n), series)
        assert kendall_against_order(series) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)


# -- signed ranks -------------------------------------------------------------------------------

# Hollander, Wolfe & Chicken, table 3.1: Hamilton depression scale before and after a tranquilizer.
BEFORE = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
AFTER = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])


def test_textbook_example_of_hollander_and_wolfe():
    differences = AFTER - BEFORE
    assert signed_rank_p_value(differences) == pytest.approx(2 * 0.01953, abs=2e-5)  # T+ = 5
    interval = signed_rank_interval(differences, 0.96)
    assert interval.estimate == pytest.approx(-0.46)
    assert (interval.low, interval.high) == pytest.approx((-0.786, -0.010))


@pytest.mark.parametrize("n", [5, 10, 13, 28, 50])
def test_p_value_is_scipys_exact_one(n):
    differences = np.random.default_rng(n).normal(0.2, 1, n)
    expected = stats.wilcoxon(differences, method="exact").pvalue
    assert signed_rank_p_value(differences) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "differences",
    [[1, 1, 2, 2, -1, 3, 3, -2, 4, 5], [0, 0, 1, 2, 2, -1, 3, 4, 4, 4], [1.0] * 10, [-1.0, 1.0] * 5],
)
def test_p_value_with_ties_and_zeros_is_that_of_all_flips(differences):
    values = np.array(differences, float)
    ranks = stats.rankdata(np.abs(values)) * (values != 0)
    observed = abs(float(np.sum(ranks * np.sign(values))))
    flips = [
        abs(sum(r * s for r, s in zip(ranks, signs, strict=True))) for signs in itertools.product([-1, 1], repeat=10)
    ]
    assert signed_rank_p_value(values) == pytest.approx(np.mean(np.array(flips) >= observed - 1e-9))


def test_zeros_only_say_nothing():
    assert signed_rank_p_value(np.zeros(12)) == 1
    assert sign_flip_p_value(np.zeros(5)) == 1


@pytest.mark.parametrize(("n", "tail", "k"), [(10, 0.025, 9), (10, 0.0175, 7), (20, 0.025, 53), (30, 0.025, 138)])
def test_critical_ranks_are_those_of_the_tables(n, tail, k):
    # Tables give the largest T with P(T+ <= T) <= tail (8, 52, 137 at 2.5 %: Wilcoxon & Wilcox 1964); k is one more.
    assert critical_rank(n, 1 - 2 * tail) == k


def test_no_interval_where_n_is_too_small():
    interval = signed_rank_interval(np.array([1.0, 2.0, 3.0]), 0.95)
    assert (interval.low, interval.high) == (-np.inf, np.inf)


def test_large_samples_use_the_normal_approximation():
    differences = np.random.default_rng(3).normal(0.05, 1, 900)
    expected = stats.wilcoxon(differences, method="asymptotic", correction=True).pvalue
    assert signed_rank_p_value(differences) == pytest.approx(expected, rel=1e-6)
    assert critical_rank(501, 0.95) == pytest.approx(critical_rank(500, 0.95), abs=260)


@pytest.mark.parametrize("n", [2, 5, 9])
def test_sign_flips_are_scipys_permutation_test(n):
    differences = np.random.default_rng(n).normal(0.5, 1, n)
    result = stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip_p_value(differences) == pytest.approx(result.pvalue)


@given(st.lists(st.floats(-1e6, 1e6), min_size=10, max_size=25), st.sampled_from([0.9, 0.95, 0.965, 0.99]))
def test_interval_holds_its_estimate_and_mirrors(values, confidence):
    differences = np.array(values)
    interval = signed_rank_interval(differences, confidence)
    mirrored = signed_rank_interval(-differences, confidence)
    assert interval.low <= interval.estimate <= interval.high
    assert interval.estimate == hodges_lehmann(differences)
    assert (mirrored.low, mirrored.high) == (-interval.high, -interval.low)


@given(st.integers(0, 10_000), st.integers(10, 40))
def test_interval_excludes_zero_exactly_where_the_test_rejects(seed, n):
    differences = np.random.default_rng(seed).normal(0.4, 1, n)
    interval = signed_rank_interval(differences, 0.95)
    assert (interval.low > 0 or interval.high < 0) == (signed_rank_p_value(differences) <= 0.05)
