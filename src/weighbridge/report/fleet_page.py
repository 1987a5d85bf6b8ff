"""The page of a fleet: outliers, the typical costs over its machines, and each metric's machines in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weighbridge.analysis.fleet import Fleet, FleetMetric
from weighbridge.analysis.fleet_changes import (
    FleetsCompared,
    FleetShift,
    controls,
    effect_name,
    machines_of,
    unit_name,
)
from weighbridge.report.charts.fleet import NAMED_MACHINES, OUTLIER, caterpillar, heat_map
from weighbridge.report.page import FULL_PX, ChartPlace, Page, PageCharts, write_page
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.environments import display_name, names_over_runs, use_display_names
from weighbridge.report.text.fleet import (
    HOW_TO_READ,
    amount,
    changed_facts_words,
    changes_answer,
    condition_lines,
    controls_answer,
    distance_text,
    fleet_answer,
    fleet_title,
    left_out_lines,
    margin_words,
    not_counted_words,
    odd_machine_sentence,
    odd_pair_sentence,
    range_text,
    run_effect_text,
    shared_fact_words,
    some_of,
    spread_texts,
    trust_lines,
    trust_words,
    unit_change_texts,
    unlike_sentence,
)


@dataclass(frozen=True, slots=True)
class OddLine:
    """An outlier in one sentence, and how it differs from its peers."""

    sentence: str
    unlike: str


@dataclass(frozen=True, slots=True)
class MetricLine:
    """One metric over the fleet, in words."""

    id: str
    title: str
    own: bool
    better: str
    machines: int
    typical: str
    following: str
    spread: tuple[str, str, str]
    odd: str
    odd_count: int
    not_counted: str
    chart: ChartPlace
    pairs_chart: ChartPlace
    machine_rows: Sequence[Sequence[str]]
    """Machine, runs, cost or value, distance from the others, verdict."""
    pair_rows: Sequence[Sequence[str]]
    """Client, server, cost or value, the part beyond both machines, verdict."""


@dataclass(frozen=True, slots=True)
class ShiftSection:
    """The changes of one metric: its title, and for each machine before, after, change and verdict."""

    title: str
    rows: Sequence[Sequence[str]]
    different: Sequence[bool]


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes against an earlier fleet, in words."""

    answer: str
    facts: str
    shifts: Sequence[ShiftSection]
    only: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPage(Page):
    """The page of a fleet."""

    template = "fleet.html.j2"
    question: str
    study: str
    baseline: str
    machines: int
    runs: int
    margin: str
    answer: str
    trust: Sequence[str]
    odd: Sequence[OddLine]
    metrics: Sequence[MetricLine]
    pairs: bool
    controls_answer: str
    controls: Sequence[ShiftSection]
    changes: Changes | None
    conditions: Sequence[str]
    left_out: Sequence[str]
    facts: Sequence[tuple[str, str]]
    run_rows: Sequence[Sequence[str]]
    how_to_read: str = HOW_TO_READ
    outlier: str = OUTLIER


def write_fleet(fleet: Fleet, path: Path, compared: FleetsCompared | None = None) -> None:
    """Write the page as one offline file. Raises OSError where it cannot be written."""
    with use_display_names(names_over_runs(run.isolation for run in fleet.runs)):
        write_page(_page(fleet, compared), path)


def _page(fleet: Fleet, compared: FleetsCompared | None) -> FleetPage:
    page = PageCharts()
    alone = controls(fleet)
    return FleetPage(
        title=f"Fleet: {fleet.study}",
        charts=page,
        question=fleet.question,
        study=fleet.study,
        baseline=display_name(fleet.baseline),
        machines=len(fleet.machines),
        runs=len(fleet.runs),
        margin=margin_words(fleet),
        answer=fleet_answer(fleet),
        trust=trust_lines(fleet),
        odd=odd_lines(fleet),
        metrics=[_metric(page, metric, number) for number, metric in enumerate(fleet.metrics, 1)],
        pairs=fleet.size == 2,
        controls_answer=controls_answer(alone, fleet.baseline),
        controls=[_shift(each) for each in alone],
        changes=_changes(compared) if compared is not None else None,
        conditions=condition_lines(fleet),
        left_out=left_out_lines(fleet),
        facts=[shared_fact_words(each) for each in fleet.differing_facts],
        run_rows=[
            (
                run.name, unit_name(run.machines), date_words(run.created) if run.created else "", str(run.blocks),
                trust_words(run), f"{run.failed} of {run.trials}",
            )
            for run in fleet.runs
        ],
    )  # fmt: skip


def odd_lines(fleet: Fleet) -> list[OddLine]:
    """Return a line for each machine that is an outlier, then for each pair."""
    lines = [
        OddLine(odd_machine_sentence(fleet, name), unlike_sentence(fleet, [name])) for name in fleet.odd_machines
    ]
    return lines + [OddLine(odd_pair_sentence(fleet, pair), "") for pair in fleet.odd_pairs]


def _metric(page: PageCharts, metric: FleetMetric, number: int) -> MetricLine:
    fleet = metric.fleet
    names = len({name for each in metric.counted for name in each.run.machines})
    odd = [*(each.machine for each in metric.odd_machines), *(unit_name(each.machines) for each in metric.odd_pairs)]
    static = FULL_PX if names <= NAMED_MACHINES else 0
    return MetricLine(
        id=f"m{number}",
        title=fleet_title(metric),
        own=metric.own,
        better=metric.report.better,
        machines=names,
        typical=amount(metric, fleet.typical) if fleet is not None else "–",
        following=range_text(metric, fleet.prediction) if fleet is not None else "–",
        spread=spread_texts(metric),
        odd=", ".join(odd),
        odd_count=len(odd),
        not_counted=not_counted_words(metric),
        chart=page.place(caterpillar(metric), static_px=static),
        pairs_chart=page.place(heat_map(metric)),
        machine_rows=_machine_rows(metric),
        pair_rows=_pair_rows(metric),
    )


def _machine_rows(metric: FleetMetric) -> list[tuple[str, ...]]:
    """Return a row for each machine, the worst first."""
    rows: list[tuple[str, ...]] = []
    for each in reversed(metric.positions):
        effect = each.effect
        own = [run for run in metric.counted if run.run.machines == (each.machine,)]
        value = run_effect_text(metric, own[0]) if len(own) == 1 else amount(metric, each.at).partition(" [")[0]
        runs = effect.runs if effect is not None else len(own)
        away = distance_text(metric, effect.interval) if effect is not None else "–"
        rows.append((each.machine, str(runs), value, away, OUTLIER if each.odd else ""))
    return rows


def _pair_rows(metric: FleetMetric) -> list[tuple[str, ...]]:
    """Return a row for each run of a pair, the worst first."""
    beyond = {each.machines: each for each in (metric.fleet.pairs if metric.fleet is not None else ())}
    rows: list[tuple[str, ...]] = []
    pairs = [each for each in metric.counted if len(each.run.machines) == 2 and each.effect is not None]
    for each in sorted(pairs, key=lambda each: -each.effect.estimate if each.effect is not None else 0.0):
        client, server = each.run.machines
        effect = beyond.get((client, server)) or beyond.get((server, client))
        left = distance_text(metric, effect.interval) if effect is not None else "–"
        odd = OUTLIER if effect is not None and metric.is_odd(effect) else ""
        rows.append((client, server, run_effect_text(metric, each), left, odd))
    return rows


def _shift(shift: FleetShift) -> ShiftSection:
    rows = [(unit_name(row.machines), *unit_change_texts(shift, row)) for row in shift.rows]
    return ShiftSection(fleet_title(shift.metric), rows, [row.verdict == "different" for row in shift.rows])


def _changes(compared: FleetsCompared) -> Changes:
    changed = [name for each in compared.shifts for row in each.different for name in row.machines]
    changed += [
        name for each in compared.shifts for effect in each.unlike for name in machines_of(effect_name(effect))
    ]
    sides = (("before", compared.only_before), ("now", compared.only_after))
    only = [f"only {when}: {some_of(names, 20)}" for when, names in sides if names]
    return Changes(
        changes_answer(compared), changed_facts_words(compared, dict.fromkeys(changed)),
        [_shift(each) for each in compared.shifts], only,
    )  # fmt: skip
