"""What limited the trials of both sides of a comparison, where that hides a difference between them.

A full cable, and a generator on another machine that ran out of CPU, give both sides the same result whatever
the environment costs. A rate that was asked for and met does so with rates only: its latency, jitter and loss are the
environment's own. The CPU of what is inside the environment, its quota and its disks show a cost. Resource use is
never hidden.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from weighbridge.model.flag import BOTTLENECKS, Flag, FlagCode

HIDES_ALL = frozenset({FlagCode.CABLE, FlagCode.GENERATOR})
HIDES_RATES = frozenset({FlagCode.ASKED_RATE})
MOST = 0.5
"""Share of the trials of each side that have to have met a limit."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The limit that most trials of both sides met."""

    code: FlagCode
    share: float
    """Median share of the limit that was used, as a fraction."""
    rate: float | None
    """Median of the limit itself in ``unit``, where it is a rate."""
    unit: str
    trials: int
    """How many trials met it."""
    total: int

    @property
    def kind(self) -> str:
        """``cable``, ``asked-rate`` or ``generator``."""
        return self.code.removeprefix("bottleneck-")


def is_rate(unit: str) -> bool:
    """Whether a metric is so much per second: what a rate that was asked for decides."""
    return unit.endswith("/s")


def limit_of(flags: Sequence[Flag]) -> Flag | None:
    """The bottleneck among the flags of one trial; None in runs of before there were any."""
    return next((flag for flag in flags if flag.code in BOTTLENECKS), None)


def shared_limit(first: Sequence[Flag | None], second: Sequence[Flag | None], unit: str) -> Bottleneck | None:
    """Give the one limit that more than half of the trials of each side met, where it hides a metric in ``unit``.

    A side that met another limit than the other one is no better known for that: their difference shows.
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
    """What limited more than half of one side's trials so that a metric in ``unit`` is the limit's, and how many."""
    hiding = HIDES_ALL | HIDES_RATES if is_rate(unit) else HIDES_ALL
    met = Counter(flag.code for flag in side if flag is not None and flag.code in hiding)
    for code, trials in met.most_common(1):
        if trials > MOST * len(side):
            return FlagCode(code), trials
    return None


@dataclass(frozen=True, slots=True)
class LimitCounts:
    """In how many ``of`` some good trials each kind of bottleneck was reached; in some nothing may be known of it."""

    by_kind: Mapping[str, int]
    total: int


def counts(limits: Sequence[Flag | None]) -> LimitCounts:
    """Return in how many of some trials each kind of bottleneck was reached."""
    kinds = (flag.code.removeprefix("bottleneck-") for flag in limits if flag is not None)
    return LimitCounts(Counter(kinds), len(limits))
