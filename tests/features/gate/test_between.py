"""The change between two runs: estimate, interval, p-value, verdicts."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sentences import raises_sentence
from weighbridge.features.gate.between import change, joint_floor, proves_nothing, shift_p_value, verdict
from weighbridge.statistics import Interval, compare
from weighbridge.statistics.ranks import critical_pair, shift_interval


def logs(n, shift=0.0, seed=1, sd=0.02):
    return (shift + np.random.default_rng(seed).normal(0, sd, n)).tolist()


def made(first, second, **more):
    return change(first, second, **{"better": "higher", "scale": "ratio", "equivalence": 0.03, **more})


def aa(low, high, scale="ratio"):
    base = [100.0] * 12
    found = compare(base, [100.0 * each for each in np.linspace(low, high, 12)], better="higher", scale=scale)
    return found


@pytest.mark.parametrize(("n", "m"), [(3, 4), (5, 5), (4, 7)])
def test_the_critical_pair_is_that_of_all_ways_to_deal_the_ranks(n, m):
    sums = [sum(each) - n * (n + 1) // 2 for each in combinations(range(1, n + m + 1), n)]
    for confidence in (0.8, 0.9, 0.95):
        k = critical_pair(n, m, confidence)
        below = sum(u <= k - 1 for u in sums) / len(sums)
        further = sum(u <= k for u in sums) / len(sums)
        assert 2 * below <= 1 - confidence < 2 * further


def test_the_critical_pair_of_two_tens_is_in_every_textbook():
    assert critical_pair(10, 10, 0.95) == 24
    assert critical_pair(10, 12, 0.95) == critical_pair(12, 10, 0.95) == 30


def test_the_normal_approximation_joins_the_exact_one():
    exact = critical_pair(60, 60, 0.95)
    tail = stats.norm.ppf(0.025)
    assert abs(exact - (1800 + tail * math.sqrt(60 * 60 * 121 / 12))) < 3
    assert critical_pair(100, 100, 0.95) == math.floor(5000 + tail * math.sqrt(100 * 100 * 201 / 12))


def test_the_shift_is_the_median_of_all_differences():
    first, second = np.array(logs(11)), np.array(logs(13, 0.1, 2))
    found = shift_interval(first, second, 0.95)
    differences = sorted(b - a for a in first for b in second)
    assert found.estimate == pytest.approx(np.median(differences))
    k = critical_pair(11, 13, 0.95)
    exact = Interval(found.estimate, differences[k - 1], differences[-k])
    assert found.low <= exact.low and exact.high <= found.high
    assert found.high - found.low < 1.25 * (exact.high - exact.low), "alike spreads cost next to nothing"
    assert {found.low, found.high} <= {*differences}


def test_unlike_spreads_widen_the_interval():
    noisy, quiet = np.array(logs(10, sd=0.08)), np.array(logs(60, seed=2, sd=0.02))
    found, plain = shift_interval(noisy, quiet, 0.95), critical_pair(10, 60, 0.95)
    differences = sorted(b - a for a in noisy for b in quiet)
    assert found.high - found.low > 1.3 * (differences[-plain] - differences[plain - 1])


def test_a_plain_change():
    found = made(logs(15), logs(15, math.log(0.9), 2), floor=0.02)
    assert found.low < 0.9 < found.high and found.typical == pytest.approx(0.9, abs=0.02)
    assert found.penalty.low < 10 < found.penalty.high
    assert found.with_allowance.low == pytest.approx(found.low / 1.01)
    assert found.penalty_with_allowance.high > found.penalty.high
    assert (found.blocks, found.exploratory, found.equivalent) == ((15, 15), False, False)
    assert verdict(found, found.p_value) == "different"


def test_lower_is_better_is_worse_when_it_rises():
    assert made(logs(15), logs(15, 0.1, 2), better="lower").penalty.estimate > 5
    assert made(logs(15), logs(15, 0.1, 2), better="higher").penalty.estimate < -5


def test_the_same_twice_is_equivalent_only_beyond_the_allowance():
    quiet = logs(30, sd=0.005), logs(30, seed=2, sd=0.005)
    assert verdict(made(*quiet), 0.5) == "equivalent"
    assert made(*quiet, allowance=0.029).equivalent is False, "the sessions alone may differ by the margin"


def test_a_change_within_the_allowance_is_never_different():
    precise = logs(60, sd=0.002), logs(60, 0.008, 2, sd=0.002)
    assert verdict(made(*precise, allowance=0.0, equivalence=0.001), 0.0) == "different"
    found = made(*precise, equivalence=0.001)
    assert not found.excludes_no_change and found.p_value > 0.9
    assert verdict(found, 0.0) == "inconclusive"


def test_a_change_within_both_floors_is_never_different():
    found = made(logs(30), logs(30, 0.06, 2), floor=0.1)
    assert found.within_noise and verdict(found, 0.0) == "inconclusive"
    assert verdict(made(logs(30), logs(30, 0.06, 2), floor=0.03), 0.0) == "different"


def test_both_floors_are_the_root_of_their_squares():
    one, other = aa(0.97, 1.02), aa(0.99, 1.03)
    floors = [max(abs(math.log(each.low)), abs(math.log(each.high))) for each in (one, other)]
    assert joint_floor(one, other, "ratio") == pytest.approx(math.expm1(math.hypot(*floors)))
    assert joint_floor(one, None, "ratio") is None
    assert joint_floor(one, other, "difference") is None
    by_difference = aa(0.97, 1.02, "difference"), aa(0.99, 1.03, "difference")
    sizes = [max(abs(each.low), abs(each.high)) for each in by_difference]
    assert joint_floor(*by_difference, "difference") == pytest.approx(math.hypot(*sizes))


def test_hidden_wins_over_everything():
    assert verdict(made(logs(15), logs(15, 0.5, 2)), 0.0, hidden=True) == "hidden"
    assert verdict(made(logs(40, sd=0.003), logs(40, seed=2, sd=0.003)), 1.0, hidden=True) == "hidden"


def test_what_takes_a_verdict_within_a_run_takes_it_here():
    same, other = made(logs(40, sd=0.003), logs(40, seed=2, sd=0.003)), made(logs(15), logs(15, 0.5, 2))
    assert verdict(same, 1.0, never_equivalent=True) == "inconclusive"
    assert verdict(other, 0.0, never_different=True) == "inconclusive"
    assert verdict(other, 0.2) == "inconclusive", "Holm takes it"
    assert verdict(None, None) == "inconclusive"


def test_few_blocks_are_exploratory_with_welchs_interval():
    first, second = logs(6), logs(14, 0.1, 2)
    found = made(first, second)
    welch = stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.95)
    assert found.exploratory
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((welch.low, welch.high))


def test_the_p_value_is_welchs():
    first, second = logs(12), logs(20, 0.02, 2, sd=0.05)
    assert shift_p_value(first, second) == pytest.approx(stats.ttest_ind(first, second, equal_var=False).pvalue)
    assert shift_p_value(first, second, 0.01) > shift_p_value(first, second)
    assert shift_p_value(first, first) == 1.0


def test_values_that_do_not_vary_prove_only_what_their_number_does():
    assert shift_p_value([0.1] * 3, [0.2] * 3) == pytest.approx(2 / 20)
    assert made([0.1] * 2, [0.1] * 2).equivalent and proves_nothing(made([0.1] * 2, [0.1] * 2))
    assert verdict(made([0.1] * 2, [0.1] * 2), 1.0) == "inconclusive"
    assert verdict(made([0.1] * 12, [0.1] * 12), 1.0) == "equivalent"


def test_by_difference_in_the_unit():
    found = change([5.0, 6, 7, 5, 6, 7, 5, 6, 7, 5], [15.0, 16, 17, 15, 16, 17, 15, 16, 17, 15], better="lower",
                   scale="difference", equivalence=0.03, floor=3.0)  # fmt: skip
    assert found.typical == pytest.approx(10) and found.penalty.estimate == pytest.approx(10)
    assert found.with_allowance == found.interval and found.allowance == 0
    assert (found.equivalent, verdict(found, found.p_value)) == (None, "different")
    assert change([0.0] * 10, [0.0] * 10, better="lower", scale="difference", equivalence=0.03).equivalent


def test_several_looks_spend_less_of_the_error():
    one, several = (made(logs(20), logs(20, 0.05, 2), looks=looks) for looks in (1, 8))
    assert several.low < one.low and several.high > one.high
    assert several.p_value == pytest.approx(min(1.0, one.p_value / 0.7))


@pytest.mark.parametrize(
    ("first", "second", "more"),
    [
        ([0.1], [0.1, 0.2], {}),
        ([0.1, math.inf], [0.1, 0.2], {}),
        ([0.1, 0.2], [0.1, 0.2], {"confidence": 1.0}),
        ([0.1, 0.2], [0.1, 0.2], {"equivalence": 0.0}),
        ([0.1, 0.2], [0.1, 0.2], {"looks": 0}),
        ([0.1, 0.2], [0.1, 0.2], {"allowance": -0.1}),
        ([0.1, 0.2], [0.1, 0.2], {"better": "best"}),
    ],
)
def test_what_cannot_be_compared_is_said(first, second, more):
    with raises_sentence(ValueError):
        made(first, second, **more)


values = st.lists(st.floats(-2, 2), min_size=2, max_size=30)


@given(values, values)
def test_the_two_runs_are_symmetric(first, second):
    there, back = made(first, second), made(second, first)
    assert there.low <= there.typical <= there.high
    assert math.log(there.typical) == pytest.approx(-math.log(back.typical), abs=1e-9)
    assert there.equivalent == back.equivalent
    assert there.p_value == pytest.approx(back.p_value)
    assert 0 <= there.p_value <= 1
