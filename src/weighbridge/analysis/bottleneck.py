"""Limits of trials on both sides of a comparison that hide a difference between them.

A full cable, or a generator on another machine without spare CPU, gives both sides the same result whatever the
environment costs. A requested rate that was met hides only rates; latency, jitter and loss still belong to the
environment. CPU inside the environment, its quota and its disks show a cost. Resource use is never hidden.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from weighbridge.model.flag import BOTTLENECKS, Flag, FlagCode

HIDES_ALL = frozenset({FlagCode.CABLE, FlagCode.GENERATOR})
HIDES_RATES = frozenset({FlagCode.ASKED_RATE})
MOST = 0.5
"""The share of each side's trials that must have met a limit."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The limit that most trials of both sides met."""

    code: FlagCode
    share: float
    """Median share of the limit that was used, as a fraction."""
    rate: float | None
    """Median of the limit itself in ``unit``, if it is a rate."""
    unit: str
    trials: int
    """The number of trials that met it."""
    total: int

    @property
    def kind(self) -> str:
        """``cable``, ``asked-rate`` or ``generator``."""
        return self.code.removeprefix("bottleneck-")


def is_rate(unit: str) -> bool:
    """Return whether a metric is an amount per second, which a requested rate determines."""
    return unit.endswith("/s")


def limit_of(flags: Sequence[Flag]) -> Flag | None:
    """Return the bottleneck among the flags of one trial; None in runs from before it was recorded."""
    return next((flag for flag in flags if flag.code in BOTTLENECKS), None)


def shared_limit(first: Sequence[Flag | None], second: Sequence[Flag | None], unit: str) -> Bottleneck | None:
    """Return the limit that more than half of each side's trials met, if it hides a metric in ``unit``.

    Sides with different limits are not hidden: their difference is visible.
    """
    (one, other) = (limit_of_most(side, unit) for side in (first, second))
    if one is None or other is None or one[0] != other[0]:
        return None
    code = one[0]
    met = [flag for flag in (*first, *second) if flag is not None and flag.code == code]
    rates = [flag.figures["rate"] for flag in met if "rate" in flag.figures]
    return Bottleneck(
        code, median(flag.figures.get("share", 1.0) for flag in met), median(rates) if rates else None,
        "bit/s" if code == FlagCode.CABLE else met[0].text, len(met), len(first) + len(second),
    )  # fmt: skip


def limit_of_most(side: Sequence[Flag | None], unit: str) -> tuple[FlagCode, int] | None:
    """Return the limit of a metric in ``unit`` in more than half of a side's trials, and in how many."""
    hiding = HIDES_ALL | HIDES_RATES if is_rate(unit) else HIDES_ALL
    met = Counter(flag.code for flag in side if flag is not None and flag.code in hiding)
    for code, trials in met.most_common(1):
        if trials > MOST * len(side):
            return FlagCode(code), trials
    return None


@dataclass(frozen=True, slots=True)
class LimitCounts:
    """The number of good trials, out of ``total``, that reached each kind of bottleneck; unknown for some."""

    by_kind: Mapping[str, int]
    total: int


def counts(limits: Sequence[Flag | None]) -> LimitCounts:
    """Return how many trials reached each kind of bottleneck."""
    kinds = (flag.code.removeprefix("bottleneck-") for flag in limits if flag is not None)
    return LimitCounts(Counter(kinds), len(limits))
