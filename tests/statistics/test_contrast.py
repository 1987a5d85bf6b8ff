"""`Contrast`, `compare` and `Cost`: values, symmetry, several arms, and what happens at the edges."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sentences import raises_sentence
from weighbridge.statistics import Contrast, Cost, Interval, Looks, Sample, compare, cost_percent
from weighbridge.statistics.contrast import shown_level


def noisy(n, ratio=1.0, seed=1, sd=0.02):
    rng = np.random.default_rng(seed)
    return (940 * np.exp(rng.normal(0, sd, n))).tolist(), (940 * ratio * np.exp(rng.normal(0, sd, n))).tolist()


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


@pytest.mark.parametrize(
    ("looks", "level"),
    [(Looks(), 0.95), (Looks(8), 0.95), (Looks(1, 1), 0.9825), (Looks(8, 2), 0.99125),
     (Looks(interim=True), 0.997), (Looks(8, interim=True), 0.9979)],
)  # fmt: skip
def test_an_interval_at_an_unplanned_look_is_shown_with_its_own_level(looks: Looks, level: float):
    assert shown_level(looks) == pytest.approx(level)
    assert compare(*noisy(12), better="higher", looks=looks).level == pytest.approx(level)


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
    ("baseline", "other"),
    [
        ([], []),
        ([1.0, 2.0], [1.0]),
        ([1.0, math.nan], [1.0, 2.0]),
        ([1.0, 2.0], [1.0, math.inf]),
    ],
)
def test_what_cannot_be_compared(baseline, other):
    with raises_sentence(ValueError):
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
    with raises_sentence(ValueError):
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


@given(pairs, st.integers(1, 8))
def test_swapping_the_arms_inverts_the_ratio(blocks, looks):
    baseline, other = map(list, zip(*blocks, strict=True))
    one = compare(baseline, other, better="lower", equivalence=0.05, looks=looks)
    two = compare(other, baseline, better="lower", equivalence=0.05, looks=looks)
    assert one.typical * two.typical == pytest.approx(1)
    if one.low > 0 and one.high < 1e300 and two.high < 1e300:
        assert one.low * two.high == pytest.approx(1)
    assert (one.p_value, one.verdict) == (two.p_value, two.verdict)


@given(pairs, st.sampled_from([2.0**-20, 8.0, 2.0**30]))
def test_the_unit_does_not_matter(blocks, unit):
    baseline, other = map(list, zip(*blocks, strict=True))
    one = compare(baseline, other, better="lower")
    two = compare([unit * x for x in baseline], [unit * x for x in other], better="lower")
    assert limits(one) == pytest.approx(limits(two), rel=1e-6, nan_ok=True)
    assert one.arithmetic.estimate == pytest.approx(two.arithmetic.estimate)


@given(pairs)
def test_every_interval_holds_its_estimate(blocks):
    cost = compare(*map(list, zip(*blocks, strict=True)), better="higher", equivalence=0.02)
    for interval in (cost.interval, cost.geometric, cost.arithmetic):
        assert interval.low <= interval.estimate * (1 + 1e-12)
        assert interval.estimate <= interval.high * (1 + 1e-12)
    assert 0 < cost.p_value <= 1
    assert cost.percent.low <= cost.percent.high


@given(st.lists(st.tuples(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12)), min_size=1, max_size=30))
def test_any_finite_values_can_be_compared(blocks):
    cost = compare(*map(list, zip(*blocks, strict=True)), better="lower", equivalence=0.02, looks=8)
    assert cost.low <= cost.typical <= cost.high


def test_differences_can_be_asked_for_where_a_ratio_exists():
    cost = compare([1.0, 2.0, 3.0], [5001.0, 5002.0, 5003.0], better="lower", scale="difference")
    assert cost.scale == "difference" and cost.typical == pytest.approx(5000.0)
    with raises_sentence(ValueError):
        compare([0.0, 1.0], [1.0, 1.0], better="lower", scale="ratio")


# -- contrasts -------------------------------------------------------------------------------------

INTERACTION = Contrast(("neither", "first", "second", "both"), (1.0, -1.0, -1.0, 1.0))
"""Whether two mechanisms cost together what they cost alone."""


def measured(blocks, *ratios, sd=0.0, seed=3):
    """Values of arms that cost so much, in blocks of which each has a drift of its own."""
    rng = np.random.default_rng(seed)
    drift = 940 * np.exp(rng.normal(0, 0.3, blocks))
    return [(drift * ratio * np.exp(rng.normal(0, sd, blocks) if sd else 0)).tolist() for ratio in ratios]


def test_effects_are_of_blocks():
    two = Contrast.between("docker", "native")
    assert two.arms == ("native", "docker")
    assert two.effects([[100, 200], [50, 100]], "ratio") == pytest.approx([math.log(0.5)] * 2)
    assert two.effects([[100, 200], [50, 100]], "difference") == [-50, -100]
    with raises_sentence(ValueError):
        two.effects([[100], [50, 100]], "ratio")
    with pytest.raises(ValueError):
        two.effects([[0], [50]], "ratio")


def test_effects_of_two_arms_are_their_differences_to_the_last_bit():
    baseline, other = noisy(200)
    two = Contrast.between("docker", "native")
    assert two.effects((baseline, other), "difference") == [b - a for a, b in zip(baseline, other, strict=True)]
    logs = [math.log(b) - math.log(a) for a, b in zip(baseline, other, strict=True)]
    assert two.effects((baseline, other), "ratio") == logs


def test_a_comparison_is_the_contrast_of_two_arms():
    sides = noisy(12, 0.8)
    assert Contrast.between("docker", "native").cost(sides, better="higher") == compare(*sides, better="higher")


def test_an_interaction_is_what_two_mechanisms_cost_beyond_each_alone():
    """1.2 and 1.5 alone, 1.98 together: a tenth more than their product, in every block whatever its drift."""
    cost = INTERACTION.cost(measured(12, 1.0, 1.2, 1.5, 1.98), better="lower", equivalence=0.05)
    assert (cost.typical, cost.low, cost.high) == pytest.approx((1.1, 1.1, 1.1))
    assert (cost.blocks, cost.scale, cost.verdict, cost.equivalent) == (12, "ratio", "different", False)
    assert cost.percent.estimate == pytest.approx(10) and cost.p_value == 2 / 2**12
    none = INTERACTION.cost(measured(12, 1.0, 1.2, 1.5, 1.8), better="lower", equivalence=0.05)
    assert none.verdict == "equivalent" and none.typical == pytest.approx(1)


def test_the_estimate_of_several_arms_is_that_of_their_own_effects():
    arms = measured(20, 1.0, 1.2, 1.5, 1.98, sd=0.02)
    logs = [np.log(arm) for arm in arms]
    effects = logs[0] - logs[1] - logs[2] + logs[3]
    cost = INTERACTION.cost(arms, better="lower")
    walsh = [(effects[i] + effects[j]) / 2 for i in range(20) for j in range(i, 20)]
    assert math.log(cost.typical) == pytest.approx(np.median(walsh))
    assert cost.low < 1.1 < cost.high and cost.low > 1.0
    assert cost.p_value == pytest.approx(stats.wilcoxon(effects, method="exact").pvalue)
    assert cost.geometric.estimate == pytest.approx(math.exp(effects.mean()))
    means = [np.mean(arm) for arm in arms]
    assert cost.arithmetic.estimate == pytest.approx(means[0] * means[3] / (means[1] * means[2]))
    assert cost.arithmetic.low < cost.arithmetic.estimate < cost.arithmetic.high


def test_a_contrast_of_few_blocks_or_one_is_that_of_a_cost():
    few = INTERACTION.cost(measured(5, 1.0, 1.2, 1.5, 1.98, sd=0.01), better="lower")
    assert few.exploratory and few.low < few.typical < few.high
    one = INTERACTION.cost(measured(1, 1.0, 1.2, 1.5, 1.98), better="lower")
    assert (one.low, one.high) == (0, math.inf) and one.typical == pytest.approx(1.1)
    assert (one.arithmetic.low, one.arithmetic.high) == (0, math.inf)


def test_where_there_is_no_ratio_it_is_one_of_differences():
    arms = [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0], [3.0, 4.0, 5.0], [9.0, 10.0, 11.0]]
    cost = INTERACTION.cost(arms, better="lower")
    assert (cost.scale, cost.typical, cost.geometric) == ("difference", 5.0, None)
    assert cost.arithmetic == Interval(5.0, 5.0, 5.0)
    with raises_sentence(ValueError):
        INTERACTION.cost([[1e308], [-1e308], [0.0], [1e308]], better="lower")


def test_one_arm_against_the_mean_of_several():
    third = 1 / 3
    mean = Contrast(("a", "b", "c", "d"), (-third, -third, -third, 1.0))
    cost = mean.cost(measured(11, 1.0, 2.0, 4.0, 3.0), better="lower")
    assert cost.typical == pytest.approx(3 / 2)  # the geometric mean of 1, 2 and 4 is 2


def test_arms_that_never_vary_change_nothing():
    baseline, other = noisy(40, 0.8)
    four = Contrast(("a", "b", "c", "d"), (-1.0, 1.0, -1.0, 1.0))
    found = four.cost((baseline, other, [5.0] * 40, [5.0] * 40), better="higher")
    two = compare(baseline, other, better="higher")
    assert (found.typical, found.low, found.high) == pytest.approx((two.typical, two.low, two.high))
    for end in ("estimate", "low", "high"):
        linearised, fieller = getattr(found.arithmetic, end), getattr(two.arithmetic, end)
        assert linearised == pytest.approx(fieller, rel=1e-3)


def test_the_linearised_interval_of_means_covers_as_often_as_it_says():
    rng = np.random.default_rng(11)
    truth, covered = 1.0, 0
    for _ in range(400):
        arms = np.exp(rng.normal(0, 0.1, (4, 12)))
        found = INTERACTION.cost(arms.tolist(), better="lower").arithmetic
        covered += found.low <= truth <= found.high
    assert 0.92 <= covered / 400 <= 0.98


@given(st.lists(st.tuples(*[st.floats(1e-3, 1e6)] * 4), min_size=1, max_size=15))
def test_an_interaction_is_the_difference_of_two_costs(blocks):
    neither, first, second, both = map(list, zip(*blocks, strict=True))
    alone = Contrast.between("first", "neither").effects((neither, first), "ratio")
    beside = Contrast.between("both", "second").effects((second, both), "ratio")
    effects = INTERACTION.effects((neither, first, second, both), "ratio")
    assert effects == pytest.approx([b - a for a, b in zip(alone, beside, strict=True)], abs=1e-9)


def test_arms_without_blocks_by_welch_and_satterthwaite():
    samples = [Sample(10, 1, 5), Sample(12, 2, 8), Sample(11, 1.5, 10), Sample(18, 3, 6)]
    found = INTERACTION.unblocked(samples, 0.95)
    parts = [each.deviation**2 / each.runs for each in samples]
    degrees = sum(parts) ** 2 / sum(p**2 / (each.runs - 1) for p, each in zip(parts, samples, strict=True))
    half = stats.t.ppf(0.975, degrees) * math.sqrt(sum(parts))
    assert (found.estimate, found.low, found.high) == pytest.approx((5, 5 - half, 5 + half))
    doubled = Contrast(("a", "b"), (-2.0, 2.0)).unblocked(samples[:2], 0.95)
    single = Contrast.between("b", "a").unblocked(samples[:2], 0.95)
    assert (doubled.low, doubled.high) == pytest.approx((2 * single.low, 2 * single.high))


@pytest.mark.parametrize(
    ("arms", "weights"),
    [
        (("a",), (0.0,)),
        (("a", "b"), (1.0,)),
        (("a", "b"), (1.0, 1.0)),
        (("a", "b", "c"), (-1.0, 1.0, 0.0)),
        (("a", "b"), (math.nan, 1.0)),
    ],
)
def test_weights_that_make_no_contrast(arms, weights):
    with raises_sentence(ValueError):
        Contrast(arms, weights)


def test_every_arm_needs_its_values():
    with raises_sentence(ValueError):
        INTERACTION.cost([[1.0], [1.0], [2.0, 3.0]], better="lower")
