"""Resource use over the time of one block, with a span for each trial.

The chart shows one block of each workload, the one whose values are nearest to the medians of all blocks. Time
without a trial of the workload is cut out. Nothing here is compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from weighbridge.analysis.levels import LevelGroup, groups_of
from weighbridge.analysis.metered import (
    CPU,
    HOST,
    KINDS,
    PLACES,
    QUANTITIES,
    UNITS,
    Metered,
    QuantityId,
    ValuesBySecond,
    stretches,
)
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import ArmId, grouped
from weighbridge.model.trial import PROMETHEUS
from weighbridge.store.run import RunStore

POINTS, MOST_POINTS = 16_000, 5_600
"""The most points in all charts together, and in one; in long blocks each point is the mean of a longer time."""

MOST_QUERIES = 12
"""The most series of a Prometheus server that are drawn for a workload, in the order of their names."""

KEPT_GAP_S = 1.0
"""A longer gap between two trials of a workload is shortened to this."""

ENOUGH_BLOCKS = 3
"""The fewest complete blocks for choosing the one nearest to the median."""

IDLE_CPUS, IDLE_BYTES = 0.005, 1.0
"""A quantity is only drawn if it exceeds this somewhere."""


@dataclass(frozen=True, slots=True)
class TrialSpan:
    """One trial in the chart, from second ``start`` to ``end``; ``wall_s`` is the time since the block started."""

    trial: TrialRow
    level: str
    start: float
    end: float
    wall_s: float
    cut: bool
    """Whether time was cut out before it."""


StepCurve = tuple[tuple[float, ...], tuple[float, ...]]
"""The start of each step, in seconds of the chart, and its value; the last value appears twice, at its end."""


@dataclass(frozen=True, slots=True)
class TimelinePanel:
    """One quantity of one place over the chart's time. ``curves`` are by kind (of a host's CPU time) and span."""

    place: str
    quantity: str
    unit: str
    curves: Mapping[str, Mapping[int, StepCurve]]

    @property
    def most(self) -> float:
        """The largest value; for several kinds, their sum can be higher."""
        return max((max(values) for kind in self.curves.values() for _, values in kind.values()), default=0.0)


ChoiceReason = Literal["nearest", "only", "most-results", "first-of-most-results"]


@dataclass(frozen=True, slots=True)
class BlockChoice:
    """The reason for the block: nearest to the medians of ``complete`` blocks, or the first with the most results."""

    reason: ChoiceReason
    complete: int


@dataclass(frozen=True, slots=True)
class Picture:
    """One block of a workload: its trials in chronological order, and the resource use at that time."""

    group: LevelGroup
    block: int
    choice: BlockChoice
    spans: tuple[TrialSpan, ...]
    panels: tuple[TimelinePanel, ...]
    queries: tuple[TimelinePanel, ...]
    """Queries of a Prometheus server; their ``quantity`` names the query and its labels."""
    further: int
    """The number of further series of that server in the run."""
    step_s: float
    """The shortest time that a point is the mean of; 0 if each reading is a point."""


def pictures(store: RunStore, analysis: Analysis) -> list[Picture]:
    """Return one chart for each workload; empty if the run has no readings over time."""
    groups, metered = groups_of(store), Metered(store)
    drawings = []
    for group in groups:
        chosen = _block(analysis, group)
        if chosen is not None:
            picture = _picture(metered, group, *chosen, min(MOST_POINTS, POINTS // len(groups)))
            if picture.panels or picture.queries:
                drawings.append(picture)
    return drawings


# -- which block -----------------------------------------------------------------------------------


def _block(analysis: Analysis, group: LevelGroup) -> tuple[int, BlockChoice, list[TrialRow]] | None:
    """Return the block to draw, the reason, and its trials; None without a trial."""
    cells = {level.cell for level in group.levels}
    blocks = grouped((trial for trial in analysis.trials if trial.cell in cells), lambda trial: trial.block)
    if not blocks:
        return None
    results = {number: {trial.arm for trial in mine if _result(trial)} for number, mine in blocks.items()}
    most = max(len(places) for places in results.values())
    complete = [number for number, places in sorted(results.items()) if len(places) == most]
    if len(complete) < ENOUGH_BLOCKS or not most:
        number = complete[0]
        others: ChoiceReason = "first-of-most-results" if len(complete) > 1 else "most-results"
        why: ChoiceReason = "only" if len(blocks) == 1 else others
    else:
        number, why = _nearest(analysis, {each: blocks[each] for each in complete}), "nearest"
    return number, BlockChoice(why, len(complete)), sorted(blocks[number], key=lambda trial: trial.order)


def _result(trial: TrialRow) -> bool:
    """Return whether a trial is a result, including breaking under its load."""
    return trial.ok or trial.outcome == "broke"


def _nearest(analysis: Analysis, blocks: Mapping[int, Sequence[TrialRow]]) -> int:
    """Return the block whose primary values have the smallest mean log distance from their medians."""
    headlines = {report.cell: report.metric for report in analysis.headlines}
    values: dict[ArmId, dict[int, float]] = {}
    for number, trials in blocks.items():
        for trial in trials:
            value = trial.values.get(headlines.get(trial.cell, ""), 0.0)
            if value > 0:
                values.setdefault(trial.arm, {}).setdefault(number, value)
    middles = {place: median(mine.values()) for place, mine in values.items()}

    def distance(number: int) -> float:
        away = [abs(math.log(mine[number] / middles[p])) for p, mine in values.items() if number in mine]
        return sum(away) / len(away) if away else math.inf

    return min(blocks, key=distance)


# -- the picture -----------------------------------------------------------------------------------


def _picture(
    metered: Metered, group: LevelGroup, block: int, choice: BlockChoice, trials: Sequence[TrialRow], points: int
) -> Picture:
    spans = _spans(group, trials)
    read = [metered.quantities(trial.id) for trial in trials]
    drawn = {key for each in read for key in each}
    lasted = sum(span.end - span.start for span in spans)
    # Steps do not cross spans, so each span adds one point at its end.
    steps = max(1, points // max(1, len(drawn)) - 2 * len(spans))
    step_s = lasted / steps
    fastest = min((_every(mine) for each in read for mine in each.values()), default=0.0)
    step_s = 0.0 if step_s <= fastest else _round_up(step_s)
    curves: dict[QuantityId, dict[int, StepCurve]] = {}
    for number, (span, mine) in enumerate(zip(spans, read, strict=True)):
        for key, values in mine.items():
            if key != QuantityId(key.place, CPU) or not key.place.startswith(HOST):  # for hosts, kinds are drawn
                curves.setdefault(key, {})[number] = _curve(span, values, step_s, metered.about_s(key))
    panels = _panels(curves)
    queries = [panel for panel in panels if panel.place == PROMETHEUS]
    return Picture(
        group, block, choice, spans, tuple(panel for panel in panels if panel.place != PROMETHEUS),
        tuple(queries[:MOST_QUERIES]), max(0, len(queries) - MOST_QUERIES), step_s,
    )  # fmt: skip


def _spans(group: LevelGroup, trials: Sequence[TrialRow]) -> tuple[TrialSpan, ...]:
    """Return the trials in sequence, with at most KEPT_GAP_S between them."""
    texts = {level.cell: level.text for level in group.levels}
    spans: list[TrialSpan] = []
    place = ended = 0.0
    for trial in trials:
        gap = trial.started_at - ended if spans else 0.0
        place += min(max(gap, 0.0), KEPT_GAP_S)
        wall_s = trial.started_at - trials[0].started_at
        spans.append(
            TrialSpan(trial, texts[trial.cell], round(place, 2), round(place + trial.duration_s, 2), wall_s,
                 gap > KEPT_GAP_S)
        )  # fmt: skip
        place, ended = place + trial.duration_s, trial.started_at + trial.duration_s
    return tuple(spans)


def _curve(span: TrialSpan, read: ValuesBySecond, step_s: float, apart_s: float) -> StepCurve:
    steps = stretches(read, step_s, apart_s)
    at = tuple(round(span.start + each.start, 2) for each in steps)
    values = tuple(float(f"{each.value:.3g}") for each in steps)
    return (*at, round(span.start + steps[-1].end, 2)), (*values, values[-1])


def _every(read: ValuesBySecond) -> float:
    """Return the seconds between two readings."""
    at = sorted(read)
    return (at[-1] - at[0]) / (len(at) - 1) if len(at) > 1 else math.inf


def _round_up(seconds: float) -> float:
    """Round up to two digits, for the text of the report."""
    size: float = 10 ** (math.floor(math.log10(seconds)) - 1)
    return float(f"{math.ceil(seconds / size) * size:.3g}")


def _panels(curves: Mapping[QuantityId, Mapping[int, StepCurve]]) -> list[TimelinePanel]:
    """Return panels by quantity, the server's before the generator's and the hosts', without unused quantities."""
    by_panel: dict[tuple[str, str], dict[str, Mapping[int, StepCurve]]] = {}
    for key, mine in curves.items():
        by_panel.setdefault((key.place, key.quantity), {})[key.kind] = mine
    panels = []
    for (place, what), kinds in by_panel.items():
        if place == PROMETHEUS:
            name, _, unit = what.rpartition(" ")
            panels.append(TimelinePanel(place, name or what, unit if name else "", kinds))
        elif what in QUANTITIES:
            order = {kind: kinds[kind] for kind in dict.fromkeys(("", *KINDS.values())) if kind in kinds}
            panel = TimelinePanel(place, what, UNITS[what], order)
            if panel.most > (IDLE_CPUS if what == CPU else IDLE_BYTES):
                panels.append(panel)
    return sorted(panels, key=_rank)


def _rank(panel: TimelinePanel) -> tuple[int, int, str, str]:
    places = list(PLACES.values())
    what = QUANTITIES.index(panel.quantity) if panel.quantity in QUANTITIES else len(QUANTITIES)
    place = places.index(panel.place) if panel.place in places else len(places)
    return what, place, panel.place, panel.quantity
