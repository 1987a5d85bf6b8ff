"""A run beside the published study that it repeats: per row, both comparisons and whether their direction agrees."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from weighbridge.analysis.conditions import NO_HYPERVISOR, Isolation
from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.model.level import level_label
from weighbridge.replication.absent import Offer, offered, why_impossible, why_not_measured
from weighbridge.replication.pair import Key, judged_rows, report_of
from weighbridge.replication.paired import PairRows, pair_rows
from weighbridge.replication.paired_words import pairs_sentence
from weighbridge.replication.proof import PublishedRow, rows
from weighbridge.replication.published import Compared, Published
from weighbridge.replication.spread import SpreadRows, spread_rows
from weighbridge.report.text.environments import environment_name
from weighbridge.report.text.formatting import NO_INTERVAL, difference_interval
from weighbridge.report.text.metric_names import metric_words
from weighbridge.report.text.verdicts import broke_count, comparison_verdict
from weighbridge.statistics import Interval

Direction = Literal[
    "agrees", "disagrees", "measured inconclusive", "published inconclusive", "hidden", "not measured"
]
DIRECTIONS: dict[Direction, str] = {
    "agrees": "both are different with the same sign, or both are equivalent",
    "disagrees": "both are different with opposite signs, or one is different and the other equivalent",
    "measured inconclusive": "the run proves neither a difference nor equivalence",
    "published inconclusive": "the published figures prove neither by their own spread",
    "hidden": "both sides of the run met the same limit, which hides a difference: no agreement, no disagreement",
    "not measured": "the run has no such comparison",
}
"""Every direction, and what it means."""
FARTHEST_RATIO = 100.0
"""A ratio's limit beyond it is written as lying there: few blocks reach to 10^7."""
INCONCLUSIVE = "inconclusive"
NOT_IN_SIZE = "emulated: not comparable in size"
SUMMARISED = {"agrees": "agrees", "disagrees": "disagrees", "hidden": "hidden", "not measured": "not measured"}
"""Directions that a summary names; the two others are its inconclusive ones."""


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One published comparison beside the measured one."""

    published: PublishedRow
    measured: Comparison | None
    unit: str
    """Of the measured metric."""
    direction: Direction
    why: str
    """Why there is no measured comparison; empty where there is one."""
    isolation: Isolation = NO_HYPERVISOR
    """The hypervisors that the environment was measured in."""
    against_isolation: Isolation = NO_HYPERVISOR
    """Those of what it is compared with."""
    emulated: bool = False
    """Whether the environment or the baseline was measured under emulation: then sizes are not compared, as the
    published figures are of hardware."""

    @property
    def level(self) -> str:
        """The level: ``threads=10``; empty where nothing is swept."""
        return level_label(self.published.level)

    @property
    def name(self) -> str:
        """The environment with the hypervisors that it was measured in, its level, and what it is compared with.

        The latter where that is not the run's baseline.
        """
        own = self.published
        name = environment_name(own.environment, self.isolation if self.measured else NO_HYPERVISOR)
        name = f"{name} / {environment_name(own.against, self.against_isolation)}" if own.against else name
        return f"{name} ({self.level})" if self.level else name

    @property
    def apart(self) -> bool:
        """Whether the published figure, or its whole interval, lies outside of the measured one, not under emulation.

        It may be so whatever the direction: two costs of the same sign may be of different size.
        """
        cost, own = self.measured.cost if self.measured else None, self.published
        compared = own.compared
        if cost is None or self.emulated or cost.blocks < 2 or cost.scale != compared.scale:
            return False
        if cost.scale == "difference" and self.unit != compared.shown_unit:
            return False
        low, high = (own.interval.low, own.interval.high) if own.interval else (own.effect, own.effect)
        return high < cost.low or low > cost.high

    @property
    def words(self) -> str:
        """The direction as people read it, with what weakens it."""
        weak = []
        if self.measured is not None and self.measured.hidden is not None:
            verdict = comparison_verdict(self.measured)
            return f"{verdict} ({NOT_IN_SIZE})" if self.emulated else verdict
        if self.measured is not None and self.measured.exploratory:
            weak.append("exploratory")
        if self.direction in ("agrees", "disagrees") and self.published.proof == "sign only":
            weak.append("sign only")
        if self.measured is not None and self.emulated:
            weak.append(NOT_IN_SIZE)
        return f"{self.direction} ({', '.join(weak)})" if weak else self.direction


@dataclass(frozen=True, slots=True)
class Table:
    """One published table with its rows."""

    compared: Compared
    rows: tuple[ComparedRow, ...]


@dataclass(frozen=True, slots=True)
class Replication:
    """A whole run beside its published study."""

    study: Published
    analysis: Analysis
    tables: tuple[Table, ...]
    spreads: tuple[SpreadRows, ...] = ()
    """How far runs differ, as published and in the run."""
    pairs: tuple[PairRows, ...] = ()
    """Paired differences with their t-test."""

    @property
    def counts(self) -> dict[Direction, int]:
        """How many rows have each direction."""
        found = Counter(row.direction for table in self.tables for row in table.rows)
        return {direction: found[direction] for direction in DIRECTIONS}

    @property
    def summary(self) -> list[tuple[str, str]]:
        """A line for each environment: ``agrees 3, disagrees 1, inconclusive 2, not measured 4``."""
        found: dict[str, Counter[str]] = {}
        for row in (row for table in self.tables for row in table.rows):
            found.setdefault(row.published.environment, Counter())[SUMMARISED.get(row.direction, INCONCLUSIVE)] += 1
        order = ("agrees", "disagrees", INCONCLUSIVE, "hidden", "not measured")
        return [
            (name, ", ".join(f"{each} {counts[each]}" for each in order if counts[each] or each in order[:3]))
            for name, counts in found.items()
        ]

    def name(self, environment: str) -> str:
        """An environment of the run with the hypervisors that it was measured in."""
        return environment_name(environment, self.analysis.isolation.get(environment, NO_HYPERVISOR))

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        told = ", ".join(f"{direction} {number}" for direction, number in self.counts.items() if number)
        if self.pairs:
            return pairs_sentence(self.pairs)
        rows = [row for table in self.tables for row in table.rows]
        measured, apart = [row for row in rows if row.measured is not None], sum(row.apart for row in rows)
        emulated = sum(row.emulated for row in measured)
        compared = len(measured) - emulated
        size = f" In size, {apart} of {compared} published figures lie outside of the measured interval."
        size = size if compared else ""
        if emulated:
            size += f" {emulated} measured under emulation: not comparable in size with figures of hardware."
        with_ = "" if any(row.published.against for row in rows) else f" with {self.study.baseline}"
        return f"{len(rows)} published comparisons{with_}; rows by direction: {told}.{size}"


def replication(analysis: Analysis, study: Published, offers: Sequence[Offer] = ()) -> Replication:
    """Put a run's analysis beside the published figures. Pure. ``offers``: what the study's profiles measure.

    Measured verdicts are of a family of its own, of exactly the comparisons that the source publishes.
    """
    published = [(compared, tuple(rows(study, compared, analysis.equivalence))) for compared in study.comparisons]
    measured = judged_rows(analysis, published)
    tables = [
        Table(compared, tuple(_row(study, analysis, compared, row, offers, measured) for row in found))
        for compared, found in published
    ]
    return Replication(study, analysis, tuple(tables), spread_rows(analysis, study), pair_rows(analysis, study))


def _row(
    study: Published, analysis: Analysis, compared: Compared, row: PublishedRow, offers: Sequence[Offer],
    measured: Mapping[Key, Comparison],
) -> ComparedRow:  # fmt: skip
    here = [report for report in analysis.metrics if report.workload == compared.measured.workload]
    report, both = report_of(analysis, compared, row), (row.environment, row.against or analysis.baseline)
    comparison = measured.get((report.label, report.metric, *both)) if report else None
    if comparison is None or comparison.cost is None:
        broke = _broke(analysis, compared, row)
        impossible = next(filter(None, (why_impossible(study, analysis, name) for name in both)), "")
        absent = next(filter(None, (why_not_measured(study, analysis, name) for name in both)), "")
        other = (absent or _why(compared, here, report)) + offered(compared, row, offers, absent=not here)
        why = broke or impossible or other
        return ComparedRow(row, None, report.unit if report else "", "not measured", why)
    assert report is not None
    hidden = comparison.verdict == "hidden"
    way: Direction = "hidden" if hidden else direction(row, comparison, analysis.equivalence or 0.0)
    sides = [analysis.isolation.get(name, NO_HYPERVISOR) for name in both]
    emulated = any(side.emulated for side in sides)
    return ComparedRow(row, comparison, report.unit, way, "", sides[0], sides[1], emulated)


def _broke(analysis: Analysis, compared: Compared, row: PublishedRow) -> str:
    """What broke under this level's load, the environment or the baseline; empty where neither did."""
    level, workload = {**compared.measured.level, **row.level}, compared.measured.workload
    here = {name: broke for (mine, measured, name), broke in analysis.broken.items()
            if mine == workload and measured.factors == level}  # fmt: skip
    return "; ".join(
        f"{name} {broke_count(here[name])}: {here[name].reason}"
        for name in (row.environment, row.against or analysis.baseline)
        if name in here
    )


def _why(compared: Compared, here: list[MetricReport], report: MetricReport | None) -> str:
    """Why a published row has no measured comparison although the run has both environments."""
    wanted = compared.measured
    if not here:
        return f"the workload {wanted.workload} has no finished trial in this run"
    if report is None:
        if any(each.metric == wanted.metric for each in here):
            return "this level is not in the run"
        return f"{wanted.workload} has no {metric_words(wanted.metric)} in this run"
    return "no block has both values"


def direction(row: PublishedRow, measured: Comparison, margin: float) -> Direction:
    """Whether a measured comparison has the direction of the published one.

    Where one is different and the other equivalent they disagree, unless the different one's own estimate lies within
    ``margin``: then it does not contradict the other, and is inconclusive.
    """
    cost, proof, verdict = measured.cost, row.proof, measured.verdict
    if cost is None or verdict == "inconclusive":
        return "measured inconclusive"
    if proof == "inconclusive" or (proof == "sign only" and (row.sign == 0 or verdict == "equivalent")):
        return "published inconclusive"
    if "equivalent" not in (verdict, proof):  # both are different
        none = 1.0 if cost.scale == "ratio" else 0.0
        return "agrees" if (cost.typical > none) - (cost.typical < none) == row.sign else "disagrees"
    if verdict != proof and verdict == "equivalent":
        return "published inconclusive" if _small(row.effect, row.compared.scale, margin) else "disagrees"
    if verdict != proof:
        return "measured inconclusive" if _small(cost.typical, cost.scale, margin) else "disagrees"
    return "agrees"


def _small(effect: float, scale: str, margin: float) -> bool:
    return scale == "ratio" and effect > 0 and abs(math.log(effect)) <= math.log1p(margin)


# -- as people read it ----------------------------------------------------------------


def published_text(row: PublishedRow) -> str:
    """The published comparison: ``1.131 [1.092, 1.172]``, a ratio, or a difference with its unit."""
    unit = row.compared.shown_unit
    if row.compared.scale == "ratio":
        return ratio_text(row.interval) if row.interval else f"{row.effect:.3f}"
    interval = row.interval or Interval(row.effect, row.effect, row.effect)
    text = difference_interval(interval, unit)
    return text if row.interval else text.split(" [")[0]


def measured_text(row: ComparedRow) -> str:
    """The measured comparison in the same form; why there is none where there is none."""
    cost = row.measured.cost if row.measured else None
    if cost is None:
        return row.why
    return ratio_text(cost.interval) if cost.scale == "ratio" else difference_interval(cost.interval, row.unit)


def ratio_text(ratio: Interval) -> str:
    """A ratio with its limits; a single block has none, and says so."""
    if ratio.low <= 0 and math.isinf(ratio.high):
        return f"{ratio.estimate:.3f} {NO_INTERVAL}"
    low, high = (
        f"{each:.3f}" if each <= FARTHEST_RATIO else f">{FARTHEST_RATIO:.0f}" for each in (ratio.low, ratio.high)
    )
    return f"{ratio.estimate:.3f} [{low}, {high}]"
