"""Several runs in the terminal: the changes between them, then a table per metric; and the runs of a folder."""

import shlex
from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from weighbridge.analysis.between_runs import ChangeRow, MetricChanges, RunPair, RunsCompared
from weighbridge.analysis.history import History, PastRun
from weighbridge.report.screen import print_screen
from weighbridge.report.terminal_layout import (
    STYLES,
    SplitTable,
    fitted_table,
    indented,
    keep_no_break_spaces,
    styled,
    verdict_text,
)
from weighbridge.report.text.between_runs import (
    HOW_TO_READ,
    NOTHING_CHANGED,
    beside_verdict,
    brief_pair_answer,
    change_amount,
    change_sentence,
    change_verdict,
    changes_in_short,
    disturbance_sentence,
    fact_lines,
    floor_words,
    on_purpose_words,
    only_lines,
    own_values_words,
    pair_answer,
    run_letter,
    run_words,
    series_names,
    setting_words,
    shown_as,
    trust_words,
    why_no_own_values,
)
from weighbridge.report.text.conditions import date_words
from weighbridge.report.text.environments import display_name, names_of, names_of_runs, use_display_names
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.trust import trust_sentence
from weighbridge.report.text.verdicts import cost_text

PEOPLE_COMPARE = "to test whether two runs differ: weighbridge compare RUN RUN"


# -- runs compared ---------------------------------------------------------------------------------


def print_compared(
    comparison: RunsCompared,
    console: Console,
    *,
    all_metrics: bool = False,
    runs: Sequence[str] = ("RUN", "RUN"),
    pages: Sequence[str] = (),
) -> None:
    """Print runs that were compared to `console`: a screen, or with `all_metrics` a table of every metric.

    `runs`: the run directories, as the last lines name them. `pages`: lines that say where its page is.
    """
    keep_no_break_spaces()
    with use_display_names(names_of_runs(comparison)):
        if not all_metrics:
            _print_screen(comparison, console, runs, pages)
            return
        for part in _compared(comparison, console.width):
            console.print(part)
        for line in pages:
            console.print(styled(line), soft_wrap=True)


def _print_screen(comparison: RunsCompared, console: Console, runs: Sequence[str], pages: Sequence[str]) -> None:
    head = [styled(run_words(run_letter(number), run)) for number, run in enumerate(comparison.runs)]
    remarks: list[RenderableType] = []
    for number, run in enumerate(comparison.runs):
        head[number].truncate(console.width, overflow="ellipsis")
        if run.analysis.trust.trusted is False:
            remarks.append(indented(f"{run_letter(number)}: {trust_sentence(run.analysis)}", "bold red"))
    several, changes = len(comparison.pairs) > 1, []
    for number, pair in enumerate(comparison.pairs, 1):
        first, second = run_letter(0), run_letter(number)
        head.append(styled(brief_pair_answer(pair, first, second), "bold"))
        changes += [
            (f"{second}: " if several else "", metric, row)
            for metric in pair.headlines
            for row in metric.rows
            if not row.aa
        ]
        if sentence := disturbance_sentence(pair, first, second):
            remarks.append(indented(sentence, "bold yellow"))
        baseline = pair.first.analysis.baseline
        remarks += [
            indented(f"{metric_title(metric.before)}, {words}", STYLES["different"])
            for metric in pair.headlines
            for row in metric.rows
            if shown_as(row) == "different" and (words := beside_verdict(metric, row))
        ]
        remarks += [
            indented(change_sentence(metric, row, first, second, baseline), STYLES["different"])
            for metric in pair.metrics
            for row in metric.rows
            if not metric.headline and shown_as(row) == "different"
        ]
        lines = [*fact_lines(pair.facts), *map(setting_words, pair.settings), *only_lines(pair.only, first, second)]
        remarks += [indented(f"changed in {second}: {line}", "yellow") for line in lines if line != NOTHING_CHANGED]

    def foot(hidden: int) -> list[Text]:
        more = f"{hidden} more remark{'' if hidden == 1 else 's'}, " if hidden else ""
        command = styled(f"weighbridge compare {shlex.join(runs)} --all", "dim")
        heading = styled(f"{more}all tables: ", "dim")
        one_line = heading.cell_len + command.cell_len <= console.width
        return [*([heading.append(command)] if one_line else [heading, command]), *map(styled, pages)]

    print_screen(console, head, _change_lists(changes), remarks, foot)


def _change_lists(changes: Sequence[tuple[str, MetricChanges, ChangeRow]]) -> Iterator[Sequence[RenderableType]]:
    """Give a table of the changes, those that are different first, with fewer and fewer of them."""
    order = ("different", "inconclusive", "equivalent")
    kinds = [order.index(kind) if (kind := shown_as(row)) in order else len(order) for _, _, row in changes]
    ordered = [each for _, each in sorted(zip(kinds, changes, strict=True), key=lambda each: each[0])]
    for shown in range(len(ordered), 0, -1):
        listed = Table.grid(padding=(0, 2))
        listed.add_column(overflow="fold")
        for which, metric, row in ordered[:shown]:
            name = f"{which}{display_name(row.environment)}, {metric_title(metric.before)}"
            amount = change_amount(row, metric.before.unit)
            listed.add_row(styled(name), styled(amount), verdict_text(change_verdict(row), shown_as(row)))
        rest = len(ordered) - shown
        yield [Text(), listed, *([indented(f"and {rest} more", "dim")] if rest else []), Text()]
    yield []


def _compared(comparison: RunsCompared, width: int) -> Iterator[RenderableType]:
    for number, run in enumerate(comparison.runs):
        yield styled(run_words(run_letter(number), run))
        if run.analysis.trust.trusted is False:
            yield indented(trust_sentence(run.analysis), "bold red")
    for number, pair in enumerate(comparison.pairs, 1):
        yield from _pair(pair, run_letter(0), run_letter(number), width)
    yield styled(f"\n{HOW_TO_READ}", "dim")


def _pair(pair: RunPair, first: str, second: str, width: int) -> Iterator[RenderableType]:
    yield styled(f"\n{pair_answer(pair, first, second)}", "bold")
    if sentence := disturbance_sentence(pair, first, second):
        yield styled(sentence, "bold yellow")
    yield styled(f"\nwhat changed from {first} to {second}", "bold")
    for line in fact_lines(pair.facts):
        yield indented(line, "yellow" if pair.facts else "")
    if pair.settings:
        yield styled("the study changed", "bold")
        yield from (indented(setting_words(each), "yellow") for each in pair.settings)
    yield from (indented(line, "yellow") for line in only_lines(pair.only, first, second))
    for metric in pair.metrics:
        if metric.rows:
            yield styled(f"\n{metric_title(metric.before)} ({metric.before.better} is better)", "bold")
            yield _changes_table(metric, first, second, width)
            yield from (indented(line, "dim") for line in _beside(metric))
    if why := why_no_own_values(pair.no_own_values):
        yield styled(f"\n{why}", "yellow")
    elif rates := _own_values(pair, first, second):
        beside = f" (changed on purpose: {on_purpose_words(pair)})" if pair.on_purpose else ""
        head = f"absolute rates{beside}, without verdicts (runs were not interleaved)"
        yield styled(f"\n{head}", "bold")
        yield rates


def _changes_table(metric: MetricChanges, first: str, second: str, width: int) -> RenderableType:
    """Return both runs' costs, one above the other, with the change; if `width` is too small, verdicts fold first."""
    unit = metric.before.unit
    heads = ("environment", f"cost in {first}\ncost in {second} [95%]", "change [95%]", "verdict")
    rows = [[styled(each) for each in heads]]
    for row in metric.rows:
        costs = f"{cost_text(row.before, unit)}\n{cost_text(row.after, metric.after.unit)}"
        verdict = verdict_text(change_verdict(row), shown_as(row))
        rows.append([styled(display_name(row.environment)), styled(costs), styled(change_amount(row, unit)), verdict])
    return fitted_table(rows, width, narrowed=(2, 1))


def _beside(metric: MetricChanges) -> Iterator[str]:
    """Return the reasons of verdicts, and both runs' noise floors together."""
    unit = metric.before.unit
    for row in metric.rows:
        if words := beside_verdict(metric, row):
            yield f"{display_name(row.environment)}: {words}"
    change = next((row.change for row in metric.rows if row.change is not None and not row.aa), None)
    if change is not None and change.floor is not None:
        yield f"noise floor of both runs: {floor_words(change, unit)}"


def _own_values(pair: RunPair, first: str, second: str) -> RenderableType | None:
    rows = [
        [metric_title(metric.before), display_name(own.environment), *own_values_words(metric, own)]
        for metric in pair.metrics
        for own in metric.own
    ]
    heads = ["metric", "environment", f"median {first}", f"median {second}", "change"]
    return SplitTable(heads, rows) if rows else None


# -- the runs of a folder --------------------------------------------------------------------------


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
