"""Outliers, drift and autocorrelation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sentences import raises_sentence
from weighbridge.statistics import flags, place_p_value, place_slopes

NORMAL = np.random.default_rng(5).normal(100, 1, 40)


def test_a_quiet_series_raises_no_flag():
    found = flags(NORMAL.tolist())
    assert found.outliers == ()
    assert found.drift.p_value > 0.05
    assert found.autocorrelation.p_value > 0.05
    assert found.autocorrelation.statistic == pytest.approx(2, abs=0.7)


def test_outliers_are_named_by_position():
    series = NORMAL.copy()
    series[[3, 17]] = 60, 140
    assert flags(series.tolist()).outliers == (3, 17)


def test_the_limit_is_five_scaled_deviations():
    # Median 0, MAD 1: the limit is 7.413.
    assert flags([-1.0] * 5 + [0.0] + [1.0] * 5 + [7.5, -7.4]).outliers == (11,)


def test_more_than_half_equal():
    """The MAD is 0: that is the metric's resolution, and the other values are no outliers."""
    assert flags([0.0] * 9 + [0.3]).outliers == ()


def test_outliers_need_eight_values():
    series = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1000.0]
    assert flags(series).outliers == ()
    assert flags([*series, 3.5]).outliers == (6,)


def test_drift_is_kendalls_tau_against_run_order():
    series = NORMAL + 0.2 * np.arange(40)
    found = flags(series.tolist()).drift
    expected = stats.kendalltau(np.arange(40), series)
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.p_value < 0.001
    assert found.statistic > 0


def test_sticky_series_are_flagged_and_zigzags_are_not():
    assert flags(np.repeat(NORMAL[:10], 4).tolist()).autocorrelation.p_value < 0.001
    zigzag = flags([(-1.0) ** i * (1 + i / 100) for i in range(20)]).autocorrelation
    assert zigzag.statistic > 3
    assert zigzag.p_value > 0.95


def test_rank_von_neumann_ratio_by_hand():
    # Ranks 1..10 in order: nine unit steps over a sum of squares of 82.5.
    found = flags([float(i) for i in range(10)]).autocorrelation
    assert found.statistic == pytest.approx(9 / 82.5)
    assert found.p_value < 1e-4


@pytest.mark.parametrize("n", [10, 25])
def test_the_beta_approximation_against_permutations(n):
    rng = np.random.default_rng(n)
    ranks = rng.permuted(np.tile(np.arange(1.0, n + 1), (100_000, 1)), axis=1)
    ratios = np.sum(np.diff(ranks, axis=1) ** 2, axis=1) / (n * (n * n - 1) / 12)
    for share in (0.01, 0.05, 0.3):
        row = int(np.argsort(ratios)[int(share * len(ratios))])
        assert flags(ranks[row].tolist()).autocorrelation.p_value == pytest.approx(share, abs=0.004)


def test_short_and_constant_series():
    assert flags([]) == flags([1.0]) == flags([3.0] * 20)
    assert flags([1.0, 2.0, 3.0, 4.0]).drift is None
    assert flags([1.0, 2.0, 3.0, 4.0, 5.0]).drift is not None
    assert flags([1.0, 2.0, 3.0] * 3).autocorrelation is None


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_values_must_be_finite(wrong):
    with raises_sentence(ValueError):
        flags([1.0, wrong])


@given(st.lists(st.integers(-1000, 1000), min_size=10, max_size=40))
def test_shift_and_scale_change_nothing(numbers):
    series = [float(number) for number in numbers]
    assert flags([4 * value + 1024 for value in series]) == flags(series)


# -- the place in a block --------------------------------------------------------------------------


def placed(rng, blocks: int, arms: int, per_place: float = 0.0, costs: float = 0.5, drift: float = 0.0):
    """Blocks in random order: environments that differ by much, a drift from block to block, and 2 % noise."""
    made = []
    for block in range(blocks):
        order = rng.permutation(arms)
        noise = rng.normal(0.0, 0.02, arms)
        made.append(
            [
                (
                    float(place),
                    f"arm {arm}",
                    100 * math.exp(costs * arm + drift * block + per_place * place + noise[place]),
                )
                for place, arm in enumerate(order)
            ]
        )
    return made


@pytest.mark.parametrize("arms", [2, 3, 7])
def test_who_was_first_is_no_effect_of_the_place(arms):
    """Environments that differ by half and more, in 10 blocks: by chance each is not as often first as the others."""
    rng = np.random.default_rng(arms)
    p_values = [place_p_value(place_slopes(placed(rng, 10, arms, drift=0.05))) for _ in range(150)]
    assert sum(p_value <= 0.05 for p_value in p_values) <= 15


def test_an_effect_of_the_place_is_found_with_its_size():
    slopes = place_slopes(placed(np.random.default_rng(1), 20, 4, per_place=0.01))
    assert place_p_value(slopes) < 0.001
    assert np.median(slopes) == pytest.approx(0.01, abs=0.004)


def test_blocks_without_two_values_say_nothing_of_places():
    assert place_slopes([]) == place_slopes([[(0.0, "a", 1.0)], []]) == []
    assert place_p_value([]) == 1.0
    whole = [[(0.0, "a", 1.0), (1.0, "b", 2.0)], [(2.0, "a", 5.0)]]
    assert len(place_slopes(whole)) == 1


def test_values_that_are_not_positive_have_a_slope_in_their_unit():
    blocks = [[(0.0, "a", 0.0), (1.0, "b", 1.0)], [(0.0, "b", 0.0), (1.0, "a", 1.0)]]
    assert place_slopes(blocks) == pytest.approx([1.0, 1.0])
