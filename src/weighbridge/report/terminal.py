"""A run in the terminal: sentences, then a table per workload and metric. Plain text where there is no terminal."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from weighbridge.analysis.overload import reason
from weighbridge.analysis.remarks import FewReadings
from weighbridge.analysis.results import Analysis, MetricReport
from weighbridge.model.flag import FlagKind
from weighbridge.model.text import printable
from weighbridge.report.terminal_matrix import STYLES, matrix_tables
from weighbridge.report.terminal_paths import path_parts
from weighbridge.report.terminal_tables import blocks_of, costs_table, percentiles_table, resources_table
from weighbridge.report.terminal_wrap import keep_no_break_spaces
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
from weighbridge.report.text.formatting import TOO_FEW, quantities
from weighbridge.report.text.metric_names import metric_name, metric_title, titled, value_unit
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
from weighbridge.report.text.trial_flags import said_once
from weighbridge.report.text.trust import imprecise, trust_sentence
from weighbridge.report.text.verdicts import broke_instead, effect

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

SHOWN_FAILURES = 10


def print_report(analysis: Analysis, console: "Console | None" = None, *, whole: bool = False) -> None:
    """Print a run's verdicts and tables to `console` (default: standard output; no colours when it is piped).

    The first metric of each workload has a table, the others a line for each environment; `whole`: all have tables.
    """
    from rich.console import Console

    keep_no_break_spaces()
    analysis = displayed(analysis)
    without = {"exploratory"} if analysis.exploratory else set()
    out = console or Console(highlight=False)
    once, kinds = said_once(analysis.trials)
    for part in _head(analysis, once, out.width):
        out.print(part, soft_wrap=False)
    for label in analysis.labels:
        _print_cell(analysis, label, out, without, kinds, whole=whole)
    _print_failures(analysis, out)
    if not whole and any(not report.headline for report in analysis.metrics):
        out.print(_text("\nevery metric has its table in the page and with: weighbridge report RUN --all", "dim"))


def _print_cell(
    analysis: Analysis, label: str, out: "Console", without: set[str], kinds: Collection[FlagKind], *, whole: bool
) -> None:
    """One workload at one level: its tables, and a line for each environment about the other metrics."""
    reports, seen = analysis.of(label), {remark_text(each) for each in analysis.confounders}
    if not reports and analysis.trials:
        broke = reason(trial for trial in analysis.trials if trial.label == label and trial.broke)
        why = f"every trial broke: {broke}" if broke else "no trial has finished"
        out.print(_text(f"\n{label}: {why}", "bold"))
    own, used = ([each for each in reports if each.resource_use is kind] for kind in (False, True))
    for report in own if whole else own[:1]:
        blocks = blocks_of(report)
        about = f"{report.better} is better{'' if blocks is None else f', {count(blocks)}'}"
        out.print(_text(f"\n{metric_title(report)} ({about})", "bold"))
        if not all(row.few for row in report.comparisons):
            out.print(_text(f"  {baseline_sentence(report, analysis.baseline)}"))
        if durability := durability_of(analysis, label):
            out.print(_text(f"  {durability}"))
        out.print(costs_table(analysis, report, out.width))
        for line in remark_lines(report, seen, without, kinds):
            out.print(_indented(line))
    for latency in (each for each in analysis.latencies if each.label == label):
        title = titled(label, latency.workload, latency.metric, "s")
        out.print(_text(f"\n{title}, all requests of all runs", "bold"))
        out.print(percentiles_table(latency))
    if whole and used:
        out.print(_text(f"\n{label}, resource use", "bold"))
        out.print(resources_table(analysis, used))
    if not whole:
        _print_others(analysis, label, own[1:], used, out)
    for line in dict.fromkeys(remark_text(r) for m in used for row in m.comparisons for r in row.remarks
                              if isinstance(r, FewReadings)):  # fmt: skip
        out.print(_indented(line, "yellow"))


def _print_others(
    analysis: Analysis, label: str, own: Sequence[MetricReport], used: Sequence[MetricReport], out: "Console"
) -> None:
    """The metrics without a table: of few blocks the values of what the workload itself measures."""
    if analysis.few:
        for report in own:
            out.print(_indented(_values_line(analysis, report)))
        return
    _print_lines(f"{label}, other metrics", own, out)
    _print_lines(f"{label}, resource use", used, out)


def _values_line(analysis: Analysis, report: MetricReport) -> str:
    """The values of a metric with few blocks: ``retransmits: native 0, 2; docker-bridge 5, 1``."""
    arms = (analysis.baseline, *(row.environment for row in report.comparisons))
    shown = value_unit(report)
    values = {name: quantities(analysis.block_values(report, name), report.unit, shown_in=shown) for name in arms}
    return f"{metric_name(report)}: {'; '.join(f'{name} {each}' for name, each in values.items())}"


def _print_lines(title: str, reports: Sequence[MetricReport], out: "Console") -> None:
    """What is different (with its cost), equivalent, inconclusive: a line for the environments that say the same."""
    names = [row.environment for row in reports[0].comparisons if not row.aa] if reports else []
    if names:
        out.print(_text(f"\n{title}", "bold"))
    lines: dict[str, list[str]] = {}
    for name in names:
        by_verdict: dict[str, list[str]] = {"different": [], "equivalent": [], "inconclusive": [], "hidden": []}
        for report in reports:
            for row in (each for each in report.comparisons if each.environment == name):
                found_ = effect(report, row) if row.shown_as == "different" else None
                cost = f" ({found_.amount} {found_.relation})" if found_ else ""
                if not row.broke_instead:
                    by_verdict.setdefault(row.shown_as, []).append(f"{metric_name(report)}{cost}")
        found = [
            f"{TOO_FEW if kind == 'few' else kind} in {', '.join(each)}" for kind, each in by_verdict.items() if each
        ]
        found += list(
            dict.fromkeys(
                broke_instead(r) for m in reports for r in m.comparisons if r.environment == name and r.broke_instead
            )
        )
        lines.setdefault("; ".join(found), []).append(name)
    for line, same in lines.items():
        out.print(_indented(f"{', '.join(same)}: {line}"))


def _steps(analysis: Analysis) -> list["RenderableType"]:
    """The ladder: what each step costs."""
    lines = [_indented(line, STYLES.get(verdict, "")) for verdict, line in ladder_sentences(analysis)]
    return [_text("\nstep by step", "bold"), _indented(LADDER_INTRODUCTION, "dim"), *lines] if lines else []


def _curves(analysis: Analysis) -> list["RenderableType"]:
    """Rising loads: a line for each environment."""
    found: list[RenderableType] = []
    for sweep in analysis.sweeps:
        found.append(_text(f"\n{curve_title(sweep)}", "bold"))
        found += [_indented(line) for line in filter(None, [sweep_durability(analysis, sweep)])]
        found += [_indented(line) for line in curve_sentences(sweep, analysis.baseline)]
    return found


def _head(analysis: Analysis, once: Sequence[str], width: int) -> list["RenderableType"]:
    parts: list[RenderableType] = [_text(f"{analysis.study}: {analysis.question}"), _text(answer(analysis), "bold")]
    parts += [_indented(line, "yellow") for line in left_out_lines(analysis)]
    if not analysis.metrics:
        return parts
    parts += matrix_tables(analysis, width)
    trusted = analysis.trust.trusted
    style = "bold red" if trusted is False else "yellow" if not trusted or imprecise(analysis) else "green"
    parts += [_text(line, style) for line in filter(None, [trust_sentence(analysis)])]
    parts += [_text(remark_text(each), "bold yellow") for each in analysis.notices]
    parts += [_text(line, "yellow") for line in filter(None, [exploratory_sentence(analysis)])]
    parts += [_indented(line, "yellow") for line in session_lines(analysis)]
    parts += [_indented(line) for line in condition_lines(analysis)]
    parts += path_parts(analysis)
    parts += [_indented(remark_text(each), "yellow") for each in analysis.confounders]
    parts += [_indented(line, "yellow") for line in once]
    parts += [_indented(line, "bold magenta") for line in disagreements(analysis)]
    if not analysis.native_only:
        parts += [_indented(line, STYLES.get(verdict, "")) for verdict, line in verdict_sentences(analysis)]
    parts += [*_steps(analysis), *_curves(analysis)]
    return parts


def _text(text: str, style: str = "") -> "RenderableType":
    from rich.text import Text

    return Text(printable(text), style=style)


def _indented(text: str, style: str = "") -> "RenderableType":
    from rich.padding import Padding

    return Padding(_text(text, style), (0, 0, 0, 2), expand=False)


def _print_failures(analysis: Analysis, out: "Console") -> None:
    lines = failed_sentences(analysis)
    if not lines:
        return
    out.print(_text(f"\n{len(lines)} of {len(analysis.trials)} trials failed", "bold"))
    for line in lines[:SHOWN_FAILURES]:
        out.print(_indented(line))
    if len(lines) > SHOWN_FAILURES:
        out.print(_indented(f"and {len(lines) - SHOWN_FAILURES} more: the report lists them all"))
