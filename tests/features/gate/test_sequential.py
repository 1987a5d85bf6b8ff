"""Looks of a gate, what they spend, and p-values against limits."""

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.features.gate.between import change
from weighbridge.features.gate.sequential import (
    LEAST_SHARE,
    MOST_LOOKS,
    SPENT,
    decision_looks,
    limit_p_values,
    look_shares,
    margin_p_value,
)
from weighbridge.model.decisions import GateLook
from weighbridge.statistics import compare
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT


@given(st.integers(1, 300), st.integers(0, 900))
def test_looks_go_from_what_there_is_to_the_last_one(blocks, more):
    looks = decision_looks(blocks, blocks + more)
    assert (looks[0], looks[-1]) == (blocks, blocks + more)
    assert list(looks) == sorted(set(looks)) and len(looks) <= MOST_LOOKS
    if blocks + more >= 1.27 * blocks and blocks >= 10:
        assert all(later >= 1.2 * earlier for earlier, later in pairwise(looks))


@given(st.integers(1, 300), st.integers(0, 900), st.lists(st.just(0), max_size=6))
def test_however_often_a_run_is_extended_all_looks_spend_no_more_than_the_error(blocks, more, again):
    left = 1.0
    for _ in (0, *again):
        looks = decision_looks(blocks, blocks + more)
        shares = look_shares(looks, left)
        assert len(shares) == len(looks) and all(share >= 0 for share in shares)
        assert sum(shares) == pytest.approx(left * SPENT if looks[-1] >= MIN_BLOCKS_VERDICT else 0.0)
        left -= sum(shares)
        blocks += more
    assert left > 0


def test_later_looks_spend_more_and_looks_that_decide_nothing_spend_nothing():
    assert decision_looks(10, 60) == (10, 16, 24, 38, 60)
    assert list(look_shares((10, 20, 40))) == sorted(look_shares((10, 20, 40)))
    assert look_shares((MIN_BLOCKS_VERDICT - 1, 20)) == (0.0, SPENT)
    assert look_shares((1, 2)) == (0.0, 0.0)


def test_a_look_spends_nothing_below_what_a_run_keeps():
    assert look_shares((20,), 1e-6) == (0.0,) and look_shares((20,), 1e-5)[0] >= LEAST_SHARE
    GateLook(blocks=20, share=LEAST_SHARE, open=())
    with raises_sentence(ValueError):
        GateLook(blocks=20, share=LEAST_SHARE * 0.99, open=())


@pytest.mark.parametrize(("blocks", "most"), [(0, 10), (10, 9), (-1, -1)])
def test_looks_that_are_none(blocks, most):
    with raises_sentence(ValueError):
        decision_looks(blocks, most)


def sides(ratio, blocks=12, noise=0.01, seed=3):
    chance = random.Random(seed)
    base = [100 * math.exp(chance.gauss(0, noise)) for _ in range(blocks)]
    return base, [value * ratio * math.exp(chance.gauss(0, noise)) for value in base]


@pytest.mark.parametrize(("better", "ratio"), [("higher", 0.8), ("lower", 1.25)])
def test_a_cost_is_tested_against_its_limit(better, ratio):
    values = sides(ratio)
    cost = compare(*values, better=better)
    size = cost.penalty.estimate
    far = limit_p_values(values, cost, size - 5, 1)
    assert far.by_t < 1e-4 and far.exact == far.smallest == 2**-11, "each block is above it"
    near = limit_p_values(values, cost, size - 0.05, 1)
    assert 0.3 < near.by_t < 1 and 0.3 < near.exact < 1
    beyond = limit_p_values(values, cost, size + 5, 1)
    assert (beyond.exact, beyond.by_t) == (1.0, 1.0), "it is not above"
    once, of_looks = (limit_p_values(values, cost, size - 1, looks) for looks in (1, 2))
    assert of_looks.by_t == pytest.approx(once.by_t / 0.7) and of_looks.exact == pytest.approx(once.exact / 0.7)


def test_limits_that_no_ratio_reaches():
    values = sides(0.01)
    none = limit_p_values(values, compare(*values, better="higher"), 100.0, 1)
    assert (none.exact, none.by_t) == (1.0, 1.0)
    values = sides(0.5)
    certain = limit_p_values(values, compare(*values, better="lower"), -120.0, 1)
    assert (certain.exact, certain.by_t) == (0.0, 0.0)


@pytest.mark.parametrize(("better", "limit"), [("lower", 2.0), ("higher", -8.0)])
def test_differences_are_tested_in_their_unit(better, limit):
    base = [1.0, 2.0, 1.5, 1.2, 1.8, 1.1]
    values = base, [each + 5 + 0.1 * place for place, each in enumerate(base)]
    cost = compare(*values, better=better, scale="difference")
    assert limit_p_values(values, cost, limit, 1).by_t < 0.001
    assert limit_p_values(values, cost, 9.0, 1).by_t == 1.0


def test_a_change_is_tested_against_its_margin_beyond_the_allowance():
    chance = random.Random(5)
    first = [chance.gauss(0, 0.01) for _ in range(15)]
    second = [chance.gauss(math.log(0.9), 0.01) for _ in range(15)]
    found = change(first, second, better="higher", scale="ratio")
    assert margin_p_value(first, second, found, 3.0, 1) < 0.001
    assert margin_p_value(first, second, found, 9.5, 1) > 0.2
    assert margin_p_value(first, second, found, 15.0, 1) == 1.0
