"""Ranks and Kendall's tau against scipy's."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from weighbridge.statistics.ranks import kendall_against_order, mid_ranks

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
