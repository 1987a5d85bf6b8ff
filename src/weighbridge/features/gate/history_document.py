"""Builds the document of the runs of a folder: what changed, the runs, and each primary metric's costs over them."""

from collections.abc import Iterator
from functools import partial

from weighbridge.features.gate import compare_text as text
from weighbridge.features.gate import history_charts as charts
from weighbridge.features.gate.history_charts import CostSeries
from weighbridge.features.gate.past_runs import History
from weighbridge.report import document as doc
from weighbridge.report.document import Column, Rank, Tone, say
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.formatting import plural

STARTED, ZONE = "started (UTC)", " UTC"
RUN_COLUMNS = (
    Column("#", align="right"), Column(STARTED), Column("run", 1), Column("study", 2, detail=True),
    Column("rounds", align="right"), Column("control"), Column("id", detail=True),
)  # fmt: skip
LONG = 25
"""The most rows or items that a page shows without a click."""


def history_document(history: History) -> doc.Document:
    """Return the document of the runs of a folder."""
    heading = f"{plural(len(history.runs), 'run')} in {history.folder.resolve().name}"
    hint = say("To test whether two runs differ: ", doc.Code("weighbridge compare RUN RUN"), tone=Tone.DIM)
    blocks = *_significant(history), *_runs(history), *_costs(history), hint
    return doc.Document("history", heading, heading, blocks)


def _significant(history: History) -> Iterator[doc.Block]:
    """Return the significant changes from run to run, and what to expect of them by chance."""
    if len(history.runs) < 2:
        return
    yield say(text.history_answer(history), tone=Tone.STRONG)
    items = tuple(say(words, tone=tone) for *_, words, tone in text.significant_changes(history))
    yield from _folded("significant changes", doc.Listing(items), len(items))
    if about := text.about_changes(history):
        yield say(about, tone=Tone.DIM)


def _runs(history: History) -> Iterator[doc.Block]:
    rows, changes, details = [], [], []
    for number, past in enumerate(history.runs, 1):
        analysis = past.run.analysis
        started, control = date_words(past.run.created).removesuffix(ZONE), text.trust_words(past.run)
        words = str(number), started, past.run.name, analysis.study, str(past.blocks), control, analysis.run_id
        rows.append(tuple(map(say, words)))
        if short := text.changed_in_short(past):
            words_of_run = f"run {number} differs from the previous run of its study: {short}"
            changes.append(say(words_of_run, tone=Tone.NOTICE))
            lines = *(text.fact_lines(past.changed) if past.changed else ()), *map(text.setting_words, past.settings)
            details += [say(f"run {number}: {line}") for line in lines]
    yield from _folded("runs", doc.Table(RUN_COLUMNS, tuple(rows)), len(rows))
    yield from _folded("runs before which something changed", doc.Listing(tuple(changes)), len(changes))
    if details:
        yield doc.Fold("facts and settings that changed", (doc.Listing(tuple(details)),), rank=Rank.EXTRA)
    if history.skipped:
        skipped = "; ".join(f"{each.name} ({text.why_skipped(each)})" for each in history.skipped)
        yield say(f"Skipped: {skipped}", rank=Rank.EXTRA)


def _folded(title: str, block: doc.Block, length: int) -> Iterator[doc.Block]:
    """Return a block with as many rows or items, in a fold if it is long; nothing if it is empty."""
    if length:
        yield doc.Fold(f"{length:,} {title}", (block,)) if length > LONG else block


def _costs(history: History) -> Iterator[doc.Block]:
    """Return a chart of each cost, and a table for each primary metric, of each series of runs."""
    yield say(text.HOW_TO_READ_HISTORY, tone=Tone.DIM, rank=Rank.EXTRA)
    for place, series in enumerate(charts.series_of(history), 1):
        yield doc.Heading(
            series.title,
            soft=f"{series.study}: cost [95%] against {series.against}; positive is worse",
            anchor=f"h{place}",
        )
        for name in series.environments:
            if marks := charts.legend(series.of(name)):
                yield doc.Heading(name, 3, rank=Rank.EXTRA)  # of the chart, which a terminal does not have
                title = f"{series.title}, {name}: cost over time"
                yield doc.Chart(title, partial(charts.over_runs, series, name), marks)
        yield from _table(series)


def _table(series: CostSeries) -> Iterator[doc.Block]:
    """Return the costs of each run: a row for the run, a column for each environment."""
    costs: dict[tuple[int, str], dict[str, doc.Sentence]] = {}
    for point in series.points:
        tone = text.tone_of(point.row.shown_as, point.row.cost)
        cost = say(text.cost_in_run(point.row, point.report.unit), tone=tone)
        costs.setdefault((point.number, point.when), {})[point.environment] = cost
    rows = tuple(
        (say(str(number)), say(when.removesuffix(ZONE)), *(each.get(name, say("–")) for name in series.environments))
        for (number, when), each in costs.items()
    )
    names = (Column(name) for name in series.environments)
    columns = Column("#", align="right"), Column(STARTED, detail=True), *names
    yield from _folded("runs with this cost", doc.Table(columns, rows), len(rows))
