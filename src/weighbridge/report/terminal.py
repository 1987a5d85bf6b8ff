"""A run in the terminal: sentences, then a table per workload and metric. Plain text where there is no terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weighbridge.model.text import printable
from weighbridge.report.broke import reason
from weighbridge.report.content import Analysis, LatencyReport, MetricReport
from weighbridge.report.curve_words import curve_sentences, curve_title
from weighbridge.report.latency import PERCENTS
from weighbridge.report.names import metric_words
from weighbridge.report.numbers import cost_text, quantity
from weighbridge.report.sentences import (
    NOTHING,
    baseline_sentence,
    disagreements,
    exploratory_sentence,
    failed_sentences,
    imprecise,
    noise_sentence,
    remark_lines,
    trust_sentence,
    verdict_sentences,
)
from weighbridge.report.steps import LADDER_INTRODUCTION, ladder_sentences
from weighbridge.report.trial_flags import said_once

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

STYLES = {
    "different": "bold yellow",
    "broke": "yellow",
    "equivalent": "green",
    "inconclusive": "dim",
    "hidden": "magenta",
}
SHOWN_FAILURES = 10
WIDE = 100
"""Columns from which the environments' own medians are shown too."""


def print_report(analysis: Analysis, console: "Console | None" = None, *, whole: bool = False) -> None:
    """Print a run's verdicts and tables to `console` (default: standard output; no colours when it is piped).

    The first metric of each workload has a table, the others a line for each environment; `whole`: all have tables.
    """
    from rich.console import Console

    without = {"exploratory"} if analysis.exploratory else set()
    out = console or Console(highlight=False)
    once, kinds = said_once(analysis.trials)
    for part in _head(analysis, once):
        out.print(part, soft_wrap=False)
    for label in analysis.labels:
        reports, seen = analysis.of(label), {each.text for each in analysis.confounders}
        if not reports and analysis.trials:
            broke = reason(trial for trial in analysis.trials if trial.label == label and trial.broke)
            why = f"every trial broke: {broke}" if broke else "no trial has finished"
            out.print(_text(f"\n{label}: {why}", "bold"))
        own = [each for each in reports if not each.resource_use]
        for report in own if whole else own[:1]:
            out.print(_text(f"\n{report.title}, {report.better} is better", "bold"))
            out.print(_text(f"  {baseline_sentence(report, analysis.baseline)}"))
            if label in analysis.durability:
                out.print(_text(f"  {analysis.durability[label]}"))
            out.print(_table(report, wide=out.width >= WIDE))
            for line in remark_lines(report, seen, without, kinds):
                out.print(_indented(line))
        for latency in (each for each in analysis.latencies if each.label == label):
            out.print(_text(f"\n{label} {metric_words(latency.metric)}, all requests of all runs", "bold"))
            out.print(_percentiles(latency))
        used = [each for each in reports if each.resource_use]
        if whole and used:
            out.print(_text(f"\n{label}, resource use", "bold"))
            out.print(_resources(used, analysis.baseline))
        for what, others in () if whole else (("other metrics", own[1:]), ("resource use", used)):
            _print_lines(f"{label}, {what}", others, out)
        for line in dict.fromkeys(r.text for m in used for row in m.comparisons for r in row.remarks
                                  if r.code == "readings"):  # fmt: skip
            out.print(_indented(line, "yellow"))
    _print_failures(analysis, out)
    if not whole and any(not report.headline for report in analysis.metrics):
        out.print(_text("\nevery metric has its table in the page and with: weighbridge report RUN --all", "dim"))


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
                cost = f" {cost_text(row, report.unit)}" if row.verdict == "different" else ""
                if not row.instead:
                    by_verdict[row.verdict].append(f"{metric_words(report.metric)}{cost}")
        found = [f"{verdict} in {', '.join(each)}" for verdict, each in by_verdict.items() if each]
        found += list(
            dict.fromkeys(r.instead for m in reports for r in m.comparisons if r.environment == name and r.instead)
        )
        lines.setdefault("; ".join(found), []).append(name)
    for line, same in lines.items():
        out.print(_indented(f"{', '.join(same)}: {line}"))


def _resources(reports: Sequence[MetricReport], baseline: str) -> "RenderableType":
    """All that the meters added for one workload, in one table."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in ("metric", "environment", "typical cost [95 %]", "verdict"):
        table.add_column(name, overflow="fold")
    for report in reports:
        table.add_row(_text(metric_words(report.metric)), _text(baseline),
                      _text(quantity(report.baseline_value, report.unit), "dim"), _text(""))  # fmt: skip
        for row in report.comparisons:
            style = "dim" if row.aa else STYLES[row.verdict]
            cells = (row.environment, cost_text(row, report.unit))
            table.add_row(_text(""), *[_text(each) for each in cells], _text(row.verdict_words, style))
    return table


def _steps(analysis: Analysis) -> list["RenderableType"]:
    """The ladder: what each step costs."""
    lines = [_indented(line, STYLES.get(verdict, "")) for verdict, line in ladder_sentences(analysis)]
    return [_text("\nstep by step", "bold"), _indented(LADDER_INTRODUCTION, "dim"), *lines] if lines else []


def _curves(analysis: Analysis) -> list["RenderableType"]:
    """Rising loads: a line for each environment."""
    found: list[RenderableType] = []
    for sweep in analysis.sweeps:
        found.append(_text(f"\n{curve_title(sweep)}", "bold"))
        found += [_indented(line) for line in filter(None, [analysis.durability_of(sweep)])]
        found += [_indented(line) for line in curve_sentences(sweep, analysis.baseline)]
    return found


def _percentiles(latency: LatencyReport) -> "RenderableType":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("environment", overflow="fold")
    for percent in PERCENTS:
        table.add_column(f"p{percent:g}", justify="right", no_wrap=True)
    for row in latency.rows:
        table.add_row(_text(row.environment), *[_text(quantity(each, "s")) for each in row.percentiles])
    return table


def _head(analysis: Analysis, once: Sequence[str]) -> list["RenderableType"]:
    parts: list[RenderableType] = [_text(f"{analysis.study}: {analysis.question}", "bold")]
    if not analysis.metrics:
        parts.append(_text(NOTHING))
        return parts
    trusted = analysis.trust.trusted
    if trusted is not True or imprecise(analysis):
        parts.append(_text(trust_sentence(analysis), "bold red" if trusted is False else "yellow"))
    if exploratory_sentence(analysis):
        parts.append(_text(exploratory_sentence(analysis), "yellow"))
    parts += [_indented(line, "bold magenta") for line in disagreements(analysis)]
    parts += [_indented(line, STYLES.get(verdict, "")) for verdict, line in verdict_sentences(analysis)]
    parts.append(_indented(noise_sentence(analysis)))
    parts += [_indented(line) for line in analysis.calibration]
    parts += [_indented(each.text, "yellow") for each in analysis.confounders]
    parts += [_indented(line, "yellow") for line in once]
    parts += [*_steps(analysis), *_curves(analysis)]
    return parts


def _text(text: str, style: str = "") -> "RenderableType":
    from rich.text import Text

    return Text(printable(text), style=style)


def _indented(text: str, style: str = "") -> "RenderableType":
    from rich.padding import Padding

    return Padding(_text(text, style), (0, 0, 0, 2), expand=False)


def _table(report: MetricReport, *, wide: bool) -> "RenderableType":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("environment", overflow="fold")
    table.add_column("typical cost [95 %]", no_wrap=True)
    if wide:
        table.add_column("median", justify="right", no_wrap=True)
    table.add_column("blocks", justify="right")
    table.add_column("verdict", min_width=len("(exploratory)"))  # two lines where there is no room for one
    for row in report.comparisons:
        cost = cost_text(row, report.unit)
        cells = [Text(printable(row.environment)), Text(cost)]
        if wide:
            cells.append(Text(quantity(row.value, report.unit)))
        style = "dim" if row.aa else STYLES[row.verdict]
        table.add_row(*cells, Text(str(row.blocks)), Text(row.verdict_words, style=style))
    return table


def _print_failures(analysis: Analysis, out: "Console") -> None:
    lines = failed_sentences(analysis)
    if not lines:
        return
    out.print(_text(f"\n{len(lines)} of {len(analysis.trials)} trials failed", "bold"))
    for line in lines[:SHOWN_FAILURES]:
        out.print(_indented(line))
    if len(lines) > SHOWN_FAILURES:
        out.print(_indented(f"and {len(lines) - SHOWN_FAILURES} more: the report lists them all"))
