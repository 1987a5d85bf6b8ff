"""Which range of subordinate ids a user is told to ask for."""

from hypothesis import given
from hypothesis import strategies as st

from weighbridge.linux.subordinate_ids import first_free

RANGES = st.lists(st.tuples(st.integers(0, 600_000), st.integers(0, 300_000)))


def test_the_first_range_that_is_free_in_both_files():
    assert first_free([]) == range(100_000, 165_536)
    assert first_free(["a:100000:65536\n", "b:165536:65536\n"]) == range(231_072, 296_608)
    assert first_free(["a:165536:65536\n"]) == range(100_000, 165_536), "a gap that is large enough"
    assert first_free(["a:165535:1\n", "a:100000:1\n"]) == range(165_536, 231_072), "one that is too small"


def test_lines_that_are_none_of_the_file_are_passed_over():
    assert first_free(["\n# a comment\na:x:1\na:1\n:::\n", "\0"])[0] == 100_000


@given(RANGES, RANGES)
def test_it_overlaps_nobodys(users: list[tuple[int, int]], groups: list[tuple[int, int]]):
    texts = ["".join(f"a:{first}:{count}\n" for first, count in each) for each in (users, groups)]
    free = first_free(texts)
    assert len(free) == 65_536 and free[0] >= 100_000
    for first, count in (*users, *groups):
        assert count == 0 or first + count <= free[0] or first > free[-1]


@given(st.text())
def test_any_text_gives_a_range(text: str):
    assert len(first_free([text])) == 65_536
