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
    family_p_value,
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


def test_ranks_decide_where_the_blocks_can_say_enough_and_t_elsewhere():
    """Eleven slow runs of forty."""
    effects = [0.01 + 0.0001 * number for number in range(29)] + [-0.2 - 0.001 * number for number in range(11)]
    cost = compare([1.0] * 40, np.exp(effects).tolist(), better="higher")
    values = p_values_of(effects, cost, looks=1)
    assert values.by_ranks == cost.p_value and values.smallest == 2**-39
    assert values.among(1, ALPHA) == values.among(10**6, ALPHA) == values.by_ranks
    few = PValues(by_ranks=2**-9, smallest=2**-9, by_t=1e-6)
    assert few.among(2, ALPHA) == 2**-9, "ten blocks in a family of two"
    assert few.among(3, ALPHA) == 1e-6, "a rank says no more than 0.006 there, however large the cost"
    assert few.among(1, 0.01) == 1e-6
    assert adjusted([few, None, few, 0.5]) == [pytest.approx(3e-6), None, pytest.approx(3e-6), 0.5]
    assert p_values_of([0.1] * 10, compare([1.0] * 10, [1.1] * 10, better="lower"), 8).smallest == 2**-9 / 0.7


@pytest.mark.parametrize("comparisons", [1, 30, 1000])
@pytest.mark.parametrize("looks", [1, 8])
def test_the_fewest_blocks_of_a_verdict_are_the_fewest_with_which_the_rule_can_decide(comparisons: int, looks: int):
    """A clear cost: its exact interval excludes 0 from this number of blocks on, and Holm lets it stand."""
    clear = [0.5 + 0.001 * number for number in range(MIN_BLOCKS_VERDICT)]
    confidence = 1 - ALPHA * looks_share(looks)
    assert signed_rank_interval(np.array(clear), confidence).low > 0
    assert signed_rank_interval(np.array(clear[1:]), confidence).low == -math.inf
    assert holm([family_p_value(clear, looks), *[1.0] * (comparisons - 1)])[0] <= ALPHA


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
