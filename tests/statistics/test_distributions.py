"""Distribution functions and quantiles, against scipy."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from weighbridge.statistics.distributions import (
    beta_cdf,
    beta_quantile,
    chi_square_quantile,
    normal_cdf,
    normal_quantile,
    t_cdf,
    t_quantile_at,
)

shares = st.one_of(
    st.floats(1e-6, 1 - 1e-6), st.sampled_from((0.025, 0.2, 0.5, 0.8, 0.975, 1 - 0.05 / 2000)), st.floats(1e-12, 1e-3)
)
degrees = st.one_of(st.integers(1, 1000), st.floats(1, 200))
shapes = st.one_of(st.integers(1, 400), st.floats(0.5, 500))


def near(value: float) -> object:
    return pytest.approx(value, rel=1e-10, abs=1e-14)


@given(st.floats(-30, 30))
def test_normal_probabilities_are_scipys(value):
    assert normal_cdf(value) == pytest.approx(float(special.ndtr(value)), rel=1e-11)


@given(shares)
def test_normal_quantiles_are_scipys(share):
    assert normal_quantile(share) == near(float(special.ndtri(share)))


@given(shapes, shapes, st.floats(0, 1))
def test_beta_probabilities_are_scipys(a, b, value):
    assert beta_cdf(a, b, value) == near(float(special.betainc(a, b, value)))


@given(st.integers(1, 400), st.integers(1, 400), shares)
def test_beta_quantiles_are_scipys(a, b, share):
    assert beta_quantile(a, b, share) == near(float(special.betaincinv(a, b, share)))


@given(degrees, st.floats(-50, 50))
def test_t_probabilities_are_scipys(degrees, value):
    assert t_cdf(degrees, value) == near(float(special.stdtr(degrees, value)))


@given(degrees, st.floats(-30, -1))
def test_tails_of_t_keep_their_digits(degrees, value):
    expected = float(special.stdtr(degrees, value))
    assert t_cdf(degrees, value) == pytest.approx(expected, rel=1e-9, abs=1e-100)


@given(degrees, shares)
def test_t_quantiles_are_scipys(degrees, share):
    assert t_quantile_at(degrees, share) == pytest.approx(float(special.stdtrit(degrees, share)), rel=1e-9, abs=1e-9)


@given(degrees, st.floats(1e-6, 1 - 1e-6))
def test_chi_square_quantiles_are_scipys(degrees, share):
    expected = float(special.chdtri(degrees, 1 - share))
    assert chi_square_quantile(degrees, share) == pytest.approx(expected, rel=1e-8)


def test_quantiles_at_the_ends_are_the_limits_of_the_values():
    assert [normal_quantile(0), normal_quantile(1)] == [-math.inf, math.inf]
    assert [t_quantile_at(3, 0), t_quantile_at(3, 1)] == [-math.inf, math.inf]
    assert [beta_quantile(2, 3, 0), beta_quantile(2, 3, 1)] == [0, 1]
    assert [chi_square_quantile(3, 0), chi_square_quantile(3, 1)] == [0, math.inf]
    assert [t_cdf(3, -math.inf), t_cdf(3, 0), t_cdf(3, math.inf)] == [0, 0.5, 1]
    assert [beta_cdf(2, 3, 0), beta_cdf(2, 3, 1)] == [0, 1]


@pytest.mark.parametrize(
    ("function", "others"),
    [
        (normal_cdf, ()), (normal_quantile, ()), (beta_cdf, (2, 3)), (beta_quantile, (2, 3)), (t_cdf, (5,)),
        (t_quantile_at, (5,)), (chi_square_quantile, (5,)),
    ],
)  # fmt: skip
def test_no_number_has_no_probability_and_no_quantile(function, others):
    values = [*others, 0.3]
    assert not math.isnan(function(*values))
    for place in range(len(values)):
        assert math.isnan(function(*values[:place], math.nan, *values[place + 1 :]))
