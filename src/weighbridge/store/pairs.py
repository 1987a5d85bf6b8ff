"""Which values are compared with which: the baseline's and an environment's from the same block."""

from collections.abc import Iterable
from dataclasses import dataclass

from weighbridge.store.run import Value


@dataclass(frozen=True, slots=True)
class Pair:
    """The two values of one block."""

    block: int
    baseline: Value
    other: Value


def metrics(values: Iterable[Value]) -> list[tuple[str, str, str]]:
    """Each (workload, level, metric) that has values, in the order in which they first appeared."""
    return list(dict.fromkeys((value.workload, value.level, value.metric) for value in values))


def pairs(values: Iterable[Value], baseline: str, environment: str) -> list[Pair]:
    """The pairs of one (workload, level, metric), by block.

    A block that was run again counts once: with its first attempt in which both sides have a value. What another
    environment's failure made run again does not replace what was measured.
    """
    by_attempt: dict[tuple[int, int], dict[str, Value]] = {}
    for value in values:
        by_attempt.setdefault((value.block, value.attempt), {})[value.environment] = value
    first: dict[int, Pair] = {}
    for (block, _), sides in sorted(by_attempt.items()):
        if baseline in sides and environment in sides:
            first.setdefault(block, Pair(block, sides[baseline], sides[environment]))
    return list(first.values())
