"""Runs compared, in the terminal: what changed between them, then a table per metric. Plain text when piped."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weighbridge.analysis.between_runs import MetricChanges, RunPair, RunsCompared
from weighbridge.model.text import printable
from weighbridge.report.terminal_columns import SplitTable, longest_line, narrowest, room, table, widths
from weighbridge.report.terminal_matrix import STYLES
from weighbridge.report.terminal_wrap import keep_no_break_spaces
from weighbridge.report.text.between_runs import (
    HOW_TO_READ,
    change_amount,
    change_sentence,
    change_verdict,
    fact_lines,
    floor_words,
    only_lines,
    own_values_words,
    pair_answer,
    run_letter,
    run_words,
    setting_words,
    shown_as,
    why_inconclusive,
    why_no_own_values,
)
from weighbridge.report.text.environments import displayed_runs
from weighbridge.report.text.metric_names import metric_name, metric_title
from weighbridge.report.text.trust import trust_sentence
from weighbridge.report.text.verdicts import cost_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

VERDICT = len("(exploratory)")


def print_compared(found: RunsCompared, console: "Console", *, whole: bool = False) -> None:
    """Print runs that were compared to `console`; `whole`: a table of every metric, not of the headlines alone."""
    keep_no_break_spaces()
    found = displayed_runs(found)
    for number, run in enumerate(found.runs):
        console.print(_text(run_words(run_letter(number), run)))
        if run.analysis.trust.trusted is False:
            console.print(_indented(trust_sentence(run.analysis), "bold red"))
    for number, pair in enumerate(found.pairs, 1):
        for part in _pair(pair, run_letter(0), run_letter(number), console.width, whole=whole):
            console.print(part)
    console.print(_text(f"\n{HOW_TO_READ}", "dim"))
    if not whole and any(not each.headline for pair in found.pairs for each in pair.metrics):
        console.print(_text("every metric has its table with --all", "dim"))


def _pair(pair: RunPair, first: str, second: str, width: int, *, whole: bool) -> "Iterator[RenderableType]":
    baseline = pair.first.analysis.baseline
    yield _text(f"\n{pair_answer(pair, first, second)}", "bold")
    yield _text(f"\nwhat changed from {first} to {second}", "bold")
    for line in fact_lines(pair.facts):
        yield _indented(line, "yellow" if pair.facts else "")
    if pair.settings:
        yield _text("the study is not the same", "bold")
        yield from (_indented(setting_words(each), "yellow") for each in pair.settings)
    yield from (_indented(line, "yellow") for line in only_lines(pair.only, first, second))
    for metric in pair.metrics if whole else pair.headlines:
        if metric.rows:
            yield _text(f"\n{metric_title(metric.before)} ({metric.before.better} is better)", "bold")
            yield _changes_table(metric, first, second, width)
            yield from (_indented(line, "dim") for line in _beside(metric))
    if not whole:
        yield from _others(pair, first, second, baseline)
    if why := why_no_own_values(pair.no_own_values):
        yield _text(f"\n{why}", "yellow")
    elif rates := _own_values(pair, first, second, whole=whole):
        yield _text("\nabsolute rates, which no block protects from what changed in between: no verdicts", "bold")
        yield rates


def _changes_table(metric: MetricChanges, first: str, second: str, width: int) -> "RenderableType":
    """Costs of both runs, one above the other, with the change; where `width` is too small verdicts fold first."""
    from rich.text import Text

    unit = metric.before.unit
    heads = ("environment", f"cost in {first}\ncost in {second} [95 %]", "change [95 %]", "verdict")
    rows = [tuple(_text(each) for each in heads)]
    for row in metric.rows:
        costs = f"{cost_text(row.before, unit)}\n{cost_text(row.after, metric.after.unit)}"
        verdict = Text(printable(change_verdict(row)), style=STYLES.get(shown_as(row), "dim"))
        rows.append((_text(row.environment), _text(costs), _text(change_amount(row, unit)), verdict))
    columns = [[row[number] for row in rows] for number in range(4)]
    least = [longest_line(column) for column in columns]
    least[0] = min(least[0], max(width // 4, narrowest(columns[0])))
    least[-1] = min(least[-1], VERDICT)
    if sum(least) > room(4, width):
        least[1], least[2] = narrowest(columns[1]), narrowest(columns[2])
    return table(columns, widths(columns, least, room(4, width), order=(2, 1, 0, 3)))


def _beside(metric: MetricChanges) -> Iterator[str]:
    """What took a verdict from a change, and both runs' noise floors together."""
    unit = metric.before.unit
    for row in metric.rows:
        if reason := why_inconclusive(row, unit):
            yield f"{row.environment}: {reason}"
    change = next((row.change for row in metric.rows if row.change is not None and not row.aa), None)
    if change is not None and change.floor is not None:
        yield f"noise floor of both runs together: {floor_words(change, unit)}"


def _others(pair: RunPair, first: str, second: str, baseline: str) -> "Iterator[RenderableType]":
    """The metrics without a table: what changed in a sentence each, and how many did not."""
    rows = [(m, row) for m in pair.metrics if not m.headline for row in m.rows if not row.aa]
    different = [each for each in rows if shown_as(each[1]) == "different"]
    if rows:
        yield _text("\nother metrics and resource use", "bold")
        for metric, row in different:
            yield _indented(change_sentence(metric, row, first, second, baseline), STYLES.get("different", ""))
        same = [metric_name(m.before) for m, row in rows if shown_as(row) == "equivalent"]
        yield _indented(
            f"{len(different)} changed, {len(same)} equivalent, {len(rows) - len(different) - len(same)} not decided"
        )


def _own_values(pair: RunPair, first: str, second: str, *, whole: bool) -> "RenderableType | None":
    rows = [
        [metric_title(metric.before), own.environment, *own_values_words(metric, own)]
        for metric in (pair.metrics if whole else pair.headlines)
        for own in metric.own
    ]
    heads = ["metric", "environment", f"median {first}", f"median {second}", "change, blocks alone"]
    return SplitTable(heads, rows) if rows else None


def _text(text: str, style: str = "") -> "Text":
    from rich.text import Text

    return Text(printable(text), style=style)


def _indented(text: str, style: str = "") -> "RenderableType":
    from rich.padding import Padding

    return Padding(_text(text, style), (0, 0, 0, 2), expand=False)
