"""Values are compared within one block and attempt; a block counts once, with its first whole attempt."""

from hypothesis import given
from hypothesis import strategies as st

from weighbridge.model.level import Level
from weighbridge.store.blocks import arm_values, complete_blocks
from weighbridge.store.run import Value


def value(block: int, environment: str, number: float = 1.0, *, attempt: int = 0, **changes) -> Value:
    fields = {"workload": "tcp", "level": Level(), "metric": "throughput"} | changes
    return Value(
        1, block, attempt, environment, unit="x", better="higher", value=number, started_at=0.0, flags=(), **fields
    )


def _numbers(values: list[Value]) -> list[tuple[int, float, float]]:
    return [(a.block, a.value, b.value) for a, b in complete_blocks(values, ("native", "docker"))]


def test_each_block_gives_one_pair_in_order():
    values = [value(2, "docker", 4), value(1, "native", 1), value(2, "native", 3), value(1, "docker", 2)]
    assert _numbers(values) == [(1, 1, 2), (2, 3, 4)]


def test_a_missing_side_gives_no_pair():
    values = [value(1, "native"), value(2, "docker"), value(3, "other"), value(4, "native"), value(4, "docker")]
    assert [block for block, _, _ in _numbers(values)] == [4]
    assert _numbers([]) == []


def test_sides_of_different_attempts_are_no_pair():
    assert _numbers([value(1, "native"), value(1, "docker", attempt=1)]) == []


def test_the_first_complete_attempt_counts():
    values = [value(1, "native", 1), value(1, "docker", 2), value(1, "native", 3, attempt=1),
              value(1, "docker", 4, attempt=1), value(1, "native", 5, attempt=2)]  # fmt: skip
    assert _numbers(values) == [(1, 1, 2)]
    assert _numbers(values[::-1]) == [(1, 1, 2)]
    assert _numbers(values[1:]) == [(1, 3, 4)]


def test_a_block_of_several_environments_needs_them_all_in_one_attempt():
    arms = ("native", "first", "second", "both")
    values = [value(block, name, number) for block in (1, 2, 3) for number, name in enumerate(arms)]
    values = [each for each in values if (each.block, each.environment) != (2, "second")]
    values += [value(2, name, 10 + number, attempt=1) for number, name in enumerate(arms)]
    values = [each for each in values if (each.block, each.environment) != (3, "both")]
    assert arm_values(values, arms) == ([0, 10], [1, 11], [2, 12], [3, 13])
    assert arm_values(values, ("both", "native")) == ([3, 3], [0, 0]), "the first attempt of block 2 has these two"
    assert [[each.environment for each in block] for block in complete_blocks(values, arms)] == [[*arms]] * 2
    assert arm_values(values, (*arms, "absent")) == ([], [], [], [], [])


@given(st.sets(st.tuples(st.integers(1, 4), st.integers(0, 2), st.sampled_from(["native", "docker", "other"]))))
def test_any_mix(seen: set[tuple[int, int, str]]):
    values = [value(block, name, attempt=attempt, number=attempt) for block, attempt, name in seen]
    expected = {}
    for block, attempt, name in sorted(seen):
        if name == "native" and (block, attempt, "docker") in seen:
            expected.setdefault(block, attempt)
    assert {block: a for block, a, b in _numbers(values) if a == b} == expected
    assert len(_numbers(values)) == len(expected)
