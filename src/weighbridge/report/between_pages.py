"""The page of the history of a folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weighbridge.analysis.history import History, PastRun
from weighbridge.report.charts import history
from weighbridge.report.charts.base import MarkStyle
from weighbridge.report.page import ChartPlace, Page, PageCharts, write_page
from weighbridge.report.text.between_runs import (
    cost_words,
    fact_lines,
    trust_words,
    why_skipped,
)
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.environments import names_of, use_display_names


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
