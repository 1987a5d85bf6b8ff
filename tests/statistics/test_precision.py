"""Stopping on precision; a limited time goes to where a second narrows the intervals most."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from weighbridge.statistics import (
    LOOKS,
    Contender,
    allotted,
    blocks_to_settle,
    blocks_to_target,
    compare,
    decided,
    deciding_half_width,
    error_at,
    half_width_after,
    next_look,
    planned_looks,
    shared,
    smallest_visible_cost,
    visible_effect,
    widened,
)
from weighbridge.statistics.precision import LATEST, OUT_OF_REACH, SOONEST
from weighbridge.statistics.ranks import signed_rank_p_value


def cost(n, sd, ratio=1.0):
    """A cost whose log ratios are evenly spread normal scores."""
    logs = math.log(ratio) + sd * np.linspace(-1.5, 1.5, n)
    return compare([1.0] * n, np.exp(logs).tolist(), better="higher", looks=8)


def test_the_planned_looks():
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


@pytest.mark.parametrize("comparisons", [1, 4, 25])
def test_at_its_width_every_cost_is_decided(comparisons: int):
    width = deciding_half_width(0.03, comparisons, 8)
    effects = stats.norm.ppf((np.arange(1000) + 0.5) / 1000)

    def at(half_width: float, ratio: float):
        sd = math.log1p(half_width) / stats.norm.ppf(0.9825) * math.sqrt(1000 * 3 / math.pi)
        other = ratio * np.exp(sd * effects)
        return compare([1.0] * 1000, other.tolist(), better="lower", equivalence=0.03, looks=8)

    ratios = np.exp(np.linspace(-0.05, 0.05, 41))
    assert at(width, 1.0).half_width == pytest.approx(width, rel=0.1)
    assert all(decided(at(0.9 * width, ratio), comparisons, 8) for ratio in ratios)
    assert not all(decided(at(1.3 * width, ratio), comparisons, 8) for ratio in ratios)
    assert decided(cost(60, 0.2), comparisons, 8), "without a margin there is nothing to decide"


def test_of_one_comparison_it_is_half_of_the_margin():
    assert deciding_half_width(0.03, 1, 8) == pytest.approx(0.016, abs=1e-4)
    assert deciding_half_width(0.03, 4, 8) == pytest.approx(0.014, abs=2e-4)


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


# -- what a comparison can see ------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [6, 10, 60])
@pytest.mark.parametrize("level", [0.05, 0.05 / 12])
def test_a_visible_effect_is_found_in_at_least_four_runs_of_five(blocks: int, level: float):
    """What one run states, another one finds, which has a standard error of its own."""
    rng = np.random.default_rng(blocks)
    stating, finding = rng.normal(0, 1, (2, 4000, blocks))
    stated = np.array([visible_effect(each, blocks, level) for each in errors(stating)])
    t = (finding.mean(axis=1) + stated) / errors(finding)
    assert 0.84 <= np.mean(np.abs(t) > stats.t.isf(level / 2, blocks - 1)) <= 0.95
    assert math.isinf(visible_effect(0.5, 1, 0.05))


def test_an_error_is_the_half_width_of_the_interval_that_the_test_inverts():
    effects = np.random.default_rng(3).normal(1.0, 2.0, 20)
    first, second = np.triu_indices(20)
    walsh = np.sort((effects[first] + effects[second]) / 2)
    found = error_at(effects, 0.01) * stats.t.isf(0.005, 19)
    assert found == pytest.approx((walsh[-38] - walsh[37]) / 2), "the 38th smallest and largest: Hollander and Wolfe"


def test_few_blocks_or_a_level_beyond_the_ranks_have_the_error_of_the_mean():
    effects = [0.0, 1.0, 5.0, 2.0, 1.5, 0.5]
    assert error_at(effects, 0.05) == pytest.approx(stats.sem(effects))
    assert error_at([*effects, *effects], 1e-6) == pytest.approx(stats.sem([*effects, *effects]))
    assert error_at([0.0] * 19 + [1.0], 0.05) == pytest.approx(0.05), "the interval is one value"
    assert math.isinf(error_at([1.0], 0.05))


def test_slow_trials_hardly_change_the_visible_effect_which_is_found_all_the_same():
    """One trial in fifty is slower by a third on average, beside noise of 2%."""
    rng = np.random.default_rng(5)
    slow = np.where(rng.random((2, 600, 40)) < 0.02, rng.exponential(0.3, (2, 600, 40)), 0.0)
    stating, finding = rng.normal(0, 0.02, (2, 600, 40)) + slow
    stated = [visible_effect(error_at(each, 0.05), 40, 0.05) for each in stating]
    found = [signed_rank_p_value(each + shift) <= 0.05 for each, shift in zip(finding, stated, strict=True)]
    assert 0.8 <= np.mean(found) <= 0.95
    low, middle, high = np.quantile(stated, [0.1, 0.5, 0.9])
    assert high < 1.3 * middle and low > 0.7 * middle


def errors(effects: np.ndarray) -> np.ndarray:
    return effects.std(axis=1, ddof=1) / math.sqrt(effects.shape[1])


def test_the_smallest_visible_cost_is_significant_in_four_runs_of_five():
    """By the half-width of one run's interval in another run."""
    rng = np.random.default_rng(4)
    stating, finding = rng.normal(0, 1, (2, 4000, 40))
    critical = stats.t.isf(0.025, 39)
    widths = critical * errors(stating) * math.sqrt(math.pi / 3)
    stated = smallest_visible_cost(1.0, 1.0, 1.0) * widths
    assert 0.775 <= np.mean((finding.mean(axis=1) + stated) / errors(finding) > critical) <= 0.85


def test_after_so_many_blocks_a_cost_of_the_margin_shows():
    margin = math.log(1.03)
    needed = blocks_to_settle(0.02, 10, 0.05, margin)
    assert needed is not None and needed > 10

    def error(blocks: int) -> float:
        return 0.02 * math.sqrt(10 / blocks)

    assert visible_effect(error(needed), needed, 0.05) <= margin
    assert blocks_to_settle(error(needed), needed, 0.05, margin) == needed, "no more are needed then"
    assert blocks_to_settle(error(needed - 1), needed - 1, 0.05, margin) == needed
    assert blocks_to_settle(0.0001, 10, 0.05, margin) == 10
    assert blocks_to_settle(10.0, 10, 0.05, margin) is None


# -- allotments ---------------------------------------------------------------------------------

INF = math.inf


def alike(trial_s: float, needed: float = INF, blocks: int = 10) -> Contender:
    """One open comparison, whose baseline takes as long."""
    return Contender(blocks, (needed,), (trial_s,), trial_s)


def narrowed(contenders: list[Contender], further: list[int]) -> float:
    """By how much the logarithms of all open widths fall."""
    return sum(
        0.5 * math.log(min(each.blocks + more, needed) / each.blocks)
        for each, more in zip(contenders, further, strict=True)
        for needed in each.needed
        if needed > each.blocks
    )


def cost_s(each: Contender, more: int) -> float:
    return sum(each.gain(number)[1] for number in range(more))


def test_equal_times_where_none_gets_there():
    """Of all blocks, those done before too: a block of the one takes 2 s, of the other 8 s."""
    one, other = allotted([alike(1.0), alike(4.0)], 160.0, 1000)
    assert 2 * one + 8 * other == 160
    assert abs((10 + one) * 2 - (10 + other) * 8) <= 8


def test_what_is_precise_enough_gets_no_more():
    assert allotted([alike(1.0, needed=12), alike(1.0)], 100.0, 1000) == [2, 48]
    assert allotted([alike(1.0, needed=12), alike(1.0, needed=11)], 100.0, 1000) == [2, 1]
    assert allotted([alike(1.0)], 100.0, 15) == [5]
    assert allotted([], 100.0, 15) == [] and allotted([alike(1.0)], -1.0, 15) == [0]


def test_a_block_is_cheaper_without_what_has_left():
    one = Contender(10, (11, INF), (5.0, 1.0), 1.0)
    assert one.gain(0)[1] == 7.0 and one.gain(1)[1] == 2.0
    assert one.gain(0)[0] == pytest.approx(math.log(11 / 10)) and one.gain(1)[0] == pytest.approx(
        math.log(12 / 11) / 2
    )
    assert allotted([one], 7.0 + 3 * 2.0, 1000) == [4]


def test_an_expensive_first_block_hides_no_cheap_ones_behind_it():
    """Once the slow comparison is precise enough, blocks of the first workload are the cheapest of all."""
    contenders = [Contender(10, (40, 400), (60.0, 1.0), 1.0), Contender(10, (400,), (4.0,), 4.0)]
    further = allotted(contenders, 3000.0, 1000)
    assert further == [316, 71]
    assert narrowed(contenders, further) == pytest.approx(3.48, abs=0.01)
    assert narrowed(contenders, [29, 150]) == pytest.approx(2.75, abs=0.01), "block by block"


def test_nobody_waits_where_the_time_suffices():
    contenders = [alike(1.0, needed=12), alike(1.0, needed=30)]
    assert shared(allotted(contenders, 1000.0, 1000), contenders, 7) == [7, 7]
    scarce = allotted(contenders, 30.0, 1000)
    assert scarce == [2, 13] and shared(scarce, contenders, 7) == [1, 7]
    assert shared([0, 0], contenders, 7) == [7, 7]


CONTENDERS = st.builds(
    lambda blocks, more, trial_s, base_s: Contender(blocks, tuple(blocks + each for each in more), trial_s, base_s),
    st.integers(2, 30),
    st.lists(st.sampled_from([1, 2, 5, INF]), min_size=1, max_size=1),
    st.tuples(st.floats(0.5, 4)),
    st.floats(0.5, 4),
)
OF_SEVERAL = st.integers(2, 5).flatmap(
    lambda number: st.builds(
        lambda blocks, more, trial_s, base_s: Contender(
            blocks, tuple(blocks + each for each in more), tuple(trial_s), base_s
        ),
        st.integers(2, 30),
        st.lists(st.sampled_from([1, 2, 5, INF]), min_size=number, max_size=number),
        st.lists(st.sampled_from([0.5, 1.0, 4.0, 20.0]), min_size=number, max_size=number),
        st.floats(0.5, 4),
    )
)


@given(
    st.lists(CONTENDERS, min_size=1, max_size=3) | st.lists(CONTENDERS | OF_SEVERAL, min_size=1, max_size=3),
    st.floats(0, 150),
)
@example(
    [Contender(3, (8,), (1.0,), 4.0), Contender(14, (15,), (1.0,), 2.0), Contender(15, (17,), (1.0,), 1.0)], 27.0
)
def test_nothing_else_in_its_time_narrows_more_but_by_a_block_that_did_not_fit(
    contenders: list[Contender], left_s: float
):
    """Blocks are whole: what is taken where a better one did not fit is worth less than that (Dantzig's bound)."""
    further = allotted(contenders, left_s, 1000)
    assert sum(map(cost_s, contenders, further)) <= left_s + 1e-9
    best = narrowed(contenders, further)
    one_more = ([each + (at == number) for at, each in enumerate(further)] for number in range(len(further)))
    most = max(narrowed(contenders, each) for each in one_more)
    for other in product(range(7), repeat=len(contenders)):
        if sum(map(cost_s, contenders, other)) <= left_s:
            assert narrowed(contenders, list(other)) <= max(best, most) + 1e-9


@given(st.lists(CONTENDERS, min_size=1, max_size=4), st.floats(0, 100), st.integers(1, 50))
def test_shares_are_parts_of_the_blocks(contenders: list[Contender], left_s: float, blocks: int):
    parts = shared(allotted(contenders, left_s, 1000), contenders, blocks)
    assert len(parts) == len(contenders) and max(parts) == blocks and min(parts) >= 0


# -- how precise a run will be --------------------------------------------------------------------


def test_a_width_falls_with_the_square_root_of_the_blocks():
    assert half_width_after(0.04, 10, 10) == pytest.approx(0.04)
    assert half_width_after(0.04, 10, 40) == pytest.approx(1.04**0.5 - 1)
    assert blocks_to_target(1.04**2 - 1, 10, 0.0401) == 40
    assert blocks_to_target(0.01, 12, 0.02) == 12 and blocks_to_target(math.inf, 12, 0.02) is None


@given(
    st.floats(1e-4, 10),
    st.integers(2, 500),
    st.floats(1e-3, 0.5),
    st.sampled_from([OUT_OF_REACH, SOONEST, 0.0, LATEST]),
)
def test_the_blocks_to_a_target_are_the_fewest_that_are_forecast_to_have_it(width, blocks, target, spread):
    needed = blocks_to_target(width, blocks, target, spread)
    assert needed is not None and needed >= blocks
    assert half_width_after(width, blocks, needed, spread) <= max(target, width if needed == blocks else 0) * 1.000001
    if needed > blocks and (spread <= 0 or needed > 2 * blocks):
        assert half_width_after(width, blocks, needed - 1, spread) > target * 0.999999


@given(st.floats(1e-3, 10), st.integers(2, 500), st.floats(1e-3, 0.5))
def test_a_favourable_forecast_is_no_later_than_the_likely_one(width, blocks, target):
    spreads = (OUT_OF_REACH, SOONEST, 0.0, LATEST)
    needed = [blocks_to_target(width, blocks, target, spread) for spread in spreads]
    assert needed == sorted(needed)


def test_the_fewer_blocks_the_less_is_out_of_reach():
    """Ten blocks that are three times too wide may still do in 60; of 44 so wide that is out of reach."""
    assert half_width_after(0.06, 10, 60, OUT_OF_REACH) < 0.02 < half_width_after(0.06, 44, 60, OUT_OF_REACH)


def test_a_further_look_widens_the_interval():
    assert widened(0.02, 0.05, 0.05) == pytest.approx(0.02)
    assert math.log1p(widened(0.02, 0.035, 0.0175)) / math.log1p(0.02) == pytest.approx(2.376 / 2.108, abs=0.001)
