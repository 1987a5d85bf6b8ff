"""Builds the document of a fleet: outliers, typical costs over its machines, each metric's machines, and changes."""

from collections.abc import Iterator, Sequence
from functools import partial

from weighbridge.features.fleets import text
from weighbridge.features.fleets.analysis import FleetMetric, FleetResult
from weighbridge.features.fleets.changes import (
    FleetsCompared,
    FleetShift,
    controls,
    effect_name,
    machines_of,
    unit_name,
)
from weighbridge.features.fleets.charts import OUTLIER, caterpillar, heat_map
from weighbridge.report import document as doc
from weighbridge.report.document import Column, Rank, Tone, say
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.environments import display_name, names_over_runs, use_display_names
from weighbridge.report.text.formatting import plural

HEAD_LINES = 3
"""Outliers that are named before the table; further ones come after it."""


def fleet_document(fleet: FleetResult, compared: FleetsCompared | None = None) -> doc.Document:
    """Return the document of a fleet, with its changes since an earlier one."""
    names = names_over_runs(run.isolation for run in fleet.runs)
    with use_display_names(names):
        blocks = [*_summary(fleet, compared), *_metrics(fleet)]
        if compared is not None:
            blocks += _changes(fleet, compared)
        if alone := controls(fleet):
            blocks.append(doc.Heading("Alone against together", anchor="controls"))
            blocks += [_shift(fleet, each, "alone", "together") for each in alone]
        blocks += _runs(fleet)
    return doc.Document("fleet", f"Fleet: {fleet.study}", fleet.question, tuple(blocks), names)


def _unit(fleet: FleetResult) -> str:
    return "pair" if fleet.size == 2 else "machine"


def _summary(fleet: FleetResult, compared: FleetsCompared | None) -> Iterator[doc.Block]:
    yield say(f"{fleet.study}: {text.fleet_answer(fleet)}", tone=Tone.STRONG, rank=Rank.FIRST)
    outliers = [say(each, tone="different") for each in text.outlier_sentences(fleet)]
    if outliers:
        yield doc.Listing(tuple(outliers[:HEAD_LINES]), rank=Rank.FIRST)
    for line in text.trust_lines(fleet):
        yield say(line, tone=Tone.FAILURE, rank=Rank.FIRST)
    if compared is not None:
        yield say(text.changes_answer(compared), tone=Tone.NOTICE, rank=Rank.FIRST)
    metrics = sorted(_judged(fleet), key=lambda each: not (each.outlier_machines or each.outlier_pairs))
    columns = Column("", 2), Column("typical [95%]", 1), Column(f"next {_unit(fleet)}"), Column("outliers", 3)
    yield doc.Table(columns, tuple(_brief(each) for each in metrics), rank=Rank.SUMMARY)
    if outliers[HEAD_LINES:]:
        yield doc.Listing(tuple(outliers[HEAD_LINES:]), rank=Rank.REMARK)
    if sentence := text.controls_answer(controls(fleet), fleet.baseline):
        yield say(sentence, tone=Tone.NOTICE, rank=Rank.REMARK)
    if compared is not None and (facts := text.changed_facts_words(compared, _changed(compared))):
        yield say(f"changed facts: {facts}", tone=Tone.NOTICE, rank=Rank.REMARK)
    if lines := text.left_out_lines(fleet):
        yield doc.Heading(f"{len(lines)} left out", 3)
        yield doc.Listing(tuple(say(each, tone=Tone.NOTICE) for each in lines), "left out: ", rank=Rank.REMARK)


def _judged(fleet: FleetResult) -> list[FleetMetric]:
    return [each for each in fleet.metrics if each.fleet is not None]


def _changed(compared: FleetsCompared) -> list[str]:
    names = [name for each in compared.shifts for row in each.different for name in row.machines]
    for shift in compared.shifts:
        names += [name for effect in shift.unlike for name in machines_of(effect_name(effect))]
    return [*dict.fromkeys(names)]


def _outliers(metric: FleetMetric) -> list[str]:
    return [
        *(each.machine for each in metric.outlier_machines),
        *(unit_name(each.machines) for each in metric.outlier_pairs),
    ]


def _brief(metric: FleetMetric) -> tuple[doc.Sentence, ...]:
    outliers = _outliers(metric)
    assert metric.fleet is not None
    number = f"{len(outliers)}: {', '.join(outliers)}" if 0 < len(outliers) <= 2 else str(len(outliers) or "none")
    words = number if metric.fleet.machines else "–"
    return *map(say, (text.fleet_title(metric), *_typical(metric))), say(
        words, tone="different" if outliers else Tone.DIM
    )


def _typical(metric: FleetMetric) -> tuple[str, str]:
    """Return the typical value, and the range of the next machine or pair."""
    if metric.fleet is None:
        return "–", "–"
    return text.amount(metric, metric.fleet.typical), text.range_text(metric, metric.fleet.prediction)


def _metrics(fleet: FleetResult) -> Iterator[doc.Block]:
    """Return a table of the costs, one of the baseline's own values, and a section for each metric."""
    baseline = display_name(fleet.baseline)
    columns = (
        Column("metric", 2), Column("machines", align="right"), Column("typical [95%]"),
        Column(f"next {_unit(fleet)}"), Column("between machines"), Column("between sessions"),
        Column("within a run"), Column("outliers"),
    )  # fmt: skip
    numbered = [*enumerate((*fleet.costs, *fleet.own_values), 1)]
    for own, title in ((False, f"Costs against {baseline}"), (True, f"Own values in {baseline}")):
        rows = tuple(_spreads(metric, number) for number, metric in numbered if metric.is_own_value is own)
        if rows:
            soft = "" if own else f"{plural(len(fleet.machines), 'machine')}, {plural(len(fleet.runs), 'run')}"
            yield doc.Heading(title, soft=soft, anchor="own" if own else "costs")
            yield doc.Table(columns, rows)
    if numbered:
        yield say(text.READING_SPREADS.format(margin=text.margin_words(fleet)), tone=Tone.DIM)
        yield say(text.READING_CHARTS, tone=Tone.DIM)
    for number, metric in numbered:
        yield from _metric(fleet, metric, f"m{number}")


def _spreads(metric: FleetMetric, number: int) -> tuple[doc.Sentence, ...]:
    outliers = ", ".join(_outliers(metric))
    cells = str(_machines(metric)), *_typical(metric), *text.spread_texts(metric)
    return say(doc.Link(text.fleet_title(metric), f"#m{number}")), *map(say, cells), say(outliers, tone="different")


def _machines(metric: FleetMetric) -> int:
    return len({name for each in metric.counted for name in each.run.machines})


def _metric(fleet: FleetResult, metric: FleetMetric, anchor: str) -> Iterator[doc.Block]:
    title, outliers, pairs = text.fleet_title(metric), _outliers(metric), fleet.size == 2
    typical, following = _typical(metric)
    sentence = f" {'Outlier' if len(outliers) == 1 else 'Outliers'}: {', '.join(outliers)}." if outliers else ""
    yield doc.Heading(title, soft=f"{metric.report.better} is better", anchor=anchor)
    yield say(f"Typical: {typical}. Next {_unit(fleet)}: {following}.{sentence}")
    if words := text.not_counted_words(metric):
        yield say(f"Not counted: {words}.", tone=Tone.DIM)
    yield doc.Chart(f"{title}: machines in order", partial(caterpillar, metric))
    yield doc.Chart(f"{title}: pairs", partial(heat_map, metric))
    value = "value" if metric.is_own_value else "cost"
    heads = ("machine", "runs", f"{value}{' with a typical partner' if pairs else ' [95%]'}",
             "from the others [95%, simultaneous]", "verdict")  # fmt: skip
    yield from _fold("machines", heads, _machine_rows(metric))
    heads = "client", "server", f"{value} [95%]", "beyond both machines [95%, simultaneous]", "verdict"
    yield from _fold("pairs", heads, _pair_rows(metric))


def _fold(things: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[doc.Block]:
    """Return a table in a fold, the worst row first; nothing without rows."""
    cells = tuple((*map(say, row[:-1]), say(row[-1], tone="different")) for row in rows)
    if cells:
        yield doc.Fold(f"the {len(rows)} {things}, the worst first", (doc.Table(tuple(map(Column, heads)), cells),))


def _machine_rows(metric: FleetMetric) -> list[tuple[str, ...]]:
    """Return a row for each machine, the worst first."""
    rows: list[tuple[str, ...]] = []
    for each in reversed(metric.positions):
        effect = each.effect
        own = [run for run in metric.counted if run.run.machines == (each.machine,)]
        value = text.run_effect_text(metric, own[0]) if len(own) == 1 else text.estimate_text(metric, each.at)
        runs = effect.runs if effect is not None else len(own)
        distance = text.distance_text(metric, effect.interval) if effect is not None else "–"
        rows.append((each.machine, str(runs), value, distance, OUTLIER if each.outlier else ""))
    return rows


def _pair_rows(metric: FleetMetric) -> list[tuple[str, ...]]:
    """Return a row for each run of a pair, the worst first."""
    beyond = {each.machines: each for each in (metric.fleet.pairs if metric.fleet is not None else ())}
    rows: list[tuple[str, ...]] = []
    pairs = [each for each in metric.counted if len(each.run.machines) == 2 and each.effect is not None]
    for each in sorted(pairs, key=lambda each: -each.effect.estimate if each.effect is not None else 0.0):
        client, server = each.run.machines
        effect = beyond.get((client, server)) or beyond.get((server, client))
        left = text.distance_text(metric, effect.interval) if effect is not None else "–"
        mark = OUTLIER if effect is not None and metric.is_outlier(effect) else ""
        rows.append((client, server, text.run_effect_text(metric, each), left, mark))
    return rows


def _changes(fleet: FleetResult, compared: FleetsCompared) -> Iterator[doc.Block]:
    sides = (("before", compared.only_before), ("now", compared.only_after))
    only = [say(f"only {when}: {text.some_of(names, 20)}") for when, names in sides if names]
    yield doc.Heading("What changed", anchor="changes")
    if only:
        yield doc.Listing(tuple(only))
    for each in compared.shifts:
        yield _shift(fleet, each, "before", "now")


def _shift(fleet: FleetResult, shift: FleetShift, before: str, after: str) -> doc.Fold:
    rows = []
    for row in shift.rows:
        *cells, verdict = text.unit_change_texts(shift, row)
        tone = "different" if row.verdict == "different" else ""
        rows.append((*map(say, (unit_name(row.machines), *cells)), say(verdict, tone=tone)))
    count = sum(row.verdict == "different" for row in shift.rows)
    significant = f", {count} significant" if count else ""
    columns = tuple(map(Column, (_unit(fleet), before, after, "change [95%]", "verdict")))
    title = f"{text.fleet_title(shift.metric)}: {plural(len(rows), 'row')}{significant}"
    return doc.Fold(title, (doc.Table(columns, tuple(rows)),))


def _runs(fleet: FleetResult) -> Iterator[doc.Block]:
    if facts := [text.shared_fact_words(each) for each in fleet.differing_facts]:
        rows = tuple(tuple(map(say, each)) for each in facts)
        yield doc.Heading("Facts that differ", anchor="facts")
        yield doc.Table((Column("fact"), Column("values")), rows)
    yield doc.Heading("Runs", anchor="runs")
    if lines := text.condition_lines(fleet):
        yield doc.Listing(tuple(map(say, lines)), rank=Rank.REMARK)
    rows = tuple(
        tuple(map(say, (
            run.name, unit_name(run.machines), date_words(run.created) if run.created else "", str(run.blocks),
            text.trust_words(run), f"{run.failed} of {run.trials}",
        )))
        for run in fleet.runs
    )  # fmt: skip
    heads = "run", _unit(fleet), "started", "rounds", "control", "failed trials"
    yield doc.Fold(plural(len(rows), "run"), (doc.Table(tuple(map(Column, heads)), rows),))
    yield doc.Heading("How to read this", anchor="reading")
    yield say(text.HOW_TO_READ, tone=Tone.DIM)
