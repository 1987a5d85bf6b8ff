"""Which values are compared with which: those of several environments from one block and one attempt."""

from collections.abc import Iterable, Sequence

from weighbridge.store.run import Value


def complete_blocks(values: Iterable[Value], environments: Sequence[str]) -> list[tuple[Value, ...]]:
    """Return the values of one (workload, level, metric) block by block, each block's in the environments' order.

    A block that was run again counts once: with its first attempt in which every one of the environments has a value.
    What another environment's failure made run again does not replace what was measured.
    """
    arms: dict[str, dict[tuple[int, int], Value]] = {name: {} for name in environments}
    for value in values:
        if value.environment in arms:
            arms[value.environment][value.block, value.attempt] = value
    first: dict[int, tuple[Value, ...]] = {}
    for place in sorted(set.intersection(*(set(each) for each in arms.values()))):
        if place[0] not in first:
            first[place[0]] = tuple(arms[name][place] for name in environments)
    return list(first.values())


def arm_values(values: Iterable[Value], environments: Sequence[str]) -> tuple[list[float], ...]:
    """Return each environment's numbers in those blocks, in the environments' order; empty without such a block."""
    blocks = complete_blocks(values, environments)
    return tuple([block[place].value for block in blocks] for place in range(len(environments)))
