"""A run in the terminal: the answer, the matrix, the control and remarks; everything else with ``--all``."""

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from weighbridge.analysis.latency import PERCENTS, LatencyReport
from weighbridge.analysis.next_step import more_rounds, obstacle
from weighbridge.analysis.path_tables import path_tables
from weighbridge.analysis.results import Analysis, Explanation, MetricReport, RemarkPlace
from weighbridge.model.flag import FlagKind
from weighbridge.report.screen import print_screen
from weighbridge.report.terminal_layout import (
    STYLES,
    SplitTable,
    fits,
    fitted_table,
    indented,
    keep_no_break_spaces,
    stacked,
    styled,
    table,
    verdict_text,
)
from weighbridge.report.text.answer import answer
from weighbridge.report.text.conditions import (
    condition_lines,
    durability_of,
    left_out_lines,
    overclaimed_lines,
    session_lines,
    sweep_durability,
)
from weighbridge.report.text.curves import broke_sentences, curve_sentences, curve_title
from weighbridge.report.text.environments import display_name, names_of, reference_words, use_display_names
from weighbridge.report.text.explanation import MOST_SHORTENED, cause_lines, causes_title, explanation_rows
from weighbridge.report.text.formatting import level, plural, quantities, quantity, shared_unit
from weighbridge.report.text.matrix import MatrixCosts, MatrixRow, cost_range, large, matrix, reference_values, small
from weighbridge.report.text.metric_names import difference_unit_of, metric_name, metric_title, titled, value_unit
from weighbridge.report.text.next_step import (
    continuing,
    first_set,
    obstacle_sentence,
    rounds_sentence,
    weigh_again,
)
from weighbridge.report.text.paths import HEADS, figure_cells, figure_heads, first_of_each_client, path_cells, title
from weighbridge.report.text.remarks import remark_text, remark_texts
from weighbridge.report.text.steps import LADDER_INTRODUCTION, ladder_sentences
from weighbridge.report.text.summary import (
    baseline_sentence,
    count,
    disagreements,
    exploratory_sentence,
    failed_sentences,
    failure_lines,
    others_text,
    partly_exploratory_sentence,
    remark_lines,
    undecided_lines,
    unmeasured_text,
    verdict_sentences,
)
from weighbridge.report.text.trial_flags import common_flag_sentences, flagged_sentence
from weighbridge.report.text.trust import checked_sentence, hindered, imprecise, place_sentence, trust_sentence
from weighbridge.report.text.verdicts import (
    HIDDEN,
    comparison_verdict,
    judged_cost_text,
    reasoned_verdict,
    resolved_text,
)

SHOWN_FAILURES = 10
SHOWN_EXPLANATIONS = 3
"""Causes of the largest costs that are shown without being asked for."""
TRUST_LINES, DISTURBED_LINES = 4, 6
"""Lines of a screen for the control, and for a run that other programs hindered."""

MATRIX_HEAD, MATRIX_CELL = 26, 15
"""Columns of a row's head and of an environment, below which the matrix wraps badly."""

Renderables = Iterator[RenderableType]


@dataclass(frozen=True, slots=True)
class NextCommand:
    """How the command that goes on with a run is written."""

    directory: str
    yes: bool = False
    """Whether it starts without a question: a user who has just run the study agreed, and a log cannot answer."""
    ended: bool = False
    """Whether the command ends here, and says itself how an unfinished run goes on."""
    variables: Sequence[str] = ()
    """The environment variables from which the secrets of its study take their values."""
    concurrent: bool = False
    """Whether it can run next to other runs (--allow-concurrent)."""
    lasting: bool = True
    """Whether the run can be continued."""


def print_report(
    analysis: Analysis,
    console: Console | None = None,
    *,
    everything: bool = False,
    tables: Collection[MetricReport] = (),
    run: str = "RUN",
    pages: Sequence[str] = (),
    yes: bool = False,
    ended: bool = False,
    variables: Sequence[str] = (),
    concurrent: bool = False,
    lasting: bool = True,
) -> None:
    """Print a run's answer, matrix and doubts to `console` (default: standard output; no colours when it is piped).

    `everything`: not a screen, but all steps, curves, paths, tables and remarks. `tables`: these metrics' tables.
    `run`: the run directory, as the last lines name it. `pages`: lines that say where its pages are. `yes`: whether
    the command that adds blocks starts without asking. `ended`: whether the command ends here, which says itself how
    an unfinished run goes on. `variables`: those from which the secrets of its study take their values.
    `concurrent`: whether that command can run next to other runs. `lasting`: whether the run can be continued.
    """
    keep_no_break_spaces()
    out = console or Console(highlight=False)
    with use_display_names(names_of(analysis)):
        if everything:
            for part in _whole(analysis, out.width):
                out.print(part)
            for line in pages:
                out.print(styled(line), soft_wrap=True)
        else:
            further = [
                part for each in tables for part in _metric(analysis, each, out.width, remark_lines(each, set()))
            ]
            print_run_screen(
                analysis,
                out,
                answer(analysis),
                bodies(analysis, out.width),
                NextCommand(run, yes, ended, variables, concurrent, lasting),
                pages,
                further=further,
            )


def print_run_screen(
    analysis: Analysis,
    out: Console,
    answer_: str,
    shown: Iterable[Sequence[RenderableType]],
    run: NextCommand,
    pages: Sequence[str],
    *,
    further: Sequence[RenderableType] = (),
) -> None:
    """Print a screen: the question, an answer, the first part of `shown` that fits, trust, and the next command.

    Inside of `use_display_names`. `further` is printed too, whatever its height.
    """
    question = styled(f"{analysis.study}: {analysis.question}")
    if not analysis.plan.pairs:  # whose question ends with the commits
        question.truncate(out.width, overflow="ellipsis")
    head: list[RenderableType] = [question, styled(answer_, "bold")]
    levels = range(MOST_SHORTENED + 1 if analysis.explanations else 1)
    causes = [[*_causes(analysis, run.directory if run.lasting else "RUN", shortened)] for shortened in levels]
    trusted = checked_sentence(analysis)
    most = DISTURBED_LINES if hindered(analysis) else TRUST_LINES
    sentence = _short(trusted, out.width, most) if trusted and analysis.metrics else ""
    trust: list[RenderableType] = [styled(sentence, _trust_style(analysis))] if sentence else []
    if _exploratory_unsaid(analysis):
        trust.append(indented(exploratory_sentence(analysis), "yellow"))
    stops = [each for each in analysis.confounders if each.placement is RemarkPlace.SCREEN]
    trust += [indented(remark_text(each), "yellow") for each in stops]
    key = [_key(analysis)] if analysis.explanations and not analysis.few else []
    print_screen(
        out,
        head,
        ([*above, *body, *(each for each in key if each not in body), *trust] for body in shown for above in causes),
        [*_remarks(analysis)],
        lambda hidden: [*_next_lines(analysis, run, hidden, out.width), *map(styled, pages)],
        further=further,
    )


def _causes(analysis: Analysis, run: str, shortened: int) -> Renderables:
    """Yield the causes of the largest costs."""
    for each in analysis.explanations[:SHOWN_EXPLANATIONS]:
        yield styled(causes_title(each))
        yield from _lines(cause_lines(analysis, each, shortened, run))


def _exploratory_unsaid(analysis: Analysis) -> bool:
    """Return whether no other line of the screen says that every verdict is exploratory: that is on every screen."""
    unsaid = more_rounds(analysis) is None or hindered(analysis)
    return bool(analysis.metrics) and analysis.exploratory and not analysis.few and unsaid


def _short(text: str, width: int, most: int) -> str:
    """Return the first sentences of a text that fit into ``most`` lines, at least one."""
    first, *others = re.split(r"(?<=\.) (?=[A-Z])", text)
    for each in others:
        if len(styled(f"{first} {each}").wrap(Console(width=width), width)) > most:
            break
        first = f"{first} {each}"
    return first


def _next_lines(analysis: Analysis, run: NextCommand, hidden: int, width: int) -> Iterator[Text]:
    """Yield what to do next: commands that can be copied, with a line of their own where `width` is too small."""
    if not analysis.trials:
        return
    place = shlex.quote(run.directory)
    start = shlex.join(
        continuing("run", run.directory, yes=run.yes, variables=run.variables, concurrent=run.concurrent)
    )
    remarks = [plural(hidden, "more remark")] if hidden else []
    commands = [(", ".join(filter(None, [*remarks, others_text(analysis)])) or "all tables", f"report {place} --all")]
    step = more_rounds(analysis)
    if step is not None and not run.lasting:
        yield from styled(weigh_again(step, analysis), "dim").wrap(Console(width=width), width)
    elif step is not None:
        words = rounds_sentence(step, analysis).removesuffix(".")
        commands.insert(0, (words, f"{start} --rounds {step.rounds}"))
    elif analysis.unfinished and run.lasting and not run.ended:
        commands.insert(0, ("Next, unless it is still running", start))
    elif (stop := obstacle(analysis)) is not None and stop.code != "control-failed":  # the control has its own line
        yield from styled(obstacle_sentence(stop, analysis), "dim").wrap(Console(width=width), width)
    unset = [name for name in run.variables if name not in os.environ]
    if len(commands) > 1 and unset:
        yield from styled(first_set(unset), "dim").wrap(Console(width=width), width)
    for words, command in commands:
        one_line = styled(f"{words}: weighbridge {command}", "dim")
        if one_line.cell_len <= width:
            yield one_line
        else:
            yield from styled(f"{words}:", "dim").wrap(Console(width=width), width)
            yield styled(f"weighbridge {command}", "dim")


def _whole(analysis: Analysis, width: int) -> Renderables:
    flag_sentences, kinds = common_flag_sentences(analysis.trials)
    yield from _head(analysis, width)
    if analysis.metrics:
        yield from _details(analysis, flag_sentences)
    for label in analysis.labels:
        yield from _workload(analysis, label, kinds, width)
    yield from _failures(analysis)


# -- the answer, and the trust in it ---------------------------------------------------------------


def _head(analysis: Analysis, width: int) -> Renderables:
    yield styled(f"{analysis.study}: {analysis.question}")
    yield styled(answer(analysis), "bold")
    yield from _lines(left_out_lines(analysis), "yellow")
    if not analysis.metrics:
        return
    yield from next(bodies(analysis, width))
    yield from _lines(undecided_lines(analysis), "dim")
    if sentence := trust_sentence(analysis):
        yield styled(sentence, _trust_style(analysis))
    yield from (styled(remark_text(each), "bold yellow") for each in analysis.notices)
    if sentence := exploratory_sentence(analysis):
        yield styled(sentence, "yellow")
    yield from _lines(session_lines(analysis), "yellow")


def _trust_style(analysis: Analysis) -> str:
    if analysis.trust.trusted is False:
        return "bold red"
    return "yellow" if not analysis.trust.trusted or imprecise(analysis) else "green"


def _remarks(analysis: Analysis) -> Renderables:
    """Yield what else decides whether the numbers can be relied on, the gravest first."""
    yield from _lines(overclaimed_lines(analysis), "bold red")
    if analysis.metrics:
        yield from _lines([remark_text(each) for each in analysis.notices], "bold yellow")
    yield from _lines(left_out_lines(analysis), "yellow")
    yield from _lines(failure_lines(analysis), "yellow")
    if not analysis.metrics:
        return
    if not imprecise(analysis) and not _exploratory_unsaid(analysis):  # which say that blocks are too few
        yield from _lines([*filter(None, [exploratory_sentence(analysis)])], "yellow")
    yield from _lines(disagreements(analysis), "bold magenta")
    yield from _lines(broke_sentences(analysis), STYLES["broke"])
    if any(row.shown_as == "hidden" for report in analysis.headlines for row in report.comparisons):
        yield indented(HIDDEN, STYLES["hidden"])
    unmeasured = [label for label in analysis.labels if analysis.trials and not analysis.of(label)]
    yield from _lines([unmeasured_text(analysis, label) for label in unmeasured], "yellow")
    remarks = (each for report in analysis.headlines for row in report.comparisons for each in row.remarks)
    delayed = dict.fromkeys(remark_text(each) for each in remarks if each.placement is RemarkPlace.FIRST)
    others = [each for each in analysis.confounders if each.placement is not RemarkPlace.SCREEN]
    yield from _lines([*delayed, *remark_texts(others)], "yellow")
    doubts = (partly_exploratory_sentence(analysis), flagged_sentence(analysis), place_sentence(analysis))
    yield from _lines([*filter(None, doubts)], "yellow")
    yield from _lines(session_lines(analysis), "yellow")


def _details(analysis: Analysis, flag_sentences: Sequence[str]) -> Renderables:
    """Yield conditions, paths, every headline comparison and step in a sentence, and the curves."""
    yield from _lines(condition_lines(analysis))
    yield from _lines(remark_texts(analysis.confounders), "yellow")
    yield from _lines(flag_sentences, "yellow")
    yield from _lines(disagreements(analysis), "bold magenta")
    if not analysis.native_only:
        yield from _verdicts(verdict_sentences(analysis))
    yield from path_parts(analysis)  # with heads of their own: what comes behind must have one, too
    for explanation in analysis.explanations:
        yield from _explained(analysis, explanation)
    if steps := ladder_sentences(analysis):
        yield styled("\nstep by step", "bold")
        yield indented(LADDER_INTRODUCTION, "dim")
        yield from _verdicts(steps)
    for sweep in analysis.sweeps:
        yield styled(f"\n{curve_title(sweep)}", "bold")
        yield from _lines([*filter(None, [sweep_durability(analysis, sweep)])])
        yield from _lines(curve_sentences(sweep, analysis.baseline))


def _explained(analysis: Analysis, explanation: Explanation) -> Renderables:
    """Yield the causes of a cost in a sentence, and what each mechanism costs."""
    yield styled(f"\n{causes_title(explanation)}", "bold")
    yield from _lines(cause_lines(analysis, explanation))
    shown = Table("mechanism", "cost", "verdict", "to change it", box=None, pad_edge=False)
    for row in explanation_rows(analysis, explanation):
        style = STYLES.get(row.shown_as, "dim")
        remedy = row.remedy if row.shown_as == "different" else ""
        shown.add_row(styled(row.part), styled(row.cost, style), styled(row.verdict, style), styled(remedy, "dim"))
    yield shown


def _lines(lines: Sequence[str], style: str = "") -> Renderables:
    return (indented(line, style) for line in lines)


def _verdicts(sentences: Sequence[tuple[str, str]]) -> Renderables:
    return (indented(line, STYLES.get(verdict, "")) for verdict, line in sentences)


def bodies(analysis: Analysis, width: int) -> Iterator[Sequence[RenderableType]]:
    """Yield the matrix, shorter and shorter: whole, a line for each cell, then fewer and fewer of its costs."""
    if not analysis.metrics:
        yield ()
        return
    if analysis.native_only:
        rows = [(row.title, reference_values(analysis, row)) for row in matrix(analysis).rows]
        yield [*_lines([f"{title_}: {', '.join(values)}" for title_, values in rows])]
    else:
        yield [*matrix_tables(analysis, width)]
        yield [*matrix_tables(analysis, width, dense=True)]
    cells = [(row, cell) for row in matrix(analysis).rows for cell in row.cells if cell is not None]
    for shown in range(len(cells), -1, -1):
        yield [*_largest(cells, shown)]


def _largest(cells: Sequence[tuple[MatrixRow, MatrixCosts]], shown: int) -> Renderables:
    """Yield a line for each of the largest costs, and how many more there are."""

    def size(cell: MatrixCosts) -> tuple[bool, float]:
        costs = [row.cost.penalty.estimate for _, row in cell.rows if row.cost is not None]
        return cell.shown_as != "different", -max(map(abs, costs), default=0.0)

    listed = Table.grid(padding=(0, 2))
    listed.add_column(overflow="fold")
    for row, cell in sorted(cells, key=lambda each: size(each[1]))[:shown]:
        words = styled(large(row, cell), STYLES.get(cell.shown_as, "dim"))
        listed.add_row(styled(f"{display_name(cell.environment)}, {row.title}"), words)
    if shown:
        yield Text()
        yield listed
    if shown < len(cells):
        yield indented(f"and {len(cells) - shown} more comparisons", "dim")


def matrix_tables(analysis: Analysis, width: int, *, dense: bool = False) -> Renderables:
    """Yield the matrix as one table, or several where `width` columns are too few; none without environments.

    `dense`: without intervals and the baseline's values.
    """
    cost_matrix = matrix(analysis)
    environments = len(cost_matrix.environments)
    bands = -(-environments // max(1, (width - MATRIX_HEAD) // MATRIX_CELL))
    each = -(-environments // bands) if bands else 1  # as many in each
    heads = [
        styled("metric"),
        *(
            styled(row.title)
            if dense
            else stacked(styled(row.title), styled("\n".join(reference_values(analysis, row))))
            for row in cost_matrix.rows
        ),
    ]
    columns = [
        [
            styled(display_name(name)),
            *(_matrix_cell(analysis, row, number, dense=dense) for row in cost_matrix.rows),
        ]
        for number, name in enumerate(cost_matrix.environments)
    ]
    yield from (table([heads, *columns[first : first + each]]) for first in range(0, environments, each))
    verdicts = {cell.shown_as for row in cost_matrix.rows for cell in row.cells if cell and len(cell.rows) == 1}
    if not dense and not verdicts.isdisjoint(("different", "equivalent")):
        yield _key(analysis)


def _key(analysis: Analysis) -> Text:
    """Return what the brackets behind a cost are."""
    cells = [(row, cell) for row in matrix(analysis).rows for cell in row.cells if cell and len(cell.rows) == 1]
    undecided = " (in words if undecided)" if any(cost_range(*each) for each in cells) else ""
    interval = f"{level(analysis.confidence)} interval in brackets{undecided}"
    return styled(f"Cost against {reference_words(analysis)}, {interval}.", "dim")


def _matrix_cell(analysis: Analysis, row: MatrixRow, number: int, *, dense: bool) -> Text:
    cell = row.cells[number]
    if cell is None:
        return Text(large(row, None), style="dim")
    quiet = cell.shown_as == "inconclusive" or (analysis.few and cell.shown_as == "few")
    text = Text(large(row, cell), style=STYLES.get(cell.shown_as, ""))
    below = cost_range(row, cell) if quiet else small(row, cell)
    return stacked(text, styled(below)) if below and not dense else text


def path_parts(analysis: Analysis) -> Renderables:
    """Yield a table of the paths for the clients in each place, and one of what a workload's trials used of them.

    Columns in which no environment has anything are left out; the page has them.
    """
    for group in first_of_each_client(path_tables(analysis)):
        yield styled(f"\n{title(group[0])}", "bold")
        rows = [[*cells[:-1], cells[-1].split(" ")[0]] for cells in map(path_cells, group[0].rows)]
        shown = [at for at in range(len(HEADS)) if not all(row[at] in ("0", "none") for row in rows)]
        yield SplitTable([HEADS[at] for at in shown], [[row[at] for at in shown] for row in rows])
        for figures in [each for each in group if each.metrics][:1]:  # the page has those of every workload
            cells = [[display_name(row.environment), *figure_cells(row)] for row in figures.rows]
            yield styled(f"figures of {figures.label}")
            yield SplitTable(["environment", *figure_heads(figures)], cells)


# -- one workload at one level ---------------------------------------------------------------------


def _workload(analysis: Analysis, label: str, kinds: Collection[FlagKind], width: int) -> Renderables:
    """Yield the tables of a workload."""
    reports, shown_lines = analysis.of(label), set[str]()
    without = {"confounder", *({"exploratory"} if analysis.exploratory else ())}
    if not reports and analysis.trials:
        yield styled(f"\n{unmeasured_text(analysis, label)}", "bold")
    used = [each for each in reports if each.resource_use]
    for report in reports:
        if not report.resource_use:
            yield from _metric(analysis, report, width, remark_lines(report, shown_lines, without, kinds))
    for latency in (each for each in analysis.latencies if each.label == label):
        name = titled(label, latency.workload, latency.metric, "s")
        yield styled(f"\n{name}, all requests of all runs", "bold")
        yield percentiles_table(latency)
    if used:
        yield styled(f"\n{label}, resource use", "bold")
        yield resources_table(analysis, used)
    remarks = [remark for report in used for row in report.comparisons for remark in row.remarks]
    readings = dict.fromkeys(remark_text(each) for each in remarks if each.placement is RemarkPlace.METERS)
    yield from _lines([*readings], "yellow")


def _metric(analysis: Analysis, report: MetricReport, width: int, remarks: Sequence[str]) -> Renderables:
    """Yield one metric's table, with what is to be known of it above and below."""
    blocks = _shared_blocks(report)
    about = f"{report.better} is better{'' if blocks is None else f', {count(blocks)}'}"
    yield styled(f"\n{metric_title(report)} ({about})", "bold")
    if not all(row.few for row in report.comparisons):
        yield styled(f"  {baseline_sentence(analysis, report)}")
    if durability := durability_of(analysis, report.label):
        yield styled(f"  {durability}")
    yield costs_table(analysis, report, width)
    yield from _lines(remarks)


def _shared_blocks(report: MetricReport) -> int | None:
    """Return how many blocks every comparison has; None where they differ."""
    blocks = {row.blocks for row in report.comparisons}
    return blocks.pop() if len(blocks) == 1 else None


def costs_table(analysis: Analysis, report: MetricReport, width: int) -> RenderableType:
    """Return the costs beside the medians; of few blocks their values. Blocks are told only where they differ.

    If `width` characters are too few, medians are below the costs, and blocks below the verdicts.
    """
    few, same = all(row.few for row in report.comparisons), _shared_blocks(report) is not None
    rows = _cost_rows(analysis, report, few=few)
    shown = [0, 1, *([] if few else [2]), *([] if same else [3]), 4]
    cells = [[row[number] for number in shown] for row in rows]
    if not few and not fits(cells, width):
        cells = [
            [name, stacked(cost, median), verdict if same else stacked(verdict, blocks)]
            for name, cost, median, blocks, verdict in rows
        ]
    return fitted_table(cells, width, narrowed=(1,), right=range(2, len(cells[0]) - 1))


def _cost_rows(analysis: Analysis, report: MetricReport, *, few: bool) -> list[tuple[Text, Text, Text, Text, Text]]:
    """Return the head and the rows: environment, cost (or what was measured), median, blocks, verdict."""
    shown, by = value_unit(report), difference_unit_of(report.comparisons, report.unit)
    cost_head = "measured" if few else f"typical cost [{level(analysis.confidence)}]"
    heads = ("environment", cost_head, "median", "rounds", "verdict")
    rows = [heads]
    if few:
        for name in analysis.references(report):
            own = resolved_text(_measured(analysis, report, name), name, *report.comparisons)
            rows.append((display_name(name), own, "", "", ""))
    for row in report.comparisons:
        median = quantity(row.value, report.unit, shown)
        cost = _measured(analysis, report, row.environment) if few else judged_cost_text(row, report.unit, by)
        rows.append((display_name(row.environment), cost, median, str(row.blocks), comparison_verdict(row)))
    styles = [""] * (len(rows) - len(report.comparisons))
    styles += [STYLES.get(row.shown_as, "dim") for row in report.comparisons]
    return [
        (styled(name), styled(cost), styled(median), styled(blocks), styled(verdict, style))
        for (name, cost, median, blocks, verdict), style in zip(rows, styles, strict=True)
    ]


def _measured(analysis: Analysis, report: MetricReport, environment: str) -> str:
    return quantities(analysis.block_values(report, environment), report.unit, shown_in=value_unit(report))


def percentiles_table(latency: LatencyReport) -> RenderableType:
    """Return the percentiles of all requests of all runs."""
    units = [shared_unit(column, "s") for column in zip(*(row.percentiles for row in latency.rows), strict=True)]
    rows = [
        [
            display_name(row.environment),
            *(quantity(value, "s", unit) for value, unit in zip(row.percentiles, units, strict=True)),
        ]
        for row in latency.rows
    ]
    return SplitTable(["environment", *(f"p{percent:g}" for percent in PERCENTS)], rows, numbers=True)


def resources_table(analysis: Analysis, reports: Sequence[MetricReport]) -> RenderableType:
    """Return all that the meters added for one workload, in one table."""
    all_few = all(row.few for report in reports for row in report.comparisons)
    cost_head = "measured" if all_few else f"typical cost [{level(analysis.confidence)}]"
    heads = ("metric", "environment", cost_head, "verdict")
    rows = [[styled(head) for head in heads]]
    for report in reports:
        by = difference_unit_of(report.comparisons, report.unit)
        few = all(row.few for row in report.comparisons)
        for name, value in analysis.references(report).items():
            own = _measured(analysis, report, name) if few else quantity(value, report.unit)
            metric = metric_name(report) if name == analysis.baseline else ""
            rows.append([styled(metric), styled(display_name(name)), styled(own, "dim"), styled("")])
        for row in report.comparisons:
            cost = _measured(analysis, report, row.environment) if few else judged_cost_text(row, report.unit, by)
            verdict = verdict_text(reasoned_verdict(row), row.shown_as)
            rows.append([styled(""), styled(display_name(row.environment)), styled(cost), verdict])
    return table([*zip(*rows, strict=True)])


def _failures(analysis: Analysis) -> Renderables:
    lines = failed_sentences(analysis)
    if not lines:
        return
    yield styled(f"\n{len(lines)} of {len(analysis.trials)} trials failed", "bold")
    yield from _lines(lines[:SHOWN_FAILURES])
    if len(lines) > SHOWN_FAILURES:
        yield indented(f"and {len(lines) - SHOWN_FAILURES} more: the report lists them all")
