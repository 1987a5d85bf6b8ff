"""Builds the document of runs that were compared: each pair's answer and what changed, then each metric's costs."""

from collections.abc import Iterator
from functools import partial

from weighbridge.features.gate import compare_charts as between
from weighbridge.features.gate import compare_text as text
from weighbridge.features.gate.between_runs import ChangeRow, MetricChanges, RunsCompared
from weighbridge.report import document as doc
from weighbridge.report.document import Column, Rank, Tone, say
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.environments import (
    common_layers,
    environment_name,
    name_of_control,
    names_of_native_versions,
    use_display_names,
)
from weighbridge.report.text.formatting import plural
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.trust import others_words, trust_sentence

FIRST = text.run_letter(0)
RUN_COLUMNS = (
    Column("run"), Column("folder", 2), Column("study", 2, detail=True), Column("started"), Column("rounds"),
    Column("control"), Column("other load", 1), Column("Weighbridge", detail=True),
)  # fmt: skip
COST_COLUMNS = (Column("environment", 2), Column("cost [95%]", 1), Column("change [95%]"), Column("verdict", 3))
ORDER = ("different", "inconclusive", "equivalent")
"""The order of changes on the first screen, by `shown_as`; other changes come last."""


def compare_document(comparison: RunsCompared) -> doc.Document:
    """Return the document of runs that were compared."""
    analysis, names = comparison.first.analysis, names_of_runs(comparison)
    with use_display_names(names):
        blocks = [*_runs(comparison), *_pairs(comparison), *_metrics(comparison)]
    reading = [say(each, tone=Tone.DIM) for each in text.HOW_TO_READ]
    command = doc.Command(
        ("weighbridge", "compare", *(run.name for run in comparison.runs), "--all"), "all tables: ", rank=Rank.SUMMARY
    )
    blocks += [doc.Heading("How to read this", anchor="reading"), *reading, command]
    return doc.Document("runs compared", f"Runs compared: {analysis.study}", analysis.question, tuple(blocks), names)


def _runs(comparison: RunsCompared) -> Iterator[doc.Block]:
    rows = []
    for number, run in enumerate(comparison.runs):
        letter, failed = text.run_letter(number), run.analysis.trust.trusted is False
        yield say(text.run_words(letter, run), rank=Rank.SUMMARY)
        if failed:
            yield say(f"{letter}: {trust_sentence(run.analysis)}", tone=Tone.FAILURE, rank=Rank.REMARK)
        started, control = date_words(run.created) if run.created else "", "failed" if failed else ""
        rows.append((
            *map(say, (letter, run.name, run.analysis.study, started, text.blocks_words(run))),
            say(text.trust_words(run), tone=control), say(others_words(run.analysis)), say(run.version),
        ))  # fmt: skip
    yield doc.Table(RUN_COLUMNS, tuple(rows))


def _pairs(comparison: RunsCompared) -> Iterator[doc.Block]:
    summary = _summary(comparison)
    yield summary
    if summary.rows:
        yield say(text.SIGN, tone=Tone.DIM, rank=Rank.SUMMARY)
    for number, pair in enumerate(comparison.pairs, 1):
        second = text.run_letter(number)
        yield doc.Heading(f"{FIRST} → {second}")
        yield say(text.pair_answer(pair, FIRST, second), tone=Tone.STRONG)
        yield say(text.pair_answer(pair, FIRST, second, brief=True), tone=Tone.STRONG, rank=Rank.SUMMARY)
        if sentence := text.disturbance_sentence(pair, FIRST, second):
            yield say(sentence, tone=Tone.WARNING, rank=Rank.REMARK)
        for metric in pair.metrics:
            yield from _hints(metric, second)
        settings = [f"study: {text.setting_words(each)}" for each in pair.settings]
        lines = [*text.fact_lines(pair.facts), *settings, *text.only_lines(pair.only, FIRST, second)]
        changed = bool(pair.facts or pair.settings or pair.only)
        items = tuple(say(each, tone=Tone.NOTICE if changed else "") for each in lines)
        yield doc.Heading(f"What changed from {FIRST} to {second}", 3)
        yield doc.Listing(items, f"changed in {second}: ", rank=Rank.REMARK if changed else Rank.FULL)
        yield doc.Chart(
            f"Changes of the costs of primary metrics, {FIRST} → {second}", partial(between.changes_of_pair, pair),
            tuple(between.environment_styles(pair).items()), between.CHANGES_CAPTION,
        )  # fmt: skip
        if why := text.why_no_own_values(pair.no_own_values):
            yield say(why, tone=Tone.NOTICE)


def _summary(comparison: RunsCompared) -> doc.Table:
    """Return the changes of primary metrics for the first screen, significant ones first."""
    several, rows = len(comparison.pairs) > 1, []
    for number, pair in enumerate(comparison.pairs, 1):
        start = f"{text.run_letter(number)}: " if several else ""
        rows += [(start, metric, row) for metric in pair.headlines for row in metric.rows if not row.aa]
    rows.sort(key=lambda each: ORDER.index(kind) if (kind := text.shown_as(each[2])) in ORDER else len(ORDER))
    cells = tuple(
        (say(start, doc.Env(row.environment), f", {metric_title(metric.before)}"), *_change(metric, row))
        for start, metric, row in rows
    )
    return doc.Table((Column(""), Column(""), Column("")), cells, rank=Rank.SUMMARY)


def _hints(metric: MetricChanges, second: str) -> Iterator[doc.Sentence]:
    """Return remarks on significant changes: the medians of primary metrics, and changes of other metrics."""
    for row in metric.rows:
        if text.shown_as(row) != "different":
            continue
        if not metric.headline:
            words = text.change_sentence(metric, row, FIRST, second)
            yield say(words, tone="different", rank=Rank.HINT)
        elif words := text.medians(metric, row):
            yield say(f"{metric_title(metric.before)}, ", words, tone="different", rank=Rank.HINT)


def _metrics(comparison: RunsCompared) -> Iterator[doc.Block]:
    """Return the metrics that a run shares with the first: primary and changed ones, then all others in a fold."""
    shared: dict[tuple[object, ...], dict[str, MetricChanges]] = {}
    for number, pair in enumerate(comparison.pairs, 1):
        for metric in filter(lambda each: each.rows, pair.metrics):
            key = metric.before.workload, metric.before.level, metric.before.metric
            shared.setdefault(key, {})[text.run_letter(number)] = metric
    metrics = sorted(shared.values(), key=lambda each: _order(*each.values()))
    sections = [tuple(_metric(comparison, metric, f"m{number}")) for number, metric in enumerate(metrics, 1)]
    shown = sum(_order(*each.values())[0] == 0 for each in metrics)
    for section in sections[:shown]:
        yield from section
    if further := sections[shown:]:
        title = f"{plural(len(further), 'further metric')} and resource use"
        yield doc.Fold(title, tuple(block for section in further for block in section), rank=Rank.EXTRA)


def _order(*changes: MetricChanges) -> tuple[int, bool, bool]:
    """Return the place of a metric: primary ones, changed ones, others."""
    report = changes[0].before
    changed = any(text.shown_as(row) == "different" for metric in changes for row in metric.rows)
    return 0 if report.headline or changed else 1, not report.headline, report.resource_use


def _metric(comparison: RunsCompared, changes: dict[str, MetricChanges], anchor: str) -> Iterator[doc.Block]:
    report = next(iter(changes.values())).before
    several = len(comparison.pairs) > 1
    rows, reasons, floors = [], [], []
    for letter, metric in changes.items():
        run = f"{letter}: " if several else ""
        for row in metric.rows:
            rows.append(_costs(metric, row, letter))
            if text.shown_as(row) == "different" and (words := text.medians(metric, row)):
                reasons.append(say(run, words, tone=Tone.DIM))
            elif why := text.why_inconclusive(row, report.unit):
                reasons.append(say(run, doc.Env(row.environment), f": {why}", tone=Tone.DIM))
        known = [row.change for row in metric.rows if row.change and row.change.floor is not None]
        floors += [f"{FIRST} and {letter} together: {text.floor_words(each, report.unit)}" for each in known[:1]]
    notes = [doc.Listing(tuple(reasons))] if reasons else []
    noise = [say(f"noise floor of {', '.join(floors)}", tone=Tone.DIM)] if floors else []
    yield doc.Heading(metric_title(report), soft=f"{report.better} is better", anchor=anchor)
    styles = between.run_styles(comparison)
    yield doc.Chart(
        f"{metric_title(report)}: costs in all runs",
        partial(between.costs_of_runs, {FIRST: report, **{letter: each.after for letter, each in changes.items()}}),
        tuple((letter, styles[letter]) for letter in (FIRST, *changes)),
        fallback=(doc.Table(COST_COLUMNS, tuple(rows), anchor), *notes, *noise, *_own_values(comparison, changes)),
    )


def _costs(metric: MetricChanges, row: ChangeRow, second: str) -> tuple[doc.Sentence, ...]:
    before, after = text.cost_in_run(row.before, metric.before.unit), text.cost_in_run(row.after, metric.after.unit)
    costs = say(f"{FIRST} ", before, doc.Break(), f"{second} ", after)
    return say(doc.Env(row.environment)), costs, *_change(metric, row)


def _change(metric: MetricChanges, row: ChangeRow) -> tuple[doc.Sentence, doc.Sentence]:
    amount = say(text.change_amount(row, metric.before.unit))
    return amount, say(text.change_verdict(row), tone=text.shown_as(row))


def _own_values(comparison: RunsCompared, changes: dict[str, MetricChanges]) -> Iterator[doc.Block]:
    """Return the environments' own values in the first run and in each other run that allows it."""
    for number, pair in enumerate(comparison.pairs, 1):
        letter = text.run_letter(number)
        if letter not in changes or not changes[letter].own_values:
            continue
        rows = tuple(
            tuple(map(say, (doc.Env(own.environment), *text.own_values_amounts(changes[letter], own))))
            for own in changes[letter].own_values
        )
        columns = Column("environment", 1), Column(f"median {FIRST}"), Column(f"median {letter}"), Column("change")
        purpose = f" (changed on purpose: {text.on_purpose_words(pair)})" if pair.on_purpose else ""
        title = f"absolute values{purpose}, without verdicts (runs were not interleaved)"
        yield doc.Fold(title, (doc.Table(columns, rows),))


def names_of_runs(comparison: RunsCompared) -> dict[str, str]:
    """Return the names for people of all environments; one in other hypervisors has both in its name."""
    layers: dict[str, dict[str, None]] = {}
    versions: dict[str, str] = {}
    for run in comparison.runs:
        versions |= names_of_native_versions(run.analysis)
    shared = {common_layers(run.analysis) for run in comparison.runs}
    for run in comparison.runs if len(shared) > 1 or shared == {""} else ():
        for name, each in run.analysis.isolation.items():
            layers.setdefault(name, {})[environment_name("", each)] = None
    controls = {run.analysis.aa_arm: run.analysis.baseline for run in comparison.runs if run.analysis.aa_arm}
    names = versions | {name: f"{versions.get(name, name)} {' then '.join(ways)}" for name, ways in layers.items()}
    return names | {name: name_of_control(names.get(baseline, baseline)) for name, baseline in controls.items()}
