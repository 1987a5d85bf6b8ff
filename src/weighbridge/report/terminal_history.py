"""The runs of a folder in the terminal, oldest first."""

from typing import TYPE_CHECKING

from weighbridge.analysis.history import History, PastRun
from weighbridge.model.text import printable
from weighbridge.report.terminal_columns import SplitTable
from weighbridge.report.terminal_wrap import keep_no_break_spaces
from weighbridge.report.text.changed_conditions import changes_in_short, trust_words
from weighbridge.report.text.displayed_runs import displayed_history
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.sessions import date_words
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
    names, costs = _costs(found)
    if names:
        console.print(Text("headline costs [95 %], by run", style="bold"))
        console.print(SplitTable(["#", *names], costs))
    for number, past in enumerate(found.runs, 1):
        if past.changed:
            console.print(Text(printable(f"before run {number} changed: {changes_in_short(past.changed)}"), "yellow"))
    console.print(Text(PEOPLE_COMPARE, style="dim"))


def _costs(found: History) -> tuple[list[str], list[list[str]]]:
    """The heads (environment and metric) and a row for each run."""
    names = list(dict.fromkeys(name for past in found.runs for name in _by_name(past)))
    rows = []
    for number, past in enumerate(found.runs, 1):
        mine = _by_name(past)
        rows.append([str(number), *(mine.get(name, "–") for name in names)])
    return names, rows


def _by_name(past: PastRun) -> dict[str, str]:
    return {f"{row.environment} {metric_title(report)}": cost_text(row, report.unit) for report, row in past.costs}
