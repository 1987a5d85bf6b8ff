"""Holm's correction, noise floors, and what p-values Holm gets."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.statistics import compare, holm, looks_share
from weighbridge.statistics.cost import Better
from weighbridge.statistics.ranks import signed_rank_interval
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import (
    ALPHA,
    PValues,
    adjusted,
    fewest_blocks,
    noise_floor,
    noise_range,
    p_values_of,
)


def test_holm_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()
    assert holm([0.2]) == pytest.approx((0.2,))
    for wrong in ([-0.1], [1.1], [math.nan]):
        with pytest.raises(ValueError):
            holm(wrong)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_is_between_plain_and_bonferroni_and_keeps_the_order(p_values):
    adjusted = holm(p_values)
    for p, a in zip(p_values, adjusted, strict=True):
        assert p - 1e-12 <= a <= min(1, p * len(p_values)) + 1e-12
    assert [adjusted[i] for i in np.argsort(p_values)] == sorted(adjusted)


def test_the_exact_p_value_counts_where_it_can_be_small_enough():
    effects = [0.01 + 0.0001 * number for number in range(29)] + [-0.2 - 0.001 * number for number in range(11)]
    cost = compare([1.0] * 40, np.exp(effects).tolist(), better="higher")
    values = p_values_of(effects, cost, looks=1)
    assert values.exact == cost.p_value and values.smallest == 2**-39
    assert values.among(1, ALPHA) == values.among(10**6, ALPHA) == values.exact
    ten = PValues(10, exact=2**-9, smallest=2**-9, by_t=1e-6)
    assert ten.among(25, ALPHA) == 2**-9 and ten.among(26, ALPHA) == 1e-6
    other_sign = PValues(10, exact=2**-8, smallest=2**-9, by_t=1e-6)
    assert other_sign.among(26, ALPHA) == 2**-8, "one block says otherwise"
    six, guarded = (PValues(6, exact=2**-5, smallest=2**-5, by_t=1e-6, guarded=each) for each in (False, True))
    assert guarded.among(1, ALPHA) == 2**-5 and guarded.among(2, ALPHA) == 1e-6
    assert six.among(1, ALPHA) == six.among(2, ALPHA) == 2**-5, "six blocks have one sign by chance in 3 %"
    assert adjusted([six, None]) == [2**-5, None] and adjusted([six, six]) == [2**-4, 2**-4]
    assert p_values_of([0.1] * 10, compare([1.0] * 10, [1.1] * 10, better="lower"), 8).smallest == 2**-9 / 0.7
    assert [fewest_blocks(ALPHA / number, 1) for number in (1, 2, 12, 13, 400)] == [6, 7, 9, 10, 10]


@pytest.mark.parametrize("looks", [1, 8])
def test_the_fewest_blocks_of_a_verdict_are_the_fewest_with_which_the_rule_can_decide(looks: int):
    """A clear cost: its exact interval excludes 0 from this number of blocks on, and alone it is rejected."""
    clear = [0.5 + 0.001 * number for number in range(MIN_BLOCKS_VERDICT)]
    confidence = 1 - ALPHA * looks_share(looks)
    assert signed_rank_interval(np.array(clear), confidence).low > 0
    assert signed_rank_interval(np.array(clear[1:]), confidence).low == -math.inf
    cost = compare([1.0] * len(clear), np.exp(clear).tolist(), better="lower", looks=looks)
    assert adjusted([p_values_of(clear, cost, looks)])[0] <= ALPHA


# -- noise floors -------------------------------------------------------------------------------


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_the_noise_is_on_the_scale_of_the_costs(better: Better):
    chance = random.Random(3)
    baseline = [100.0 * chance.lognormvariate(0, 0.02) for _ in range(10)]
    aa = compare(baseline, [each * 1.4 * chance.lognormvariate(0, 0.02) for each in baseline], better=better)
    found, floor = noise_range(aa), noise_floor(aa)
    assert found is not None and floor is not None and 0.35 < floor < 0.5
    low, high = found
    near, far = 100 * floor, 100 * floor / (1 + floor)
    assert (low, high) == pytest.approx((-near, far) if better == "higher" else (-far, near))


def test_the_noise_of_a_difference_is_in_its_unit():
    aa = compare([0.0, 2.0, 1.0, 0.0, 3.0], [1.0, 2.0, 1.0, 4.0, 3.0], better="lower")
    found = noise_range(aa)
    assert aa.scale == "difference" and found == (-max(abs(aa.low), abs(aa.high)), max(abs(aa.low), abs(aa.high)))
    assert math.isfinite(found[1]) and noise_range(None) is None
