"""Builds the document of the runs of a folder: a table of the runs, and each primary metric's costs over them."""

from collections.abc import Iterator
from functools import partial

from weighbridge.features.gate import compare_text as text
from weighbridge.features.gate import history_charts as charts
from weighbridge.features.gate.past_runs import History
from weighbridge.report import document as doc
from weighbridge.report.document import Column, Rank, Tone, say
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.formatting import plural

RUN_COLUMNS = (
    Column("#", align="right"), Column("started"), Column("run", 1), Column("study", 2),
    Column("rounds", align="right"), Column("control"), Column("id", detail=True),
)  # fmt: skip


def history_document(history: History) -> doc.Document:
    """Return the document of the runs of a folder."""
    heading = f"The {plural(len(history.runs), 'run')} of {history.folder.resolve().name}"
    reading = say(text.HOW_TO_READ_HISTORY, tone=Tone.DIM, rank=Rank.EXTRA)
    hint = say("To test whether two runs differ: ", doc.Code("weighbridge compare RUN RUN"), tone=Tone.DIM)
    return doc.Document("history", heading, heading, (reading, *_runs(history), *_costs(history), hint))


def _runs(history: History) -> Iterator[doc.Block]:
    rows, changes, facts = [], [], []
    for number, past in enumerate(history.runs, 1):
        analysis = past.run.analysis
        started, control = date_words(past.run.created), text.trust_words(past.run)
        words = str(number), started, past.run.name, analysis.study, str(past.blocks), control, analysis.run_id
        rows.append(tuple(map(say, words)))
        if past.changed:
            changes.append(
                say(
                    f"run {number} differs from the previous run of its study: {text.changes_in_short(past.changed)}",
                    tone=Tone.NOTICE,
                )
            )
            facts += [say(f"run {number}: {line}") for line in text.fact_lines(past.changed)]
    yield doc.Table(RUN_COLUMNS, tuple(rows))
    if changes:
        yield doc.Listing(tuple(changes))
        yield doc.Fold("facts that changed", (doc.Listing(tuple(facts)),), rank=Rank.EXTRA)
    if history.skipped:
        skipped = "; ".join(f"{each.name} ({text.why_skipped(each)})" for each in history.skipped)
        yield say(f"Skipped: {skipped}", rank=Rank.EXTRA)


def _costs(history: History) -> Iterator[doc.Block]:
    """Return a chart and a table for each primary metric of each series of runs."""
    for place, series in enumerate(charts.series_of(history), 1):
        costs: dict[int, dict[str, doc.Inline]] = {}
        for number, report, row in series.points:
            name = charts.name_in_run(history.runs[number - 1], row)
            costs.setdefault(number, {})[name] = text.cost_in_run(row, report.unit)
        names = dict.fromkeys(name for each in costs.values() for name in each)
        dates = {number: date_words(history.runs[number - 1].run.created) for number in costs}
        rows = tuple(
            tuple(map(say, (str(number), dates[number], *(each.get(name, "–") for name in names))))
            for number, each in costs.items()
        )
        columns = Column("#", align="right"), Column("started", detail=True), *(Column(name) for name in names)
        styles = charts.environment_styles(history)
        changes = [f"▲ {dates[number]}: {words}" for number, words in charts.changes(history, [*costs])]
        yield doc.Heading(
            series.title,
            soft=f"{series.study}: cost [95%] against {series.baseline}; positive is worse",
            anchor=f"h{place}",
        )
        yield doc.Chart(
            f"{series.title}: costs over time", partial(charts.over_runs, history, series),
            tuple((name, styles[name]) for name in names), "; ".join(changes), (doc.Table(columns, rows),),
        )  # fmt: skip
