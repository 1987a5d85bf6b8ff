"""A run for other documents: the costs of its primary metrics as Markdown, as a LaTeX table and as an SVG chart."""

import re
from collections.abc import Iterator

from weighbridge.analysis.results import Analysis
from weighbridge.model.text import one_line, printable
from weighbridge.report.charts.costs import overview
from weighbridge.report.charts.svg import static_svg
from weighbridge.report.markdown import escaped, markdown_table
from weighbridge.report.text.answer import answer
from weighbridge.report.text.conditions import left_out_lines
from weighbridge.report.text.environments import display_name, names_of, use_display_names
from weighbridge.report.text.formatting import SPACE, level, quantity
from weighbridge.report.text.metric_names import metric_title, value_unit
from weighbridge.report.text.remarks import remark_text
from weighbridge.report.text.summary import exploratory_sentence
from weighbridge.report.text.trust import trust_sentence
from weighbridge.report.text.verdicts import comparison_verdict, judged_cost_text

SVG_PX = 720
"""Width of the chart: a page of paper at 110 pixels an inch."""

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "-": "-{}", SPACE: "~", "±": r"$\pm$", "×": r"$\times$",
    "→": r"$\to$", "∞": r"$\infty$", "µ": r"\textmu{}", "·": r"\textperiodcentered{}", "–": "--", "…": r"\dots{}",
}  # fmt: skip
_NEGATIVE = re.compile(r"(?<![\w.])-(?=[0-9])")
"""The sign of a number, and no hyphen."""


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
        comments = [f"{analysis.study}: {analysis.question}", answer(analysis)]
        rows = [r" & ".join(map(latex, row)) for row in (_heads(analysis), *_rows(analysis))]
    body = [f"{row} \\\\" for row in rows]
    return "\n".join(
        [
            *(f"% {one_line(each)}" for each in comments),
            "% \\usepackage{booktabs,textcomp}",
            r"\begin{tabular}{@{}llrrrl@{}}", r"\toprule", body[0], r"\midrule", *body[1:], r"\bottomrule",
            r"\end{tabular}", "",
        ]
    )  # fmt: skip


def run_svg(analysis: Analysis) -> str:
    """Return the costs of the primary metrics with their intervals as a chart; empty if there are none."""
    with use_display_names(names_of(analysis)):
        chart = overview(analysis)
    return "" if chart is None else f"{static_svg(chart, SVG_PX)}\n"


def latex(text: str) -> str:
    """Return a text that LaTeX prints as it is, in one line."""
    parts = _NEGATIVE.split(re.sub(r"[ \t\r\n]+", " ", printable(text)))
    return "$-$".join("".join(_LATEX.get(letter, letter) for letter in part) for part in parts)


def _heads(analysis: Analysis) -> tuple[str, ...]:
    cost = f"cost [{level(analysis.confidence)}]"
    return "metric", "environment", display_name(analysis.baseline), cost, "rounds", "verdict"


def _rows(analysis: Analysis) -> Iterator[tuple[str, ...]]:
    """Return a row for each comparison on a primary metric; positive costs are worse."""
    for report in analysis.headlines:
        baseline = quantity(report.baseline_value, report.unit, value_unit(report))
        for row in report.comparisons:
            if not row.aa:
                yield (
                    metric_title(report), display_name(row.environment), baseline, judged_cost_text(row, report.unit),
                    str(row.blocks), comparison_verdict(row),
                )  # fmt: skip
