"""Holm's correction, noise floors, and what p-values Holm gets."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.statistics import compare, holm, looks_share
from weighbridge.statistics.cost import Better
from weighbridge.statistics.ranks import signed_rank_interval
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.statistics.verdicts import ALPHA, family_p_value, noise_floor, noise_range, within_noise


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
    """A cost lies within the printed noise exactly where the verdict takes it for noise."""
    chance = random.Random(3)
    baseline = [100.0 * chance.lognormvariate(0, 0.02) for _ in range(10)]
    aa = compare(baseline, [each * 1.4 * chance.lognormvariate(0, 0.02) for each in baseline], better=better)
    found, floor = noise_range(aa), noise_floor(aa)
    assert found is not None and floor is not None and 0.35 < floor < 0.5
    low, high = found
    near, far = 100 * floor, 100 * floor / (1 + floor)
    assert (low, high) == pytest.approx((-near, far) if better == "higher" else (-far, near))
    for percent in (low - 0.5, low + 0.5, high - 0.5, high + 0.5):
        ratio = 1 - percent / 100 if better == "higher" else 1 + percent / 100
        cost = compare(baseline, [each * ratio for each in baseline], better=better)
        assert cost.percent is not None and cost.percent.estimate == pytest.approx(percent)
        assert within_noise(cost, aa) == (low <= percent <= high)


def test_the_noise_of_a_difference_is_in_its_unit():
    aa = compare([0.0, 2.0, 1.0, 0.0, 3.0], [1.0, 2.0, 1.0, 4.0, 3.0], better="lower")
    found = noise_range(aa)
    assert aa.scale == "difference" and found == (-max(abs(aa.low), abs(aa.high)), max(abs(aa.low), abs(aa.high)))
    assert math.isfinite(found[1]) and noise_range(None) is None
