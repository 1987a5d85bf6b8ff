"""A fleet in the terminal: outliers, a table of typical costs, and remarks."""

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from weighbridge.analysis.fleet import Fleet, FleetMetric
from weighbridge.analysis.fleet_changes import FleetsCompared, controls, unit_name
from weighbridge.report.fleet_page import odd_lines
from weighbridge.report.screen import print_screen
from weighbridge.report.terminal_layout import fitted_table, indented, keep_no_break_spaces, styled
from weighbridge.report.text.environments import names_over_runs, use_display_names
from weighbridge.report.text.fleet import (
    amount,
    changed_facts_words,
    changes_answer,
    condition_lines,
    controls_answer,
    fleet_answer,
    fleet_title,
    left_out_lines,
    range_text,
    trust_lines,
)

HEAD_LINES = 3
"""Outliers that are named before the table; further ones come after it."""


def print_fleet(
    fleet: Fleet, console: Console, compared: FleetsCompared | None = None, *, pages: Sequence[str] = ()
) -> None:
    """Print a fleet on a screen. ``pages``: lines that say where its page is."""
    keep_no_break_spaces()
    with use_display_names(names_over_runs(run.isolation for run in fleet.runs)):
        odd = [f"{each.sentence}{f' {each.unlike}.' if each.unlike else ''}" for each in odd_lines(fleet)]
        head: list[RenderableType] = [styled(f"{fleet.study}: {fleet_answer(fleet)}", "bold")]
        head += [indented(each, "bold yellow") for each in odd[:HEAD_LINES]]
        head += [styled(each, "bold red") for each in trust_lines(fleet)]
        if compared is not None:
            head.append(styled(changes_answer(compared), "bold"))
        remarks = [indented(each, "yellow") for each in odd[HEAD_LINES:]]
        if sentence := controls_answer(controls(fleet), fleet.baseline):
            remarks.append(indented(sentence, "yellow"))
        if compared is not None and (words := changed_facts_words(compared, _changed(compared))):
            remarks.append(indented(f"changed facts: {words}", "yellow"))
        remarks += [indented(f"left out: {each}", "yellow") for each in left_out_lines(fleet)]
        remarks += [indented(each) for each in condition_lines(fleet)]

        def foot(hidden: int) -> list[Text]:
            more = [styled(f"{hidden} more remark{'' if hidden == 1 else 's'} on the page", "dim")] if hidden else []
            return [*more, *map(styled, pages)]

        print_screen(console, head, _tables(fleet, console.width), remarks, foot)


def _changed(compared: FleetsCompared) -> list[str]:
    return [*dict.fromkeys(name for each in compared.shifts for row in each.different for name in row.machines)]


def _tables(fleet: Fleet, width: int) -> Iterator[Sequence[RenderableType]]:
    """Return the table of costs and own values, outliers first, with fewer and fewer rows."""
    metrics = [each for each in fleet.metrics if each.fleet is not None]
    metrics.sort(key=lambda each: not (each.odd_machines or each.odd_pairs))
    what = "next pair" if fleet.size == 2 else "next machine"
    for shown in range(len(metrics), 0, -1):
        rows = [[styled(each) for each in ("", "typical [95%]", what, "outliers")]]
        rows += [_row(each) for each in metrics[:shown]]
        rest = len(metrics) - shown
        yield [fitted_table(rows, width, narrowed=(2, 1)), *([indented(f"and {rest} more", "dim")] if rest else [])]
    yield []


def _row(metric: FleetMetric) -> list[Text]:
    odd = [*(each.machine for each in metric.odd_machines), *(unit_name(each.machines) for each in metric.odd_pairs)]
    number = f"{len(odd)}: {', '.join(odd)}" if 0 < len(odd) <= 2 else str(len(odd) or "none")
    assert metric.fleet is not None
    judged = bool(metric.fleet.machines)
    return [
        styled(fleet_title(metric)), styled(amount(metric, metric.fleet.typical)),
        styled(range_text(metric, metric.fleet.prediction)),
        styled(number if judged else "–", "bold yellow" if odd else "dim"),
    ]  # fmt: skip
