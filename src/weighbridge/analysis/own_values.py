"""The environments' own values in two runs: absolute rates, which no block protects from what changed in between.

Costs of two runs are each made inside blocks, so that a machine that is slower today slows both sides. An absolute
rate has nothing of that: two runs are "all of A, then all of B". So rates are compared only where the facts of the
machine agree and the A/A arms of both runs hold, and then they get an interval, but no verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from weighbridge.analysis.changed_facts import FactChange
from weighbridge.analysis.compared_run import ComparedRun
from weighbridge.analysis.comparisons import per_block, scale
from weighbridge.analysis.results import MetricReport
from weighbridge.statistics import Interval, between
from weighbridge.statistics.sample_size import MIN_BLOCKS_INTERVAL


class WhyNot(StrEnum):
    """Why absolute rates are not compared."""

    MACHINE = "machine"
    """Facts of the machine differ."""
    UNTRUSTED = "untrusted"
    """A run's A/A arm shows a cost where there is none."""
    NOT_KNOWN = "not-known"
    """A run has no A/A arm, or too few blocks of it."""


@dataclass(frozen=True, slots=True)
class WhyNoOwnValues:
    """A reason; ``about`` are the facts that differ, or the runs that are not trusted."""

    reason: WhyNot
    about: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OwnValues:
    """One environment's own values of a metric in both runs: medians in its unit, and the shift between them.

    ``worsening``: positive is worse, in percent, or in the metric's unit by difference; None with too few blocks.
    """

    environment: str
    before: float
    after: float
    worsening: Interval | None
    scale: str
    blocks: tuple[int, int]


def why_no_own_values(
    first: ComparedRun, second: ComparedRun, facts: Sequence[FactChange]
) -> tuple[WhyNoOwnValues, ...]:
    """Give the reasons for which absolute rates of two runs cannot be compared; empty where they can."""
    runs = first, second
    found = []
    if machine := tuple(dict.fromkeys(each.fact for each in facts if each.of_machine)):
        found.append(WhyNoOwnValues(WhyNot.MACHINE, machine))
    if shifted := tuple(run.name for run in runs if run.analysis.trust.trusted is False):
        found.append(WhyNoOwnValues(WhyNot.UNTRUSTED, shifted))
    if unknown := tuple(run.name for run in runs if run.analysis.trust.trusted is None):
        found.append(WhyNoOwnValues(WhyNot.NOT_KNOWN, unknown))
    return tuple(found)


def own_values(
    first: ComparedRun, second: ComparedRun, before: MetricReport, after: MetricReport
) -> tuple[OwnValues, ...]:
    """Give the own values of every environment that both runs have, the baseline first."""
    baseline = first.analysis.baseline
    theirs = {row.environment for row in after.comparisons if not row.aa}
    names = [baseline, *(row.environment for row in before.comparisons if row.environment in theirs and not row.aa)]
    return tuple(found for name in names if (found := _of(first, second, before, after, name)) is not None)


def _of(
    first: ComparedRun, second: ComparedRun, before: MetricReport, after: MetricReport, environment: str
) -> OwnValues | None:
    key = before.workload, before.level, before.metric
    sides = [per_block(run.values.get(key, ()), environment) for run in (first, second)]
    if before.unit != after.unit or not all(sides):
        return None
    positive = min(map(min, sides)) > 0
    on = scale(before.metric, before.unit) or ("ratio" if positive else "difference")
    on = on if positive else "difference"
    worsening = None
    if min(map(len, sides)) >= MIN_BLOCKS_INTERVAL:
        values = [between.effects([1.0] * len(side), side, "ratio") if on == "ratio" else side for side in sides]
        shift = between.change(*values, better=before.better, scale=on, allowance=0.0)
        worsening = shift.worsening
    blocks = len(sides[0]), len(sides[1])
    return OwnValues(environment, median(sides[0]), median(sides[1]), worsening, on, blocks)
