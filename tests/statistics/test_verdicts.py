import math
import random

import pytest

from weighbridge.statistics import compare
from weighbridge.statistics.cost import Better
from weighbridge.statistics.verdicts import noise_floor, noise_range, within_noise


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
