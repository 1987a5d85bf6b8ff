"""The pages of several runs: runs compared, with every chart of all of them; and the history of a folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weighbridge.analysis.between_runs import MetricChanges, RunPair, RunsCompared
from weighbridge.analysis.history import History, PastRun
from weighbridge.analysis.results import MetricReport
from weighbridge.report.charts import between, history
from weighbridge.report.charts.base import MarkStyle
from weighbridge.report.page import FULL_PX, HALF_PX, ChartPlace, Page, PageCharts, write_page
from weighbridge.report.text.between_runs import (
    HOW_TO_READ,
    KINDS,
    beside_verdict,
    blocks_words,
    change_amount,
    change_verdict,
    cost_words,
    disturbance_sentence,
    fact_lines,
    fact_words,
    floor_words,
    on_purpose_words,
    only_lines,
    own_values_words,
    pair_answer,
    run_letter,
    setting_words,
    shown_as,
    trust_words,
    why_no_own_values,
    why_skipped,
)
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.environments import display_name, names_of, names_of_runs, use_display_names
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.trust import others_words, trust_sentence
from weighbridge.report.text.verdicts import cost_text

# -- runs compared ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ComparedRunRow:
    """One of the runs, in words."""

    letter: str
    name: str
    study: str
    date: str
    blocks: str
    trust: str
    others: str
    """What others took of the machine."""
    version: str
    untrusted: str
    """Why it is not trusted; empty where it is."""


@dataclass(frozen=True, slots=True)
class PairSection:
    """The changes from the first run to another one, in words."""

    title: str
    answer: str
    disturbance: str
    """That others did not take as much of the machine in both runs; empty where they did."""
    facts: Sequence[tuple[str, str]]
    """The kind of each changed fact, and its words."""
    nothing: str
    """Said where no fact changed."""
    settings: Sequence[str]
    only: Sequence[str]
    chart: ChartPlace
    styles: Mapping[str, MarkStyle]
    why: str
    """Why absolute rates are not compared."""


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One environment's cost in two runs, in words."""

    environment: str
    first: str
    second: str
    before: str
    after: str
    change: str
    verdict: str
    style: str
    why: str


@dataclass(frozen=True, slots=True)
class MetricSection:
    """One metric in all runs: its costs, its changes in each pair, and the environments' own values."""

    id: str
    title: str
    better: str
    headline: bool
    chart: ChartPlace
    rows: Sequence[ChangeLine]
    floors: Sequence[str]
    own: Sequence[Sequence[str]]
    on_purpose: Sequence[tuple[str, str]]
    """The letter of a run, and which facts were changed on purpose before it: for beside its own values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePage(Page):
    """The page of runs compared."""

    template = "compare.html.j2"
    question: str
    baseline: str
    runs: Sequence[ComparedRunRow]
    pairs: Sequence[PairSection]
    metrics: Sequence[MetricSection]
    styles: Mapping[str, MarkStyle]
    how_to_read: str = HOW_TO_READ


def write_comparison(comparison: RunsCompared, path: Path) -> None:
    """Write the page as one offline file. Raises OSError where it cannot be written."""
    with use_display_names(names_of_runs(comparison)):
        write_page(_compare_page(comparison), path)


def _compare_page(comparison: RunsCompared) -> ComparePage:
    page = PageCharts()
    runs = [
        ComparedRunRow(
            letter=run_letter(number), name=run.name, study=run.analysis.study,
            date=date_words(run.created) if run.created else "", blocks=blocks_words(run), trust=trust_words(run),
            others=others_words(run.analysis), version=run.version,
            untrusted=trust_sentence(run.analysis) if run.analysis.trust.trusted is False else "",
        )
        for number, run in enumerate(comparison.runs)
    ]  # fmt: skip
    return ComparePage(
        title=f"Runs compared: {comparison.first.analysis.study}",
        charts=page,
        question=comparison.first.analysis.question,
        baseline=display_name(comparison.first.analysis.baseline),
        runs=runs,
        pairs=[_pair(page, pair, number) for number, pair in enumerate(comparison.pairs, 1)],
        metrics=[_metric(page, comparison, report, number) for number, report in enumerate(_reports(comparison), 1)],
        styles=between.run_styles(comparison),
    )


def _reports(comparison: RunsCompared) -> list[MetricReport]:
    """The first run's metrics that some other run has too, headlines first."""
    shared = {
        metric.before.metric_id: metric.before for pair in comparison.pairs for metric in pair.metrics if metric.rows
    }
    reports = [shared[key] for each in comparison.first.analysis.metrics if (key := each.metric_id) in shared]
    return sorted(reports, key=lambda each: (not each.headline, each.resource_use))


def _pair(page: PageCharts, pair: RunPair, number: int) -> PairSection:
    first, second = run_letter(0), run_letter(number)
    return PairSection(
        title=f"{first} → {second}",
        answer=pair_answer(pair, first, second),
        disturbance=disturbance_sentence(pair, first, second),
        facts=[(KINDS[each.kind], fact_words(each)) for each in pair.facts],
        nothing="" if pair.facts else fact_lines(())[0],
        settings=[setting_words(each) for each in pair.settings],
        only=only_lines(pair.only, first, second),
        chart=page.place(between.changes_of_pair(pair), static_px=FULL_PX),
        styles=between.environment_styles(pair),
        why=why_no_own_values(pair.no_own_values),
    )


def _metric(page: PageCharts, comparison: RunsCompared, report: MetricReport, number: int) -> MetricSection:
    changes = [(second, each) for second, pair in enumerate(comparison.pairs, 1) for each in _of(pair, report)]
    reports = {run_letter(0): report, **{run_letter(second): each.after for second, each in changes}}
    return MetricSection(
        id=f"m{number}",
        title=metric_title(report),
        better=report.better,
        headline=report.headline,
        chart=page.place(between.costs_of_runs(reports), static_px=HALF_PX),
        rows=[row for second, each in changes for row in _rows(each, run_letter(0), run_letter(second))],
        floors=[words for second, each in changes for words in _floor(each, run_letter(second))],
        own=[
            (run_letter(second), display_name(own.environment), *own_values_words(each, own))
            for second, each in changes
            for own in each.own
        ],
        on_purpose=[
            (run_letter(second), on_purpose_words(pair))
            for second, pair in enumerate(comparison.pairs, 1)
            if pair.on_purpose
        ],
    )


def _of(pair: RunPair, report: MetricReport) -> list[MetricChanges]:
    return [each for each in pair.metrics if each.before.metric_id == report.metric_id]


def _floor(metric: MetricChanges, second: str) -> list[str]:
    """Both runs' noise floors together, where they are known."""
    changes = [row.change for row in metric.rows if row.change is not None and row.change.floor is not None]
    return [f"{run_letter(0)} and {second} {floor_words(each, metric.before.unit)}" for each in changes[:1]]


def _rows(metric: MetricChanges, first: str, second: str) -> list[ChangeLine]:
    unit = metric.before.unit
    return [
        ChangeLine(
            environment=display_name(row.environment), first=first, second=second, before=cost_text(row.before, unit),
            after=cost_text(row.after, metric.after.unit), change=change_amount(row, unit),
            verdict=change_verdict(row), style=shown_as(row), why=beside_verdict(metric, row),
        )
        for row in metric.rows
    ]  # fmt: skip


# -- the history of a folder -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CostHistory:
    """One headline cost over the runs, and before which of them what changed."""

    id: str
    title: str
    study: str
    chart: ChartPlace
    changes: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class PastRunLine:
    """One run of the folder, in words."""

    started: str
    study: str
    id: str
    name: str
    blocks: int
    trust: str
    costs: Sequence[str]
    changed: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage(Page):
    """The page of a folder's runs."""

    template = "history.html.j2"
    folder: str
    costs: Sequence[CostHistory]
    runs: Sequence[PastRunLine]
    styles: Mapping[str, MarkStyle]
    skipped: Sequence[tuple[str, str]]


def write_history(run_history: History, path: Path) -> None:
    """Write the page as one offline file. Raises OSError where it cannot be written."""
    page = PageCharts()
    costs = []
    for number, series in enumerate(history.series_of(run_history), 1):
        numbers = sorted({each for each, *_ in series.points})
        changes = [
            (date_words(run_history.runs[each - 1].run.created), words)
            for each, words in history.changes(run_history, numbers)
        ]
        drawn = page.place(history.over_runs(run_history, series))
        costs.append(CostHistory(f"h{number}", series.title, series.study, drawn, changes))
    runs = [
        PastRunLine(
            started=date_words(past.run.created), study=past.run.analysis.study, id=past.run.analysis.run_id,
            name=past.run.name, blocks=past.blocks, trust=trust_words(past.run),
            costs=_past_costs(past),
            changed=fact_lines(past.changed) if past.changed else [],
        )
        for past in reversed(run_history.runs)
    ]  # fmt: skip
    folder = run_history.folder.resolve().name
    shown = HistoryPage(
        title=f"History of {folder}",
        charts=page,
        folder=folder,
        costs=costs,
        runs=runs,
        styles=history.environment_styles(run_history),
        skipped=[(each.name, why_skipped(each)) for each in run_history.skipped],
    )
    write_page(shown, path)


def _past_costs(past: PastRun) -> list[str]:
    with use_display_names(names_of(past.run.analysis)):
        return [cost_words(report, row) for report, row in past.costs]
