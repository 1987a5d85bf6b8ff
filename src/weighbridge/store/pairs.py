"""Which values are compared with which: the baseline's and an environment's from the same block."""

from collections.abc import Iterable
from dataclasses import dataclass

from weighbridge.model.level import Level
from weighbridge.store.run import Value


@dataclass(frozen=True, slots=True)
class Pair:
    """The two values of one block."""

    block: int
    baseline: Value
    other: Value


def metrics(values: Iterable[Value]) -> list[tuple[str, Level, str]]:
    """Each (workload, level, metric) that has values, in the order in which they first appeared."""
    return list(dict.fromkeys((value.workload, value.level, value.metric) for value in values))


def pairs(values: Iterable[Value], baseline: str, environment: str) -> list[Pair]:
    """The pairs of one (workload, level, metric), by block.

    A block that was run again counts once: with its first attempt in which both sides have a value. What another
    environment's failure made run again does not replace what was measured.
    """
    sides: dict[str, dict[tuple[int, int], Value]] = {baseline: {}, environment: {}}
    for value in values:
        if value.environment in sides:
            sides[value.environment][value.block, value.attempt] = value
    first: dict[int, Pair] = {}
    for block, attempt in sorted(sides[baseline].keys() & sides[environment].keys()):
        if block not in first:
            first[block] = Pair(block, sides[baseline][block, attempt], sides[environment][block, attempt])
    return list(first.values())
