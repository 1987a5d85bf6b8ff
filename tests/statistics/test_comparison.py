"""`compare` and `Cost`: values, symmetry, and what happens at the edges."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from weighbridge.statistics import Cost, Interval, compare, cost_percent, scale_of


def noisy(n, ratio=1.0, seed=1, sd=0.02):
    rng = np.random.default_rng(seed)
    return (940 * np.exp(rng.normal(0, sd, n))).tolist(), (940 * ratio * np.exp(rng.normal(0, sd, n))).tolist()


@pytest.mark.parametrize(
    ("unit", "scale"), [("count", "difference"), ("%", "difference"), ("bit/s", None), ("us", None), ("", None)]
)
def test_counts_and_shares_are_compared_by_difference(unit, scale):
    assert scale_of(unit) == scale


def test_a_plain_comparison():
    cost = compare(*noisy(12, 0.726), better="higher", equivalence=0.02)
    assert cost.verdict == "different"
    assert cost.equivalent is False
    assert cost.low < cost.typical < cost.high
    assert cost.low < 0.726 < cost.high
    assert (cost.blocks, cost.exploratory, cost.scale, cost.confidence) == (12, False, "ratio", 0.95)
    assert cost.p_value <= 4 / 2**12
    percent = cost.percent
    assert percent.low < 27.4 < percent.high
    assert percent == Interval(*(100 * (1 - ratio) for ratio in (cost.typical, cost.high, cost.low)))


def test_cost_in_percent_is_positive_where_worse():
    assert cost_percent(Interval(0.726, 0.712, 0.741), "higher").estimate == pytest.approx(27.4)
    assert cost_percent(Interval(0.726, 0.712, 0.741), "higher").low == pytest.approx(25.9)
    lower = cost_percent(Interval(1.2, 1.1, 1.3), "lower")
    assert (lower.estimate, lower.low, lower.high) == pytest.approx((20, 10, 30))


def test_typical_is_the_hodges_lehmann_estimate_with_its_exact_interval():
    baseline, other = noisy(10, 0.9)
    logs = np.log(other) - np.log(baseline)
    walsh = sorted((logs[i] + logs[j]) / 2 for i in range(10) for j in range(i, 10))
    cost = compare(baseline, other, better="higher")
    assert cost.typical == pytest.approx(math.exp(np.median(walsh)))
    assert cost.low == pytest.approx(math.exp(walsh[8]))  # the 9th smallest of 55: exact 95.1 %
    assert cost.high == pytest.approx(math.exp(walsh[-9]))
    several = compare(baseline, other, better="higher", looks=8)
    assert several.low == pytest.approx(math.exp(walsh[6]))  # the 7th: exact 97.3 %, the first at or above 96.5 %
    assert several.confidence == 0.95
    assert several.p_value == pytest.approx(cost.p_value / 0.7)


def test_fewer_than_ten_blocks_are_exploratory_with_a_t_interval():
    baseline, other = noisy(9, 0.9)
    logs = np.log(other) - np.log(baseline)
    cost = compare(baseline, other, better="higher")
    low, high = stats.t.interval(0.95, 8, logs.mean(), stats.sem(logs))
    assert cost.exploratory
    assert (cost.low, cost.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert cost.geometric.estimate == pytest.approx(math.exp(logs.mean()))
    expected = stats.permutation_test((logs,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
    assert cost.p_value == pytest.approx(expected)


def test_fieller_limits_are_where_the_paired_t_test_just_passes():
    baseline, other = noisy(15, 0.9, sd=0.2)
    arithmetic = compare(baseline, other, better="higher").arithmetic
    assert arithmetic.estimate == pytest.approx(np.mean(other) / np.mean(baseline))
    for limit in (arithmetic.low, arithmetic.high):
        assert stats.ttest_rel(other, limit * np.array(baseline)).pvalue == pytest.approx(0.05)


def test_fieller_is_unbounded_where_the_baseline_is_not_told_from_zero():
    arithmetic = compare([1e-3, 1e-3, 100.0], [1.0, 2.0, 1.0], better="lower").arithmetic
    assert (arithmetic.low, arithmetic.high) == (0, math.inf)


def test_one_block_has_an_infinite_interval():
    cost = compare([100.0], [80.0], better="higher", equivalence=0.5)
    assert (cost.typical, cost.low, cost.high) == (pytest.approx(0.8), 0, math.inf)
    assert (cost.exploratory, cost.p_value, cost.verdict, cost.equivalent) == (True, 1, "inconclusive", False)
    assert cost.half_width == math.inf
    assert (cost.arithmetic.low, cost.arithmetic.high) == (0, math.inf)


@pytest.mark.parametrize("n", [2, 9, 10, 60])
def test_all_equal(n):
    cost = compare([5.0] * n, [5.0] * n, better="lower", equivalence=0.01)
    assert (cost.typical, cost.low, cost.high, cost.half_width) == (1, 1, 1, 0)
    assert (cost.verdict, cost.p_value) == ("equivalent", 1)
    assert cost.arithmetic == Interval(1, 1, 1)
    without = compare([5.0] * n, [5.0] * n, better="lower")
    assert (without.verdict, without.equivalent) == ("inconclusive", None)


def test_a_constant_factor_is_exact():
    cost = compare([2.0, 4.0, 8.0] * 4, [1.0, 2.0, 4.0] * 4, better="higher")
    assert (cost.typical, cost.verdict) == (pytest.approx(0.5), "different")
    assert cost.arithmetic.low == cost.arithmetic.high == 0.5
    assert cost.disagreement == pytest.approx(0)


def test_equivalence_is_two_one_sided_tests_at_five_percent():
    baseline, other = noisy(20, 0.99, sd=0.01)
    logs = np.log(other) - np.log(baseline)
    worst = max(
        stats.wilcoxon(logs + math.log1p(0.02), alternative="greater", method="exact").pvalue,
        stats.wilcoxon(logs - math.log1p(0.02), alternative="less", method="exact").pvalue,
    )
    cost = compare(baseline, other, better="higher", equivalence=0.02)
    assert cost.equivalent is bool(worst <= 0.05)
    for margin in np.linspace(0.002, 0.03, 57):
        found = compare(baseline, other, better="higher", equivalence=float(margin)).equivalent
        below = stats.wilcoxon(logs + math.log1p(margin), alternative="greater", method="exact").pvalue
        above = stats.wilcoxon(logs - math.log1p(margin), alternative="less", method="exact").pvalue
        assert found is bool(max(below, above) <= 0.05)


def test_equivalent_wins_over_different():
    baseline, other = noisy(30, 0.99, sd=0.002)
    assert compare(baseline, other, better="higher").verdict == "different"
    assert compare(baseline, other, better="higher", equivalence=0.03).verdict == "equivalent"


def test_zero_loss_against_zero_loss():
    cost = compare([0.0] * 12, [0.0] * 12, better="lower", equivalence=0.03)
    assert (cost.scale, cost.verdict, cost.equivalent) == ("difference", "equivalent", True)
    assert (cost.typical, cost.low, cost.high, cost.half_width) == (0, 0, 0, 0)
    assert cost.geometric is cost.percent is cost.disagreement is None
    assert compare([0.0], [0.0], better="lower", equivalence=0.03).verdict == "inconclusive"
    assert compare([0.0] * 12, [0.0] * 12, better="lower").verdict == "inconclusive"


def test_zeros_turn_to_differences_in_the_unit_of_the_metric():
    loss = [0.5, 0.6, 0.4, 0.7, 0.55, 0.45, 0.65, 0.52, 0.58, 0.61]
    cost = compare([0.0] * 10, loss, better="lower", equivalence=0.03)
    assert (cost.scale, cost.verdict, cost.equivalent) == ("difference", "different", None)
    assert cost.low <= cost.typical <= cost.high
    assert cost.typical == pytest.approx(0.56, abs=0.01)
    assert cost.arithmetic.estimate == pytest.approx(np.mean(loss))
    assert cost.half_width == math.inf
    single = compare([0.0], [1.0], better="lower")
    assert (single.typical, single.low, single.high) == (1, -math.inf, math.inf)


@pytest.mark.parametrize(
    ("baseline", "other", "message"),
    [
        ([], [], "no block"),
        ([1.0, 2.0], [1.0], "one value per block"),
        ([1.0, math.nan], [1.0, 2.0], "finite"),
        ([1.0, 2.0], [1.0, math.inf], "finite"),
    ],
)
def test_what_cannot_be_compared(baseline, other, message):
    with pytest.raises(ValueError, match=message):
        compare(baseline, other, better="lower")


@pytest.mark.parametrize(
    "settings_",
    [
        {"better": "more"},
        {"confidence": 95},
        {"confidence": 1.0},
        {"equivalence": 0},
        {"equivalence": math.nan},
        {"looks": 0},
    ],
)
def test_settings_out_of_range(settings_):
    with pytest.raises(ValueError):
        compare([1.0, 2.0], [1.0, 2.0], **{"better": "lower", **settings_})


def test_differences_beyond_the_range_of_floats():
    with pytest.raises(ValueError, match="too far apart"):
        compare([-1e308] * 10, [1e308] * 10, better="lower")
    assert compare([5e-324], [1e308], better="lower").typical == math.inf


def test_a_tiny_confidence_tail_at_few_blocks_gives_no_limits():
    cost = compare(*noisy(10, 0.5), better="higher", confidence=0.9999)
    assert (cost.low, cost.high, cost.verdict) == (0, math.inf, "inconclusive")


def test_rare_stalls_show_as_disagreement():
    baseline, other = noisy(40, 1.0, sd=0.005)
    stalled = [value * (0.5 if i % 10 == 3 else 1) for i, value in enumerate(other)]
    assert compare(baseline, stalled, better="higher").disagreement == pytest.approx(0.05, abs=0.01)


values = st.floats(1e-3, 1e9)
pairs = st.lists(st.tuples(values, values), min_size=1, max_size=24)


def limits(cost: Cost):
    return [cost.typical, cost.low, cost.high]


@settings(derandomize=True, deadline=None, max_examples=150)
@given(pairs, st.integers(1, 8))
def test_swapping_the_arms_inverts_the_ratio(blocks, looks):
    baseline, other = map(list, zip(*blocks, strict=True))
    one = compare(baseline, other, better="lower", equivalence=0.05, looks=looks)
    two = compare(other, baseline, better="lower", equivalence=0.05, looks=looks)
    assert one.typical * two.typical == pytest.approx(1)
    if one.low > 0 and one.high < 1e300 and two.high < 1e300:
        assert one.low * two.high == pytest.approx(1)
    assert (one.p_value, one.verdict) == (two.p_value, two.verdict)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(pairs, st.sampled_from([2.0**-20, 8.0, 2.0**30]))
def test_the_unit_does_not_matter(blocks, unit):
    baseline, other = map(list, zip(*blocks, strict=True))
    one = compare(baseline, other, better="lower")
    two = compare([unit * x for x in baseline], [unit * x for x in other], better="lower")
    assert limits(one) == pytest.approx(limits(two), rel=1e-6, nan_ok=True)
    assert one.arithmetic.estimate == pytest.approx(two.arithmetic.estimate)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(pairs)
def test_every_interval_holds_its_estimate(blocks):
    cost = compare(*map(list, zip(*blocks, strict=True)), better="higher", equivalence=0.02)
    for interval in (cost.interval, cost.geometric, cost.arithmetic):
        assert interval.low <= interval.estimate * (1 + 1e-12)
        assert interval.estimate <= interval.high * (1 + 1e-12)
    assert 0 < cost.p_value <= 1
    assert cost.percent.low <= cost.percent.high


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12)), min_size=1, max_size=30))
def test_any_finite_values_can_be_compared(blocks):
    cost = compare(*map(list, zip(*blocks, strict=True)), better="lower", equivalence=0.02, looks=8)
    assert cost.low <= cost.typical <= cost.high


def test_differences_can_be_asked_for_where_a_ratio_exists():
    cost = compare([1.0, 2.0, 3.0], [5001.0, 5002.0, 5003.0], better="lower", scale="difference")
    assert cost.scale == "difference" and cost.typical == pytest.approx(5000.0)
    with pytest.raises(ValueError, match="ratio needs positive"):
        compare([0.0, 1.0], [1.0, 1.0], better="lower", scale="ratio")
