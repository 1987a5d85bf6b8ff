"""The runs of a folder in the terminal, oldest first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weighbridge.analysis.history import History, PastRun
from weighbridge.model.text import printable
from weighbridge.report.terminal_columns import SplitTable
from weighbridge.report.terminal_wrap import keep_no_break_spaces
from weighbridge.report.text.between_runs import changes_in_short, trust_words
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.environments import displayed_history
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.verdicts import cost_text

if TYPE_CHECKING:
    from rich.console import Console

PEOPLE_COMPARE = "whether two of them differ: weighbridge compare RUN RUN"


def print_history(found: History, console: "Console") -> None:
    """Print a table of the runs and one of their headline costs, and which facts changed before a run."""
    from rich.text import Text

    keep_no_break_spaces()
    found = displayed_history(found)
    if not found.runs:
        console.print(Text(printable(f"{found.folder}: no run that can be read")))
        return
    heads = ["#", "begun", "run", "study", "blocks", "A/A arm"]
    rows = [
        [str(number), date_words(past.run.created), past.run.name, past.run.analysis.study, str(past.blocks),
         trust_words(past.run)]
        for number, past in enumerate(found.runs, 1)
    ]  # fmt: skip
    console.print(SplitTable(heads, rows))
    studies = _by_question(found)
    for question, runs in studies.items():
        names, costs = _costs(runs)
        if names:
            of = f" of {question[0]} against {question[1]}" if len(studies) > 1 else ""
            console.print(Text(printable(f"headline costs [95 %]{of}, by run"), style="bold"))
            console.print(SplitTable(["#", *names], costs))
    for number, past in enumerate(found.runs, 1):
        if past.changed:
            console.print(Text(printable(f"before run {number} changed: {changes_in_short(past.changed)}"), "yellow"))
    console.print(Text(PEOPLE_COMPARE, style="dim"))


def _by_question(found: History) -> dict[tuple[str, str], list[tuple[int, PastRun]]]:
    """The runs with their numbers, by study and baseline: costs of others are no series."""
    grouped: dict[tuple[str, str], list[tuple[int, PastRun]]] = {}
    for number, past in enumerate(found.runs, 1):
        question = past.run.analysis.study, past.run.analysis.baseline
        grouped.setdefault(question, []).append((number, past))
    return grouped


def _costs(runs: Sequence[tuple[int, PastRun]]) -> tuple[list[str], list[list[str]]]:
    """The heads (environment and metric) and a row for each run of a study."""
    names = list(dict.fromkeys(name for _, past in runs for name in _by_name(past)))
    rows = []
    for number, past in runs:
        mine = _by_name(past)
        rows.append([str(number), *(mine.get(name, "–") for name in names)])
    return names, rows


def _by_name(past: PastRun) -> dict[str, str]:
    return {f"{row.environment} {metric_title(report)}": cost_text(row, report.unit) for report, row in past.costs}
