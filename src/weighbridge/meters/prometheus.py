"""Queries a Prometheus server for the series of a trial's time, between trials, and keeps them like other series.

A trial keeps its measurements even if the server fails. Missing answers become flags.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from weighbridge.errors import StudyError, Unavailable
from weighbridge.meters.meter import MeterFailed
from weighbridge.meters.prometheus_api import (
    ANSWER_S,
    Ask,
    QueriedSeries,
    QueryRefused,
    Span,
    clock,
    connection,
    fresh_series,
    last_scrape,
)
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.study import Prometheus
from weighbridge.model.trial import PROMETHEUS, Series, TrialRecord

MOST_SERIES = 50
"""The largest number of series of a query, because every trial keeps them."""
ALL_QUERIES_S = 2 * ANSWER_S
"""The time limit for the queries of one trial, in seconds. Later answers become a flag."""
MOST_STEPS = 10_000
"""The largest number of values in an answer. The server refuses more than 11,000."""
TRY_S = 30
"""Seconds before the run that the first try of its queries covers."""
SHOWN_GAPS = 3

Open = Callable[[str], AbstractContextManager[Ask]]


@dataclass(frozen=True, slots=True)
class Watched:
    """A study's Prometheus server."""

    options: Prometheus
    open: Open = connection

    def require(self) -> list[str]:
        """Try the server and every query. Return notes for the user before the run.

        Raises Unavailable if the server cannot be used, and StudyError if it refuses a query.
        """
        try:
            with self.open(self.options.url) as ask:
                self._same_time(ask)
                return [note for name in self.options.queries for note in self._query(ask, name)]
        except MeterFailed as failure:
            problem = f"Prometheus at {self.options.url}: {failure}"
            raise Unavailable(f"{problem}; fix that, or remove 'prometheus' from the study") from failure

    def _same_time(self, ask: Ask) -> None:
        """Raise MeterFailed if the server's clock, which dates its samples, differs from this machine's."""
        before = time.time()
        theirs = clock(ask)
        ahead = theirs - before if theirs < before else max(0.0, theirs - time.time())
        if abs(ahead) > max(1.0, self.options.step):
            way = "ahead of" if ahead > 0 else "behind"
            raise MeterFailed(
                f"its clock is {abs(ahead):.0f} s {way} the clock of this machine: synchronise both with NTP"
            )

    def _query(self, ask: Ask, name: str) -> list[str]:
        now, step = time.time(), self.options.step
        span = Span(now - max(TRY_S, 5 * step), now, step)
        try:
            series = fresh_series(ask, self.options.queries[name].query, span, {})
        except QueryRefused as refused:
            raise StudyError(f"prometheus: the server rejected the query '{name}': {refused}") from refused
        if len(series) > MOST_SERIES:
            problem = f"prometheus: the query '{name}' returns {len(series):,} series, more than {MOST_SERIES}"
            raise StudyError(f"{problem}: aggregate them, as in sum by (device) (...)")
        if not any(each.values for each in series):
            return [f"Prometheus currently has no samples of {name}"]
        return []

    def completed(self, record: TrialRecord) -> TrialRecord:
        """Return the record of a finished trial with the server's series, and flags for missing values."""
        series: list[Series] = []
        flags: list[Flag] = []
        deadline = time.monotonic() + ALL_QUERIES_S
        lasted = record.duration_s
        span = Span(record.started_at, record.started_at + lasted, max(self.options.step, lasted / MOST_STEPS))
        scraped: Mapping[float, float] | None = None
        with self.open(self.options.url) as ask:
            for name in self.options.queries:
                if time.monotonic() > deadline:
                    flags.append(_flag(f"no samples of {name}: the server was too slow"))
                    continue
                try:
                    scraped = last_scrape(ask, span) if scraped is None else scraped
                    query_series, query_flags = self._read_query(ask, name, span, scraped)
                except MeterFailed as failure:
                    flags.append(_flag(f"no samples of {name}: {failure}"))
                    continue
                series += query_series
                flags += query_flags
        return replace(record, series=(*record.series, *series), flags=(*record.flags, *flags))

    def _read_query(
        self, ask: Ask, name: str, span: Span, scraped: Mapping[float, float]
    ) -> tuple[list[Series], list[Flag]]:
        """Return the series of one query in a trial's time, and flags."""
        query = self.options.queries[name]
        series = fresh_series(ask, query.query, span, scraped)
        nonempty = [each for each in series[:MOST_SERIES] if each.values]
        flags = [_flag(f"no samples of {name} {gap}") for gap in _missing(nonempty, span)]
        if len(series) > MOST_SERIES:
            flags.append(_flag(f"{len(series):,} series of {name}; only {MOST_SERIES} are kept"))
        return [_series(name, query.unit, each, span.start) for each in nonempty], flags


def _flag(text: str) -> Flag:
    return Flag(FlagCode.PROMETHEUS, text=text)


def _series(name: str, unit: str, queried: QueriedSeries, started_at: float) -> Series:
    points = sorted(queried.values.items())
    at_s = tuple(round(moment - started_at, 3) for moment, _ in points)
    return Series(
        PROMETHEUS, f"{_promql_name(name, queried.labels)} {unit}", at_s, tuple(float(f"{v:.8g}") for _, v in points)
    )


def _promql_name(name: str, labels: Mapping[str, str]) -> str:
    """Return a name with its labels in PromQL: ``reads{device="sda"}``, or the name if there are no labels."""
    pairs = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()) if key != "__name__")
    return f"{name}{{{pairs}}}" if pairs else name


def _missing(series: Sequence[QueriedSeries], span: Span) -> list[str]:
    """Return the times without values in words. A single step without a value can be a late scrape."""
    start, step = span.start, span.step
    moments = {round((moment - start) / step) for each in series for moment in each.values}
    if not moments:
        return ["in this trial"]
    gaps = [(first * step, last * step) for first, last in _runs(moments, math.floor((span.end - start) / step))]
    spans = [f"between {first:g} s and {last:g} s" for first, last in gaps[:SHOWN_GAPS]]
    further = [f"and in {len(gaps) - SHOWN_GAPS} more gaps"] if len(gaps) > SHOWN_GAPS else []
    return [", ".join((*spans, *further))] if spans else []


def _runs(moments: Iterable[int], last: int) -> list[tuple[int, int]]:
    """Yield the first and last step of each gap of at least two steps in ``moments``."""
    edges = [-1, *sorted(moments), last + 1]
    return [(a + 1, b - 1) for a, b in itertools.pairwise(edges) if b - a > 2]
