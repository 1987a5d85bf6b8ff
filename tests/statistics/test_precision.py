"""Stopping on precision."""

import math

import numpy as np
import pytest

from weighbridge.statistics import LOOKS, compare, next_look, planned_looks


def cost(n, sd, ratio=1.0):
    """A cost whose log ratios are evenly spread normal scores."""
    logs = math.log(ratio) + sd * np.linspace(-1.5, 1.5, n)
    return compare([1.0] * n, np.exp(logs).tolist(), better="higher", looks=8)


def test_the_looks_are_those_of_the_design():
    assert planned_looks() == LOOKS == (10, 13, 17, 22, 28, 35, 44, 60)
    assert planned_looks(12, 30) == (12, 13, 17, 22, 28, 30)
    assert planned_looks(3, 10) == (3, 10)
    assert planned_looks(10, 100) == (*LOOKS, 76, 97, 100)
    assert planned_looks(5, 5) == (5,)


@pytest.mark.parametrize(("minimum", "maximum"), [(1, 60), (20, 10), (0, 0)])
def test_impossible_ranges(minimum, maximum):
    with pytest.raises(ValueError):
        planned_looks(minimum, maximum)


def test_a_target_must_be_positive():
    for target in (0, -0.02, math.inf, math.nan):
        with pytest.raises(ValueError):
            next_look(10, [], target)


def test_half_width_is_relative_on_the_log_scale():
    found = cost(20, 0.05)
    assert found.half_width == pytest.approx(math.sqrt(found.high / found.low) - 1)


def test_reached():
    decision = next_look(10, [cost(10, 0.005), cost(10, 0.01)], 0.02)
    assert (decision.action, decision.stop, decision.next_blocks) == ("reached", True, None)
    assert decision.reached == (True, True)
    assert decision.width == cost(10, 0.01).half_width <= 0.02


def test_before_the_first_look_and_between_looks_it_goes_on():
    for blocks, following in [(0, 10), (1, 10), (9, 10), (11, 13), (45, 60)]:
        decision = next_look(blocks, [cost(max(blocks, 1), 0.001)], 0.02)
        assert (decision.action, decision.next_blocks, decision.reached) == ("continue", following, (False,))


def test_comparisons_leave_one_by_one():
    decision = next_look(13, [cost(13, 0.001), cost(13, 0.2)], 0.02)
    assert (decision.action, decision.next_blocks, decision.reached) == ("continue", 17, (True, False))


def test_the_cap_says_how_many_blocks_it_would_take():
    wide = cost(60, 0.2)
    decision = next_look(60, [wide], 0.02)
    assert (decision.action, decision.stop, decision.width) == ("cap", True, wide.half_width)
    expected = 60 * (math.log1p(wide.half_width) / math.log1p(0.02)) ** 2
    assert decision.predicted_blocks == math.ceil(expected) > 60
    assert cost(decision.predicted_blocks, 0.2).half_width == pytest.approx(0.02, rel=0.05)


def test_significance_never_stops_a_run():
    huge = cost(10, 0.1, ratio=0.3)
    assert huge.verdict == "different"
    assert next_look(10, [huge], 0.02).action == "continue"


def test_nothing_known_yet():
    decision = next_look(0, [], 0.02)
    assert (decision.action, decision.width, decision.predicted_blocks) == ("continue", math.inf, None)
    single = next_look(1, [cost(1, 0.1)], 0.02)
    assert (single.width, single.predicted_blocks) == (math.inf, None)


def test_differences_have_no_relative_width():
    lossy = compare([0.0] * 60, [0.1 * i for i in range(60)], better="lower", looks=8)
    assert next_look(60, [lossy], 0.02).action == "cap"
    lossless = compare([0.0] * 10, [0.0] * 10, better="lower", looks=8)
    assert next_look(10, [lossless], 0.02).action == "reached"
