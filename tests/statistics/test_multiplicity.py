"""Holm's correction."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.statistics import holm


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
