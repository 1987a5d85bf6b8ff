"""Selects the values to compare: from several environments, one block and one attempt."""

from collections.abc import Iterable, Sequence

from weighbridge.store.run import Value


def complete_blocks(values: Iterable[Value], environments: Sequence[str]) -> list[tuple[Value, ...]]:
    """Return the values of one (workload, level, metric) block by block, in the order of the environments.

    A block that was repeated counts once: by its first attempt with a value of every environment. A repetition
    because of another environment's failure does not replace values.
    """
    arms: dict[str, dict[tuple[int, int], Value]] = {name: {} for name in environments}
    for value in values:
        arm = arms.get(value.environment)
        if arm is not None:
            arm[value.block, value.attempt] = value
    first: dict[int, tuple[Value, ...]] = {}
    in_order = [arms[name] for name in environments]
    for place in sorted(set(in_order[0]).intersection(*in_order[1:])):
        if place[0] not in first:
            first[place[0]] = tuple([arm[place] for arm in in_order])
    return list(first.values())


def arm_values(values: Iterable[Value], environments: Sequence[str]) -> tuple[list[float], ...]:
    """Return each environment's numbers in `complete_blocks`, in the given order; empty without such a block."""
    blocks = complete_blocks(values, environments)
    return tuple([block[place].value for block in blocks] for place in range(len(environments)))
