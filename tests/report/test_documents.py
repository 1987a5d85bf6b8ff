"""A run as Markdown, LaTeX and SVG: the headline costs, as the report has them, whatever names are in it."""

import re
from xml.etree import ElementTree

from markdown_it import MarkdownIt

from weighbridge.analysis.analyse import analyse
from weighbridge.model.text import one_line
from weighbridge.report.documents import latex, run_latex, run_markdown, run_svg
from weighbridge.report.text.verdicts import judged_cost_text

from .made_up_runs import LOSS, TCP, Workload

QUESTION = "What <b>costs</b> 5% & #1?"
TWO = [TCP, Workload("udp", [(LOSS, 0.05, 2.0)])]


def test_every_headline_cost_is_a_row_in_markdown_and_latex(run):
    analysis = analyse(run(costs={"bridge": 1.25, "host": 1.0}, workloads=TWO, question=QUESTION))
    html = MarkdownIt("commonmark").enable("table").render(run_markdown(analysis))
    assert "&lt;b&gt;costs&lt;/b&gt; 5% &amp; #" in re.sub("<!-- -->", "", html)
    table = run_latex(analysis)
    rows = [row for report in analysis.headlines for row in report.comparisons if not row.aa]
    assert html.count("<tr>") == 1 + len(rows) == 5
    assert len(re.findall(r" \\\\$", table, re.MULTILINE)) == 5
    assert {line.count(" & ") for line in table.splitlines() if line.endswith(r"\\")} == {5}
    for report in analysis.headlines:
        for row in (each for each in report.comparisons if not each.aa):
            assert f"<td>{one_line(judged_cost_text(row, report.unit))}</td>" in html
            assert latex(judged_cost_text(row, report.unit)) in table


def test_latex_reads_no_letter_of_a_text_as_its_own():
    assert latex("a_b & 5% [-1.0, 2] x--y {$}") == (r"a\_b \& 5\% [$-$1.0, 2] x-{}-{}y \{\$\}")
    assert latex("\\input{/etc/passwd}\nnext") == r"\textbackslash{}input\{/etc/passwd\} next"


def test_the_chart_has_a_mark_for_each_cost_in_percent(run):
    analysis = analyse(run(costs={"bridge": 1.25, "host": 1.0}, workloads=TWO))
    svg = ElementTree.fromstring(run_svg(analysis))
    assert len([each for each in svg.iter() if each.tag.endswith("path")]) == 2, "two of throughput; loss has points"
    assert any("TCP" in (each.text or "") for each in svg.iter())
    assert run_svg(analyse(run(costs={"bridge": 1.0}, blocks=1))) == ""
