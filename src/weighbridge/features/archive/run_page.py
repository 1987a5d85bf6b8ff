"""The page of a run in a registry: its costs and its machine as tables, without the charts of the run's report.

The report of a run contains a library for charts and every trial, which is too much for hundreds of runs
(docs/howto/registry.md has the sizes). Anybody can make it from the kept file.
"""

from collections.abc import Iterable, Iterator

from weighbridge.analysis.results import Analysis, MetricReport
from weighbridge.features.archive.entry import machine_facts
from weighbridge.model.host import HERE
from weighbridge.model.text import one_line
from weighbridge.report import document as doc
from weighbridge.report.document import Column, Tone, say
from weighbridge.report.text.answer import answer
from weighbridge.report.text.conditions import condition_lines, date_words, left_out_lines, session_lines
from weighbridge.report.text.environments import display_name, names_of, reference_words, use_display_names
from weighbridge.report.text.formatting import level, quantity
from weighbridge.report.text.metric_names import metric_title, value_unit
from weighbridge.report.text.remarks import remark_text
from weighbridge.report.text.summary import exploratory_sentence
from weighbridge.report.text.trust import trust_sentence
from weighbridge.report.text.verdicts import judged_cost_text, reasoned_verdict
from weighbridge.store.run import RunStore
from weighbridge.store.unpacking import ENDING

MOST_ROWS = 2_000
"""The rows of one table that the page shows."""
_LONGEST = 2_000
"""The most characters of a fact."""


def run_document(store: RunStore, analysis: Analysis) -> doc.Document:
    """Return the document of a kept run. Raises RunDirectoryError if the run is damaged."""
    names = names_of(analysis)
    with use_display_names(names):
        blocks = (*_top(analysis), *_costs(analysis), *_machine(store), *_data(store, analysis))
    return doc.Document("kept run", one_line(analysis.study, 120), analysis.question, blocks, names)


def _top(analysis: Analysis) -> Iterator[doc.Block]:
    yield say(answer(analysis), tone=Tone.STRONG)
    if analysis.metrics and (sentence := trust_sentence(analysis)):
        yield say(sentence, tone=Tone.FAILURE if analysis.trust.trusted is False else Tone.NOTICE)
    lines = [
        *left_out_lines(analysis), *map(remark_text, (*analysis.notices, *analysis.confounders)),
        exploratory_sentence(analysis), *session_lines(analysis), *condition_lines(analysis),
    ]  # fmt: skip
    if lines := [each for each in lines if each]:
        yield doc.Listing(tuple(map(say, lines[:MOST_ROWS])))


def _costs(analysis: Analysis) -> Iterator[doc.Block]:
    soft = f"against {reference_words(analysis)}, {level(analysis.confidence)} intervals; positive is worse"
    yield doc.Heading("Costs", soft=soft, anchor="costs")
    yield _table(analysis.headlines, analysis)
    if further := [each for each in analysis.metrics if not each.headline]:
        yield doc.Fold("further metrics and resource use", (_table(further, analysis),))


def _table(reports: Iterable[MetricReport], analysis: Analysis) -> doc.Table:
    heads = Column("metric"), Column("environment"), Column(display_name(analysis.baseline), align="right")
    columns = (*heads, Column("cost"), Column("rounds", align="right"), Column("verdict"))
    rows = []
    for report in reports:
        references = analysis.references(report)
        for row in report.comparisons:
            baseline = quantity(references[row.against], report.unit, value_unit(report))
            cost = say(judged_cost_text(row, report.unit), tone=row.shown_as)
            verdict = say(reasoned_verdict(row), tone=row.shown_as)
            words = map(say, (metric_title(report), display_name(row.environment), baseline))
            rows.append((*words, cost, say(str(row.blocks)), verdict))
    return doc.Table(columns, tuple(rows[:MOST_ROWS]))


def _machine(store: RunStore) -> Iterator[doc.Block]:
    yield doc.Heading("Machine", anchor="machine")
    columns = Column("fact"), Column("value")
    yield doc.Table(columns, _facts(machine_facts(store)))
    others: dict[str, dict[str, str]] = {}
    for scope, key, value, _ in store.facts():
        if scope.startswith(f"{HERE} "):
            others.setdefault(scope, {})[key] = value
    for scope, facts in others.items():
        yield doc.Fold(scope, (doc.Table(columns, _facts(facts)),))


def _facts(facts: dict[str, str]) -> tuple[tuple[doc.Sentence, ...], ...]:
    rows = [*facts.items()][:MOST_ROWS]
    return tuple((say(key), say(one_line(value, _LONGEST))) for key, value in rows)


def _data(store: RunStore, analysis: Analysis) -> Iterator[doc.Block]:
    file = f"{store.run_id}{ENDING}"
    yield doc.Heading("Data", anchor="data")
    created = date_words(float(store.info().get("created", "nan")))
    yield say(f"Run {store.run_id}, measured on {created}: ", doc.Link(file, file))
    unpack = f"mkdir run && xz -dc {file} > run/run.sqlite && weighbridge report run"
    yield say("The whole report, with charts and every trial: ", doc.Code(unpack))
