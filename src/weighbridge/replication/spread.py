"""Mean, standard deviation and coefficient of variation: as published, and of a run's blocks."""

from collections.abc import Iterator
from dataclasses import dataclass

from weighbridge.analysis.results import Analysis, MetricReport
from weighbridge.replication.absent import why_not_measured
from weighbridge.replication.published import Figure, Published, SpreadTable
from weighbridge.statistics.one_sample import Spread, spread

SHARES = {"%": 0.01, "1": 1.0}
"""The units of a printed coefficient of variation."""


@dataclass(frozen=True, slots=True)
class PublishedSpread:
    """What a source prints of one environment, in its own unit; what it does not print is derived from the others."""

    mean: float | None
    deviation: float | None
    variation: float | None
    """A fraction."""
    derived: tuple[str, ...]
    """Which of these are derived: "deviation", "variation"."""


@dataclass(frozen=True, slots=True)
class SpreadRow:
    """One environment: what is published of it, and what a run has."""

    published_as: str
    environment: str
    published: PublishedSpread
    measured: Spread | None
    unit: str
    """Of the measured values."""
    why: str
    """Why nothing is measured; empty where it is."""


@dataclass(frozen=True, slots=True)
class SpreadRows:
    """One table of spreads with its rows."""

    table: SpreadTable
    rows: tuple[SpreadRow, ...]


def spread_rows(analysis: Analysis, study: Published) -> tuple[SpreadRows, ...]:
    """Put the spread of a run's blocks beside the published one. Pure."""
    return tuple(SpreadRows(table, tuple(_rows(analysis, study, table))) for table in study.spreads)


def _rows(analysis: Analysis, study: Published, table: SpreadTable) -> Iterator[SpreadRow]:
    wanted = table.measured
    report = next((each for each in analysis.metrics if _is(each, table)), None)
    for printed, names in (table.environments or study.environments).items():
        for name in names:
            values = analysis.block_values(report, name) if report is not None else ()
            found = spread(values)
            why = why_not_measured(study, analysis, name) if found is None else ""
            if found is None and not why:
                why = f"fewer than two blocks of {wanted.workload} in this run"
            unit = report.unit if report is not None else ""
            yield SpreadRow(printed, name, published_spread(study, table, printed), found, unit, why)


def _is(report: MetricReport, table: SpreadTable) -> bool:
    wanted = table.measured
    return (report.workload, report.metric, report.level.factors) == (
        wanted.workload,
        wanted.metric,
        dict(wanted.level),
    )


def published_spread(study: Published, table: SpreadTable, environment: str) -> PublishedSpread:
    """What is printed of an environment, and what follows: deviation = mean x coefficient of variation."""
    found: dict[str, Figure] = {}
    for figure in study.figures:
        if table.fits(figure) and figure.environment == environment:
            found.setdefault(figure.statistic, figure)
    mean, deviation = (found[name].value if name in found else None for name in ("mean", "stdev"))
    printed = found.get("cv")
    variation = printed.value * SHARES[printed.unit] if printed is not None else None
    derived: tuple[str, ...] = ()
    if deviation is None and mean is not None and variation is not None:
        deviation, derived = mean * variation, ("deviation",)
    elif variation is None and mean and deviation is not None:
        variation, derived = deviation / mean, ("variation",)
    return PublishedSpread(mean, deviation, variation, derived)
