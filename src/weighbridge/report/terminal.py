"""A run in the terminal: sentences, then a table per workload and metric. Plain text where there is no terminal."""

from collections.abc import Collection, Iterator, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from weighbridge.analysis.latency import PERCENTS, LatencyReport
from weighbridge.analysis.overload import reason
from weighbridge.analysis.paths import path_tables
from weighbridge.analysis.remarks import FewReadings
from weighbridge.analysis.results import Analysis, MetricReport
from weighbridge.model.flag import FlagKind
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
    session_lines,
    sweep_durability,
)
from weighbridge.report.text.curves import curve_sentences, curve_title
from weighbridge.report.text.environments import displayed
from weighbridge.report.text.formatting import TOO_FEW, quantities, quantity, shared_unit
from weighbridge.report.text.matrix import MatrixRow, cost_range, large, matrix, native, small
from weighbridge.report.text.metric_names import difference_unit_of, metric_name, metric_title, titled, value_unit
from weighbridge.report.text.paths import HEADS, figure_cells, figure_heads, first_of_each_client, path_cells, title
from weighbridge.report.text.remarks import remark_text
from weighbridge.report.text.steps import LADDER_INTRODUCTION, ladder_sentences
from weighbridge.report.text.summary import (
    baseline_sentence,
    count,
    disagreements,
    exploratory_sentence,
    failed_sentences,
    remark_lines,
    verdict_sentences,
)
from weighbridge.report.text.trial_flags import common_flag_sentences
from weighbridge.report.text.trust import imprecise, trust_sentence
from weighbridge.report.text.verdicts import broke_instead, comparison_verdict, cost_text, effect, resolved_text

SHOWN_FAILURES = 10

MATRIX_HEAD, MATRIX_CELL = 26, 15
"""Columns of a row's head and of an environment, below which the matrix wraps badly."""

Parts = Iterator[RenderableType]


def print_report(analysis: Analysis, console: Console | None = None, *, all_metrics: bool = False) -> None:
    """Print a run's verdicts and tables to `console` (default: standard output; no colours when it is piped).

    The first metric of each workload has a table, the others a line for each environment.
    `all_metrics`: all have tables.
    """
    keep_no_break_spaces()
    out = console or Console(highlight=False)
    for part in _report(displayed(analysis), out.width, all_metrics=all_metrics):
        out.print(part)


def _report(analysis: Analysis, width: int, *, all_metrics: bool) -> Parts:
    flag_sentences, kinds = common_flag_sentences(analysis.trials)
    yield from _head(analysis, flag_sentences, width)
    for label in analysis.labels:
        yield from _workload(analysis, label, kinds, width, all_metrics=all_metrics)
    yield from _failures(analysis)
    if not all_metrics and any(not report.headline for report in analysis.metrics):
        yield styled("\nevery metric has its table in the page and with: weighbridge report RUN --all", "dim")


# -- the answer, and what it is worth --------------------------------------------------------------


def _head(analysis: Analysis, flag_sentences: Sequence[str], width: int) -> Parts:
    yield styled(f"{analysis.study}: {analysis.question}")
    yield styled(answer(analysis), "bold")
    yield from _lines(left_out_lines(analysis), "yellow")
    if not analysis.metrics:
        return
    yield from matrix_tables(analysis, width)
    trusted, sentence = analysis.trust.trusted, trust_sentence(analysis)
    if sentence:
        good = "yellow" if not trusted or imprecise(analysis) else "green"
        yield styled(sentence, "bold red" if trusted is False else good)
    yield from (styled(remark_text(each), "bold yellow") for each in analysis.notices)
    if sentence := exploratory_sentence(analysis):
        yield styled(sentence, "yellow")
    yield from _lines(session_lines(analysis), "yellow")
    yield from _lines(condition_lines(analysis))
    yield from path_parts(analysis)
    yield from _lines([remark_text(each) for each in analysis.confounders], "yellow")
    yield from _lines(flag_sentences, "yellow")
    yield from _lines(disagreements(analysis), "bold magenta")
    if not analysis.native_only:
        yield from _verdicts(verdict_sentences(analysis))
    if steps := ladder_sentences(analysis):
        yield styled("\nstep by step", "bold")
        yield indented(LADDER_INTRODUCTION, "dim")
        yield from _verdicts(steps)
    for sweep in analysis.sweeps:
        yield styled(f"\n{curve_title(sweep)}", "bold")
        yield from _lines([*filter(None, [sweep_durability(analysis, sweep)])])
        yield from _lines(curve_sentences(sweep, analysis.baseline))


def _lines(lines: Sequence[str], style: str = "") -> Parts:
    return (indented(line, style) for line in lines)


def _verdicts(sentences: Sequence[tuple[str, str]]) -> Parts:
    return (indented(line, STYLES.get(verdict, "")) for verdict, line in sentences)


def matrix_tables(analysis: Analysis, width: int) -> Parts:
    """Give the matrix as one table, or several where `width` columns are too few; none without environments."""
    cost_matrix = matrix(analysis)
    environments = len(cost_matrix.environments)
    bands = -(-environments // max(1, (width - MATRIX_HEAD) // MATRIX_CELL))
    each = -(-environments // bands) if bands else 1  # as many in each
    heads = [Text(), *(stacked(styled(row.title), styled(native(analysis, row))) for row in cost_matrix.rows)]
    columns = [
        [styled(name), *(_matrix_cell(analysis, row, number) for row in cost_matrix.rows)]
        for number, name in enumerate(cost_matrix.environments)
    ]
    yield from (table([heads, *columns[first : first + each]]) for first in range(0, environments, each))


def _matrix_cell(analysis: Analysis, row: MatrixRow, number: int) -> Text:
    cell = row.cells[number]
    if cell is None:
        return Text(large(row, None), style="dim")
    quiet = cell.shown_as in ("equivalent", "inconclusive") or (analysis.few and cell.shown_as == "few")
    text = Text(large(row, cell), style=STYLES.get(cell.shown_as, ""))
    below = cost_range(row, cell) if quiet else small(row, cell)
    return stacked(text, styled(below)) if below else text


def path_parts(analysis: Analysis) -> Parts:
    """Give a table of the paths for the clients in each place, and one of what a workload's trials used of them.

    Columns in which no environment has anything are left out; the page has them.
    """
    for group in first_of_each_client(path_tables(analysis)):
        yield styled(f"\n{title(group[0])}", "bold")
        rows = [[*cells[:-1], cells[-1].split(" ")[0]] for cells in map(path_cells, group[0].rows)]
        shown = [at for at in range(len(HEADS)) if not all(row[at] in ("0", "none") for row in rows)]
        yield SplitTable([HEADS[at] for at in shown], [[row[at] for at in shown] for row in rows])
        for figures in [each for each in group if each.metrics][:1]:  # the page has those of every workload
            cells = [[row.environment, *figure_cells(row)] for row in figures.rows]
            yield styled(f"figures of {figures.label}")
            yield SplitTable(["environment", *figure_heads(figures)], cells)


# -- one workload at one level ---------------------------------------------------------------------


def _workload(analysis: Analysis, label: str, kinds: Collection[FlagKind], width: int, *, all_metrics: bool) -> Parts:
    """Give a workload's tables, and a line for each environment about its other metrics."""
    reports, shown_lines = analysis.of(label), {remark_text(each) for each in analysis.confounders}
    without = {"exploratory"} if analysis.exploratory else set()
    if not reports and analysis.trials:
        broke = reason(trial for trial in analysis.trials if trial.label == label and trial.broke)
        yield styled(f"\n{label}: {f'every trial broke: {broke}' if broke else 'no trial has finished'}", "bold")
    own, used = ([each for each in reports if each.resource_use is kind] for kind in (False, True))
    for report in own if all_metrics else own[:1]:
        blocks = _shared_blocks(report)
        about = f"{report.better} is better{'' if blocks is None else f', {count(blocks)}'}"
        yield styled(f"\n{metric_title(report)} ({about})", "bold")
        if not all(row.few for row in report.comparisons):
            yield styled(f"  {baseline_sentence(report, analysis.baseline)}")
        if durability := durability_of(analysis, label):
            yield styled(f"  {durability}")
        yield costs_table(analysis, report, width)
        yield from _lines(remark_lines(report, shown_lines, without, kinds))
    for latency in (each for each in analysis.latencies if each.label == label):
        name = titled(label, latency.workload, latency.metric, "s")
        yield styled(f"\n{name}, all requests of all runs", "bold")
        yield percentiles_table(latency)
    if all_metrics and used:
        yield styled(f"\n{label}, resource use", "bold")
        yield resources_table(analysis, used)
    if not all_metrics and analysis.few:
        yield from _lines([_values_line(analysis, report) for report in own[1:]])
    elif not all_metrics:
        yield from _verdict_lines(f"{label}, other metrics", own[1:])
        yield from _verdict_lines(f"{label}, resource use", used)
    remarks = [remark for report in used for row in report.comparisons for remark in row.remarks]
    readings = dict.fromkeys(remark_text(each) for each in remarks if isinstance(each, FewReadings))
    yield from _lines([*readings], "yellow")


def _shared_blocks(report: MetricReport) -> int | None:
    """How many blocks every comparison has; None where they differ."""
    blocks = {row.blocks for row in report.comparisons}
    return blocks.pop() if len(blocks) == 1 else None


def costs_table(analysis: Analysis, report: MetricReport, width: int) -> RenderableType:
    """Give the costs beside the medians; of few blocks their values. Blocks are told only where they differ.

    Where `width` characters are too few, medians stand below the costs, and blocks below the verdicts.
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
    """The head and the rows: environment, cost (or what was measured), median, blocks, verdict."""
    shown, by = value_unit(report), difference_unit_of(report.comparisons, report.unit)
    heads = ("environment", "measured" if few else "typical cost [95 %]", "median", "blocks", "verdict")
    rows = [heads]
    if few:
        own = resolved_text(_measured(analysis, report, analysis.baseline), analysis.baseline, *report.comparisons)
        rows.append((analysis.baseline, own, "", "", ""))
    for row in report.comparisons:
        median = quantity(row.value, report.unit, shown)
        cost = _measured(analysis, report, row.environment) if few else cost_text(row, report.unit, by)
        rows.append((row.environment, cost, median, str(row.blocks), comparison_verdict(row)))
    styles = [""] * (len(rows) - len(report.comparisons))
    styles += [STYLES.get(row.shown_as, "dim") for row in report.comparisons]
    return [
        (styled(name), styled(cost), styled(median), styled(blocks), styled(verdict, style))
        for (name, cost, median, blocks, verdict), style in zip(rows, styles, strict=True)
    ]


def _measured(analysis: Analysis, report: MetricReport, environment: str) -> str:
    return quantities(analysis.block_values(report, environment), report.unit, shown_in=value_unit(report))


def percentiles_table(latency: LatencyReport) -> RenderableType:
    """Give the percentiles of all requests of all runs."""
    units = [shared_unit(column, "s") for column in zip(*(row.percentiles for row in latency.rows), strict=True)]
    rows = [
        [row.environment, *(quantity(value, "s", unit) for value, unit in zip(row.percentiles, units, strict=True))]
        for row in latency.rows
    ]
    return SplitTable(["environment", *(f"p{percent:g}" for percent in PERCENTS)], rows, numbers=True)


def resources_table(analysis: Analysis, reports: Sequence[MetricReport]) -> RenderableType:
    """Give all that the meters added for one workload, in one table."""
    all_few = all(row.few for report in reports for row in report.comparisons)
    heads = ("metric", "environment", "measured" if all_few else "typical cost [95 %]", "verdict")
    rows = [[styled(head) for head in heads]]
    for report in reports:
        by = difference_unit_of(report.comparisons, report.unit)
        few = all(row.few for row in report.comparisons)
        own = _measured(analysis, report, analysis.baseline) if few else quantity(report.baseline_value, report.unit)
        rows.append([styled(metric_name(report)), styled(analysis.baseline), styled(own, "dim"), styled("")])
        for row in report.comparisons:
            cost = _measured(analysis, report, row.environment) if few else cost_text(row, report.unit, by)
            verdict = verdict_text(comparison_verdict(row), row.shown_as)
            rows.append([styled(""), styled(row.environment), styled(cost), verdict])
    return table([*zip(*rows, strict=True)])


def _values_line(analysis: Analysis, report: MetricReport) -> str:
    """The values of a metric with few blocks: ``retransmits: native 0, 2; docker-bridge 5, 1``."""
    arms = (analysis.baseline, *(row.environment for row in report.comparisons))
    return f"{metric_name(report)}: {'; '.join(f'{name} {_measured(analysis, report, name)}' for name in arms)}"


def _verdict_lines(heading: str, reports: Sequence[MetricReport]) -> Parts:
    """Give the metrics by verdict, different ones with their cost: one line for environments that are alike."""
    names = [row.environment for row in reports[0].comparisons if not row.aa] if reports else []
    if names:
        yield styled(f"\n{heading}", "bold")
    lines: dict[str, list[str]] = {}
    for name in names:
        rows = [(report, row) for report in reports for row in report.comparisons if row.environment == name]
        by_verdict: dict[str, list[str]] = {"different": [], "equivalent": [], "inconclusive": [], "hidden": []}
        for report, row in rows:
            change = effect(report, row) if row.shown_as == "different" else None
            cost = f" ({change.amount} {change.relation})" if change else ""
            if not row.broke_instead:
                by_verdict.setdefault(row.shown_as, []).append(f"{metric_name(report)}{cost}")
        phrases = [
            f"{TOO_FEW if kind == 'few' else kind} in {', '.join(each)}" for kind, each in by_verdict.items() if each
        ]
        broke = dict.fromkeys(broke_instead(row) for _, row in rows if row.broke_instead)
        lines.setdefault("; ".join([*phrases, *broke]), []).append(name)
    yield from _lines([f"{', '.join(same)}: {line}" for line, same in lines.items()])


def _failures(analysis: Analysis) -> Parts:
    lines = failed_sentences(analysis)
    if not lines:
        return
    yield styled(f"\n{len(lines)} of {len(analysis.trials)} trials failed", "bold")
    yield from _lines(lines[:SHOWN_FAILURES])
    if len(lines) > SHOWN_FAILURES:
        yield indented(f"and {len(lines) - SHOWN_FAILURES} more: the report lists them all")
