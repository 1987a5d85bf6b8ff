"""The page of runs compared: what changed between them, and every chart with all of them."""

from pathlib import Path
from typing import Any

from weighbridge.analysis.between_runs import MetricChanges, RunPair, RunsCompared
from weighbridge.analysis.results import MetricReport
from weighbridge.model.level import Level
from weighbridge.report.charts.between import changes_of_pair, costs_of_runs, environment_colours, run_colours
from weighbridge.report.page import FULL_PX, HALF_PX, place, render
from weighbridge.report.text.between_runs import (
    HOW_TO_READ,
    KINDS,
    blocks_words,
    change_amount,
    change_verdict,
    fact_lines,
    fact_words,
    floor_words,
    only_lines,
    own_values_words,
    pair_answer,
    run_letter,
    setting_words,
    shown_as,
    trust_words,
    why_inconclusive,
    why_no_own_values,
)
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.environments import displayed_runs
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.trust import trust_sentence
from weighbridge.report.text.verdicts import cost_text


def write_comparison(found: RunsCompared, path: Path) -> None:
    """Write the page as one offline file. Raises OSError where it cannot be written."""
    specs: dict[str, str] = {}
    found = displayed_runs(found)
    runs = [
        {
            "letter": run_letter(number), "name": run.name, "study": run.analysis.study, "id": run.analysis.run_id,
            "date": date_words(run.created) if run.created else "", "blocks": blocks_words(run),
            "trust": trust_words(run), "version": run.version,
            "untrusted": trust_sentence(run.analysis) if run.analysis.trust.trusted is False else "",
        }
        for number, run in enumerate(found.runs)
    ]  # fmt: skip
    page = render(
        "compare.html.j2",
        specs,
        question=found.first.analysis.question,
        baseline=found.first.analysis.baseline,
        runs=runs,
        pairs=[_pair(specs, pair, number) for number, pair in enumerate(found.pairs, 1)],
        metrics=[_metric(specs, found, report, number) for number, report in enumerate(_reports(found), 1)],
        colours=run_colours(found),
        how_to_read=HOW_TO_READ,
    )
    path.write_text(page, encoding="utf-8", errors="replace")


def _reports(found: RunsCompared) -> list[MetricReport]:
    """The first run's metrics that some other run has too, headlines first."""
    shared = {_key(metric.before): metric.before for pair in found.pairs for metric in pair.metrics if metric.rows}
    reports = [shared[key] for each in found.first.analysis.metrics if (key := _key(each)) in shared]
    return sorted(reports, key=lambda each: (not each.headline, each.resource_use))


def _pair(specs: dict[str, str], pair: RunPair, number: int) -> dict[str, Any]:
    first, second = run_letter(0), run_letter(number)
    return {
        "title": f"{first} → {second}",
        "answer": pair_answer(pair, first, second),
        "facts": [(KINDS[each.kind], fact_words(each)) for each in pair.facts],
        "nothing": "" if pair.facts else fact_lines(())[0],
        "settings": [setting_words(each) for each in pair.settings],
        "only": only_lines(pair.only, first, second),
        "chart": place(specs, changes_of_pair(pair), static_px=FULL_PX),
        "colours": environment_colours(pair),
        "why": why_no_own_values(pair.no_own_values),
    }


def _metric(specs: dict[str, str], found: RunsCompared, report: MetricReport, number: int) -> dict[str, Any]:
    """One metric: its chart with all runs, its changes in each pair, and the environments' own values."""
    changes = [(second, each) for second, pair in enumerate(found.pairs, 1) for each in _of(pair, report)]
    reports = {run_letter(0): report, **{run_letter(second): each.after for second, each in changes}}
    return {
        "id": f"m{number}",
        "title": metric_title(report),
        "better": report.better,
        "headline": report.headline,
        "chart": place(specs, costs_of_runs(reports), static_px=HALF_PX),
        "rows": [row for second, each in changes for row in _rows(each, run_letter(0), run_letter(second))],
        "floors": [words for second, each in changes for words in _floor(each, run_letter(second))],
        "own": [
            (run_letter(second), own.environment, *own_values_words(each, own))
            for second, each in changes
            for own in each.own
        ],
    }


def _of(pair: RunPair, report: MetricReport) -> list[MetricChanges]:
    return [each for each in pair.metrics if _key(each.before) == _key(report)]


def _floor(metric: MetricChanges, second: str) -> list[str]:
    """Both runs' noise floors together, where they are known."""
    changes = [row.change for row in metric.rows if row.change is not None and row.change.floor is not None]
    return [f"{run_letter(0)} and {second} {floor_words(each, metric.before.unit)}" for each in changes[:1]]


def _key(report: MetricReport) -> tuple[str, Level, str]:
    return report.workload, report.level, report.metric


def _rows(metric: MetricChanges, first: str, second: str) -> list[dict[str, str]]:
    unit = metric.before.unit
    return [
        {
            "environment": row.environment, "first": first, "second": second, "before": cost_text(row.before, unit),
            "after": cost_text(row.after, metric.after.unit), "change": change_amount(row, unit),
            "verdict": change_verdict(row), "style": shown_as(row), "why": why_inconclusive(row, unit),
        }
        for row in metric.rows
    ]  # fmt: skip
