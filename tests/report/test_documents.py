"""A run as Markdown, LaTeX and SVG: the headline costs, as the report has them, whatever names are in it."""

import re
from xml.etree import ElementTree

from markdown_it import MarkdownIt

from weighbridge.analysis.analyse import analyse
from weighbridge.model.text import one_line
from weighbridge.report.documents import run_latex, run_markdown, run_svg
from weighbridge.report.latex import MOST_ROWS, booktabs, latex
from weighbridge.report.text.verdicts import judged_cost_text

from .latex_text import is_plain_table
from .made_up_runs import LOSS, TCP, Workload
from .test_html import HOSTILE

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
    assert latex("a_b & 5% [-1.0, 2] x--y {$}") == (r"a\_b \& 5\% [$-$1.0, 2] x-{}-y \{\$\}")
    assert latex('2026-11-27 "a b" ("c") ---') == "2026-11-27 ``a b'' (``c'') -{}-{}-"
    assert latex("\\input{/etc/passwd}\nnext") == r"\textbackslash{}input\{/etc/passwd\} next"
    assert latex("a\x1b[31m \N{MINUS SIGN}5") == "a?[31m $-$5"


def test_no_cell_of_a_table_is_an_option_of_latex(run):
    rows = [("[5cm]", HOSTILE), ("*", "\\input{x}"), ("a & b", "% c")]
    table = booktabs(("[x", "y"), "ll", [("", rows), ("{}\\%", rows)], ("a\nb", "\x1b[2J"))
    assert is_plain_table(table) and table.count("{}[") == 3 and table.count("{}*") == 2
    store = run(costs={"[1cm] %": 1.25, HOSTILE: 1.0}, workloads=[Workload("*_{}", TCP.metrics)], question=HOSTILE)
    assert is_plain_table(run_latex(analyse(store)))


def test_a_long_table_goes_over_several_pages():
    rows = [("a", "b")] * MOST_ROWS
    assert "longtable" not in booktabs(("x", "y"), "ll", [("", rows)])
    table = booktabs(("x", "y"), "ll", [("one", rows), ("two", rows)])
    assert is_plain_table(table) and table.count("longtable") == 3 and table.count(r"\endhead") == 1


def test_the_chart_has_a_mark_for_each_cost_in_percent(run):
    analysis = analyse(run(costs={"bridge": 1.25, "host": 1.0}, workloads=TWO))
    svg = ElementTree.fromstring(run_svg(analysis))
    assert len([each for each in svg.iter() if each.tag.endswith("path")]) == 2, "two of throughput; loss has points"
    assert any("TCP" in (each.text or "") for each in svg.iter())
    assert run_svg(analyse(run(costs={"bridge": 1.0}, blocks=1))) == ""
