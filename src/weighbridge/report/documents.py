"""A run for other documents: its costs as Markdown, LaTeX and SVG, and its methods as a paragraph."""

import textwrap
from collections.abc import Iterator

from weighbridge.analysis.results import Analysis
from weighbridge.report.charts.costs import overview
from weighbridge.report.charts.svg import static_svg
from weighbridge.report.latex import booktabs, latex
from weighbridge.report.markdown import escaped, markdown_table
from weighbridge.report.text.answer import answer
from weighbridge.report.text.conditions import left_out_lines
from weighbridge.report.text.environments import display_name, names_of, use_display_names
from weighbridge.report.text.formatting import level, quantity
from weighbridge.report.text.methods import methods_sentences
from weighbridge.report.text.metric_names import metric_title, value_unit
from weighbridge.report.text.remarks import remark_text
from weighbridge.report.text.summary import exploratory_sentence
from weighbridge.report.text.trust import trust_sentence
from weighbridge.report.text.verdicts import judged_cost_text, reasoned_verdict
from weighbridge.store.run import RunStore

SVG_PX = 720
"""Width of the chart: a page of paper at 110 pixels an inch."""
PARAGRAPH = 80
"""Characters in a line of a paragraph."""


def run_markdown(analysis: Analysis) -> str:
    """Return the answer, the control, the costs of the primary metrics and the notices on all costs."""
    with use_display_names(names_of(analysis)):
        lines = [
            f"## {escaped(f'{analysis.study}: {analysis.question}')}",
            "",
            f"**{escaped(answer(analysis))}**",
            "",
        ]
        if analysis.metrics and (sentence := trust_sentence(analysis)):
            lines += [escaped(sentence), ""]
        if rows := [*_rows(analysis)]:
            lines += [*markdown_table(_heads(analysis), rows), ""]
        remarks = [*left_out_lines(analysis), *map(remark_text, analysis.notices), exploratory_sentence(analysis)]
        lines += [f"- {escaped(each)}" for each in remarks if each]
    return "\n".join([*lines, ""])


def run_latex(analysis: Analysis) -> str:
    """Return the costs of the primary metrics as a booktabs table, with the answer as a comment above it."""
    with use_display_names(names_of(analysis)):
        comments = f"{analysis.study}: {analysis.question}", answer(analysis)
        return booktabs(_heads(analysis), "llrrrl", [("", [*_rows(analysis)])], comments)


def run_methods(store: RunStore, analysis: Analysis, *, as_latex: bool = False) -> str:
    """Return a paragraph for the methods section of a paper, in lines of `PARAGRAPH` characters."""
    text = " ".join(methods_sentences(store, analysis))
    text = latex(text) if as_latex else text
    return f"{textwrap.fill(text, PARAGRAPH, break_long_words=False, break_on_hyphens=False)}\n"


def run_svg(analysis: Analysis) -> str:
    """Return the costs of the primary metrics with their intervals as a chart; empty if there are none."""
    with use_display_names(names_of(analysis)):
        chart = overview(analysis)
    return "" if chart is None else f"{static_svg(chart, SVG_PX)}\n"


def _heads(analysis: Analysis) -> tuple[str, ...]:
    cost = f"cost [{level(analysis.confidence)}]"
    return "metric", "environment", display_name(analysis.baseline), cost, "rounds", "verdict"


def _rows(analysis: Analysis) -> Iterator[tuple[str, ...]]:
    """Return a row for each comparison on a primary metric; positive costs are worse."""
    for report in analysis.headlines:
        references = analysis.references(report)
        for row in report.comparisons:
            if not row.aa:
                baseline = quantity(references[row.against], report.unit, value_unit(report))
                yield (
                    metric_title(report), display_name(row.environment), baseline, judged_cost_text(row, report.unit),
                    str(row.blocks), reasoned_verdict(row),
                )  # fmt: skip
