"""A limited time goes to where a second narrows the intervals most."""

import math
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weighbridge.statistics import Contender, allotted, shared

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


@given(st.lists(CONTENDERS, min_size=1, max_size=3), st.floats(0, 30))
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
