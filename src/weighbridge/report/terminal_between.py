"""The runs of a folder in the terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType

from weighbridge.analysis.history import History, PastRun
from weighbridge.report.terminal_layout import (
    SplitTable,
    keep_no_break_spaces,
    styled,
)
from weighbridge.report.text.between_runs import (
    changes_in_short,
    series_names,
    trust_words,
)
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.environments import display_name, names_of, use_display_names
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.verdicts import cost_text

PEOPLE_COMPARE = "to test whether two runs differ: weighbridge compare RUN RUN"


def print_history(run_history: History, console: Console) -> None:
    """Print a table of the runs, oldest first, one of their primary metrics' costs, and the facts that changed."""
    keep_no_break_spaces()
    for part in _history(run_history):
        console.print(part)


def _history(run_history: History) -> Iterator[RenderableType]:
    if not run_history.runs:
        yield styled(f"{run_history.folder}: no readable run")
        return
    heads = ["#", "started", "run", "study", "rounds", "control"]
    rows = [
        [str(number), date_words(past.run.created), past.run.name, past.run.analysis.study, str(past.blocks),
         trust_words(past.run)]
        for number, past in enumerate(run_history.runs, 1)
    ]  # fmt: skip
    yield SplitTable(heads, rows)
    by_series, series_name = _by_series(run_history), series_names(run_history)
    for series, runs in by_series.items():
        names, costs = _costs(runs)
        if names:
            against = runs[0][1].run.analysis.baseline
            of = f" of {series_name[series]} against {against}" if len(by_series) > 1 else ""
            yield styled(f"costs of primary metrics [95%]{of}, by run", "bold")
            yield SplitTable(["#", *names], costs)
    for number, past in enumerate(run_history.runs, 1):
        if past.changed:
            yield styled(f"before run {number} changed: {changes_in_short(past.changed)}", "yellow")
    yield styled(PEOPLE_COMPARE, "dim")


def _by_series(run_history: History) -> dict[int, list[tuple[int, PastRun]]]:
    """Return the runs with their numbers, by series."""
    grouped: dict[int, list[tuple[int, PastRun]]] = {}
    for number, past in enumerate(run_history.runs, 1):
        grouped.setdefault(past.series, []).append((number, past))
    return grouped


def _costs(runs: Sequence[tuple[int, PastRun]]) -> tuple[list[str], list[list[str]]]:
    """Return the heads (environment and metric) and a row for each run of a study."""
    names = list(dict.fromkeys(name for _, past in runs for name in _by_name(past)))
    rows = []
    for number, past in runs:
        mine = _by_name(past)
        rows.append([str(number), *(mine.get(name, "–") for name in names)])
    return names, rows


def _by_name(past: PastRun) -> dict[str, str]:
    with use_display_names(names_of(past.run.analysis)):
        return {
            f"{display_name(row.environment)} {metric_title(report)}": cost_text(row, report.unit)
            for report, row in past.costs
        }
