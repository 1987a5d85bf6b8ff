"""Builds the document of a replication: table by table the published figures and the measured ones."""

from collections.abc import Iterator, Sequence
from functools import partial

from weighbridge.features.replication.chart import STYLES, chart
from weighbridge.features.replication.comparison import (
    DIRECTIONS,
    ComparedRow,
    ComparedTable,
    PairRow,
    Pairs,
    Replication,
    SpreadRow,
    Spreads,
)
from weighbridge.features.replication.words import (
    WHY_RATIOS,
    better_words,
    comparison_words,
    direction_words,
    left_out,
    measured_text,
    not_measured,
    outcome_sentence,
    pair_cells,
    published_text,
    reading,
    setup_rows,
    split_rows,
    spread_cells,
    variant,
)
from weighbridge.report import document as doc
from weighbridge.report.document import Column, Rank, Tone, say
from weighbridge.report.text.environments import names_of, use_display_names
from weighbridge.report.text.formatting import plain, plural, quantity, shared_unit, unit_as
from weighbridge.report.text.remarks import remark_text, remark_texts
from weighbridge.report.text.summary import exploratory_sentence
from weighbridge.report.text.trust import trust_sentence
from weighbridge.report.text.verdicts import verdict_word
from weighbridge.store.run import RunStore

TONES = {"agrees": "equivalent", "disagrees": "failed"}
ROW_COLUMNS = (
    Column("environment", 2),
    Column("published [95%]"),
    Column("measured [95%]", 1),
    Column("direction", 3),
)
PAIR_COLUMNS = (
    Column("difference", 2), Column("mean (deviation)"), Column("t, p"), Column("verdict by Weighbridge's rules", 3),
    Column("agrees in", 1),
)  # fmt: skip
SPREAD_COLUMNS = (
    Column("environment", 1), Column("mean"), Column("deviation"), Column("coefficient of variation [95%]", 2),
)  # fmt: skip


def replication_document(replication: Replication, store: RunStore) -> doc.Document:
    """Return the document of a replication; blocks of rank EXTRA repeat or explain the run's own report."""
    study, analysis = replication.study, replication.analysis
    with use_display_names(names_of(analysis)):  # rows have these names already
        blocks = [*_summary(replication, store)]
        for number, each in enumerate(replication.tables, 1):
            blocks += _table(replication, each, f"t{number}")
        blocks += [*_cells(replication), *_setup(replication, store)]
    kind = f"{study.study} · run {analysis.run_id}"
    title, heading = f"{study.study}, published and measured", f"Published and measured: {analysis.question}"
    return doc.Document(kind, title, heading, tuple(blocks))


def _summary(replication: Replication, store: RunStore) -> Iterator[doc.Block]:
    analysis, measured = replication.analysis, variant(store)
    yield say(f"Published: {replication.study.source}{f'. Measured: {measured}' if measured else ''}", tone=Tone.DIM)
    yield say(doc.Link("the run's own report", "report.html"), rank=Rank.EXTRA)
    tone = Tone.FAILURE if analysis.trust.trusted is False else Tone.NOTICE
    notices = "\n".join(map(remark_text, analysis.notices))
    banners = (trust_sentence(analysis), tone), (notices, Tone.NOTICE), (exploratory_sentence(analysis), Tone.NOTICE)
    for text, its_tone in banners:
        if text:
            yield say(text, tone=its_tone, rank=Rank.EXTRA)
    yield say(outcome_sentence(replication), tone=Tone.STRONG)
    yield doc.Listing(tuple(say(f"{replication.name(name)}: {counts}") for name, counts in replication.summary))
    if replication.tables:
        rows = tuple(
            tuple(map(say, (direction, str(number), DIRECTIONS[direction])))
            for direction, number in replication.counts.items()
        )
        columns = Column("direction"), Column("rows", align="right"), Column("meaning")
        yield doc.Table(columns, rows, rank=Rank.EXTRA)


def _table(replication: Replication, table: ComparedTable, anchor: str) -> Iterator[doc.Block]:
    """Return a table of comparisons: the measured rows, then the others with the reason."""
    study, source, (shown, absent) = replication.study, table.source, split_rows(table)
    if not absent and all(row.measured is None for row in shown):
        shown, absent = [], shown
    everywhere = replication.all_emulated
    blocks: list[doc.Block] = []
    if shown:
        blocks.append(doc.Table(ROW_COLUMNS, tuple(_row(row, everywhere=everywhere) for row in shown)))
    if absent:
        blocks.append(_reasons(absent))
        columns = Column("environment"), Column("published"), Column("why")
        rows = tuple(
            tuple(map(say, (row.name, f"{published_text(row.published)}, {row.published.proof}", row.reason)))
            for row in absent
        )
        figures = doc.Table(columns, rows, rank=Rank.EXTRA)
        title = f"{plural(len(absent), 'published figure')} without a value in this run"
        blocks.append(doc.Fold(title, (figures,), rank=Rank.EXTRA) if shown else figures)
    baseline = replication.name(replication.analysis.baseline)
    heads = "environment", f"published value / {study.baseline}", f"measured median / {baseline}"
    values = tuple(tuple(map(say, (row.name, *_values(row, source.shown_unit)))) for row in shown or absent)
    blocks.append(doc.Fold("values", (doc.Table(tuple(map(Column, heads)), values),), rank=Rank.EXTRA))
    soft = f"{comparison_words(study, source)}; {better_words(study, source)}"
    yield doc.Heading(source.title, soft=soft, anchor=anchor)
    if source.note:
        yield say(source.note, tone=Tone.DIM, rank=Rank.EXTRA)
    draw = partial(chart, table, everywhere=everywhere)
    legend = tuple(STYLES.items())
    yield doc.Chart(f"{source.title}: published and measured", draw, legend, fallback=tuple(blocks))


def _reasons(rows: Sequence[ComparedRow | PairRow | SpreadRow]) -> doc.Listing:
    return doc.Listing(tuple(say(each, tone=Tone.DIM) for each in not_measured(rows)))


def _row(row: ComparedRow, *, everywhere: bool) -> tuple[doc.Sentence, ...]:
    measured: list[doc.Inline] = [measured_text(row)]
    if row.measured is not None:
        verdict = f"{verdict_word(row.measured.verdict)}, {plural(row.measured.blocks, 'round')}"
        measured += [doc.Break(), verdict]
    if row.outside:
        measured += [doc.Break(), "published figure outside"]
    tone = TONES.get(row.verdict, Tone.DIM)
    words = direction_words(row, everywhere=everywhere)
    published = say(published_text(row.published), doc.Break(), row.published.proof)
    return say(row.name), published, say(*measured), say(words, tone=tone)


def _values(row: ComparedRow, shown: str) -> tuple[str, str]:
    """Return the published value and baseline, and the measured medians."""
    published = " / ".join(
        "–" if value is None else f"{plain(value)} {shown}" for value in (row.published.value, row.published.baseline)
    )
    if row.measured is None:
        return published, "–"
    values = (row.measured.value, row.measured.baseline_value)
    unit = unit_as(shown, row.unit) or shared_unit(values, row.unit)
    return published, " / ".join(quantity(each, row.unit, unit) for each in values)


def _cells(replication: Replication) -> Iterator[doc.Block]:
    """Return the tables of paired differences and of spreads; in a fold if nothing of a table is measured."""
    tables: list[tuple[tuple[Column, ...], Pairs | Spreads, list[tuple[doc.Text, ...]]]] = []
    for pairs in replication.pairs:
        tables.append((PAIR_COLUMNS, pairs, [pair_cells(row, pairs) for row in pairs.rows]))
    for spreads in replication.spreads:
        tables.append((SPREAD_COLUMNS, spreads, [spread_cells(row, spreads) for row in spreads.rows]))
    for columns, table, cells in tables:
        blocks: list[doc.Block] = [doc.Table(columns, tuple(tuple(map(say, row)) for row in cells))]
        blocks += [_reasons(table.rows)] if any(row.measured is None for row in table.rows) else []
        if table.source.note:
            blocks.insert(0, say(table.source.note, tone=Tone.DIM, rank=Rank.EXTRA))
        if all(row.measured is None for row in table.rows):
            yield doc.Fold(f"{table.source.title}: not measured in this run", tuple(blocks))
        else:
            yield from (doc.Heading(table.source.title), *blocks)


def _setup(replication: Replication, store: RunStore) -> Iterator[doc.Block]:
    """Return the differences between the two setups, and notes on the published figures: only with all details."""
    study, analysis = replication.study, replication.analysis
    rows = tuple(tuple(map(say, row)) for row in setup_rows(study, store, analysis))
    lists = [
        ("Differences between this run's environments other than isolation", remark_texts(analysis.confounders)),
        ("Known oddities in the published figures", study.oddities),
        ("Published figures without a counterpart", [f"{places}: {why}" for places, why in left_out(study)]),
        ("How to read this", reading(study, analysis)),
    ]
    yield doc.Heading("What was different", anchor="setup", rank=Rank.EXTRA)
    yield say(WHY_RATIOS, rank=Rank.EXTRA)
    yield doc.Table((Column("setup"), Column("published"), Column("this run")), rows, rank=Rank.EXTRA)
    for number, (title, lines) in enumerate(lists, 1):
        if lines:
            yield doc.Heading(title, anchor=f"more{number}", rank=Rank.EXTRA)
            yield doc.Listing(tuple(map(say, lines)), rank=Rank.EXTRA)
