"""The page of a folder's runs: each headline cost over time, and the runs as a table."""

from pathlib import Path

from weighbridge.analysis.history import History
from weighbridge.report.charts.history import changes, environment_colours, over_runs, series_of
from weighbridge.report.page import FULL_PX, place, render
from weighbridge.report.text.between_runs import cost_words, fact_lines, trust_words, why_skipped
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.environments import displayed_history


def write_history(found: History, path: Path) -> None:
    """Write the page as one offline file. Raises OSError where it cannot be written."""
    specs: dict[str, str] = {}
    found = displayed_history(found)
    charts = []
    for number, series in enumerate(series_of(found), 1):
        numbers = sorted({each for each, *_ in series.points})
        charts.append(
            {
                "id": f"h{number}",
                "title": series.title,
                "study": series.study,
                "chart": place(specs, over_runs(found, series), static_px=FULL_PX),
                "changes": [
                    (date_words(found.runs[each - 1].run.created), words) for each, words in changes(found, numbers)
                ],
            }
        )
    runs = [
        {
            "when": date_words(past.run.created), "study": past.run.analysis.study, "id": past.run.analysis.run_id,
            "name": past.run.name, "blocks": past.blocks, "trust": trust_words(past.run),
            "costs": [cost_words(report, row) for report, row in past.costs],
            "changed": fact_lines(past.changed) if past.changed else [],
        }
        for past in reversed(found.runs)
    ]  # fmt: skip
    page = render(
        "history.html.j2", specs, folder=found.folder.resolve().name, charts=charts, runs=runs,
        colours=environment_colours(found), skipped=[(each.name, why_skipped(each)) for each in found.skipped],
    )  # fmt: skip
    path.write_text(page, encoding="utf-8", errors="replace")
