"""Paired differences with their t-test: as published, and of a run's blocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from weighbridge.analysis.results import Analysis, Comparison, MetricReport
from weighbridge.replication.absent import why_not_measured
from weighbridge.replication.pair import compare_pair
from weighbridge.replication.published import PAIRED, PairTable, Published
from weighbridge.statistics.paired import PairedTest, paired_test
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT

Agreement = Literal[
    "sign and significance", "sign", "significance", "neither", "sign, in too few blocks",
    "other sign, in too few blocks", "not measured",
]  # fmt: skip
"""Of less than `MIN_BLOCKS_VERDICT` pairs a test is hardly ever significant: that agrees with nothing."""
SIGNIFICANT = 0.05
"""The level at which the published study calls a difference significant, and this table both."""


@dataclass(frozen=True, slots=True)
class PublishedPair:
    """What a source prints of one difference: mean and standard deviation, t and p."""

    mean: float
    deviation: float
    t: float
    p: float


@dataclass(frozen=True, slots=True)
class PairRow:
    """One difference of two environments: as published, and what a run has."""

    first: str
    second: str
    published: PublishedPair
    measured: PairedTest | None
    judged: Comparison | None
    """The comparison of the two by the run's own rules: a ratio with its interval and its verdict."""
    unit: str
    """Of the measured values."""
    why: str
    """Why nothing is measured; empty where it is."""

    @property
    def agreement(self) -> Agreement:
        """What the measured test has in common with the published one."""
        here = self.measured
        if here is None:
            return "not measured"
        sign = here.mean * self.published.mean > 0
        if here.pairs < MIN_BLOCKS_VERDICT:
            return "sign, in too few blocks" if sign else "other sign, in too few blocks"
        significant = here.p is not None and here.p < SIGNIFICANT
        alike = significant == (self.published.p < SIGNIFICANT)
        if sign:
            return "sign and significance" if alike else "sign"
        return "significance" if alike else "neither"


@dataclass(frozen=True, slots=True)
class PairRows:
    """One table of differences with its rows."""

    table: PairTable
    rows: tuple[PairRow, ...]


def pair_rows(analysis: Analysis, study: Published) -> tuple[PairRows, ...]:
    """Put the paired differences of a run's blocks beside the published ones. Pure."""
    return tuple(PairRows(table, tuple(_rows(analysis, study, table))) for table in study.pairs)


def _rows(analysis: Analysis, study: Published, table: PairTable) -> Iterator[PairRow]:
    report = next((each for each in analysis.metrics if _is(each, table)), None)
    for printed, (first, second) in table.pairs.items():
        test = judged = None
        if report is not None:
            mine, other = (analysis.by_block(report, name) for name in (first, second))
            both = sorted(mine.keys() & other.keys())
            test = paired_test([mine[block] for block in both], [other[block] for block in both])
            judged = compare_pair(analysis, report, first, second)
        why = ""
        if test is None:
            absent = next(filter(None, (why_not_measured(study, analysis, name) for name in (first, second))), "")
            why = absent or f"fewer than two blocks of {table.measured.workload} at this level in this run"
        own = published_pair(study, table, printed)
        yield PairRow(first, second, own, test, judged, report.unit if report else "", why)


def _is(report: MetricReport, table: PairTable) -> bool:
    wanted = table.measured
    return (report.workload, report.metric, report.level.factors) == (
        wanted.workload,
        wanted.metric,
        dict(wanted.level),
    )


def published_pair(study: Published, table: PairTable, printed: str) -> PublishedPair:
    """The printed figures of a difference (``docker-volume - nfs-sync``). KeyError where one is missing."""
    found = {f.statistic: f.value for f in study.figures if table.fits(f) and f.environment == printed}
    mean, deviation, t, p = (found[statistic] for statistic in PAIRED)
    return PublishedPair(mean, deviation, t, p)
