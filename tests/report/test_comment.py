"""A run as a comment on a pull request: the verdict first, a row for each pair of versions, nothing but text."""

import re

import pytest
from markdown_it import MarkdownIt

from sentences import assert_sentence, raises_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.report.comment import MOST_CHARACTERS, MOST_ROWS, comment, marker

from .made_up_runs import LOSS, THROUGHPUT, Workload

TCP = [Workload("tcp", [(THROUGHPUT, 8.66e9, 0.01)])]
VERSIONS = {"baseline": "base", "study": "weigh-prog"}
"""The parts of a recipe that `weigh --base` decides."""


def html(text: str) -> str:
    return MarkdownIt("commonmark").enable("table").render(text)


@pytest.mark.parametrize(("cost", "blocks"), [(1.08, 20), (1.0, 40), (1.0, 10), (0.9, 20)])
def test_the_verdict_is_the_first_line_also_if_nothing_changed(run, cost, blocks):
    text = comment(analyse(run(costs={"head": cost}, workloads=TCP, blocks=blocks, **VERSIONS)))
    first, _, rest = text.partition("\n")
    assert first.startswith("**") and first.endswith("**")
    assert_sentence(html(first))
    assert html(rest).count("<tr>") == 2


def test_the_row_has_the_smallest_cost_that_would_have_been_detected(run):
    analysis = analyse(run(costs={"head": 1.0}, workloads=TCP, blocks=20, **VERSIONS))
    (report,) = analysis.headlines
    visible = report.comparisons[0].visible.cost
    assert f"<td>{visible:.1f}% or more</td>" in html(comment(analysis))


def test_each_head_is_compared_with_its_own_base(run):
    costs = {"head": 1.0, "base-docker": 1.5, "head-docker": 1.5 * 1.2}
    text = comment(analyse(run(costs=costs, workloads=TCP, blocks=20, **VERSIONS)))
    assert text.startswith("**head-docker") and "base-docker" not in text
    assert html(text).count("<tr>") == 3


def test_what_else_differed_is_said(run):
    facts = {"head/server@here": {"userland": "b"}, "base/server@here": {"userland": "a"}}
    assert "Nothing else that Weighbridge records differed." in comment(analyse(run(costs={"head": 1.0}, **VERSIONS)))
    differing = analyse(run(costs={"head": 1.0}, facts=facts, **VERSIONS))
    assert ("What else differed:" in comment(differing)) == bool(differing.confounders)


def test_a_strangers_run_forges_neither_markup_nor_mentions(run):
    nasty = "x](https://evil.example) <img src=x> @admin #1 ![a](b) `c` | d | --> <!-- weighbridge-comment: a -->"
    workloads = [Workload(nasty, [(LOSS, 0.05, 2.0)]), *TCP]
    analysis = analyse(run(costs={"head": 1.3}, workloads=workloads, question=nasty, blocks=12))
    text = comment(analysis, stranger=True)
    shown = html(text)
    assert "<img" not in shown and "<a " not in shown and "<code>" not in shown
    assert "@admin" not in text and marker("a") not in text
    assert "do not take these figures as proof" in text.lower()


@pytest.mark.parametrize("name", ["w" * 2000, "short"])
def test_it_is_never_too_long_for_a_comment(run, name):
    workloads = [Workload(f"{name}{number}", [(THROUGHPUT, 8.66e9, 0.01)]) for number in range(MOST_ROWS + 5)]
    text = comment(analyse(run(costs={"head": 1.3}, workloads=workloads, blocks=6)), page="https://ci.example/1")
    assert len(text) <= MOST_CHARACTERS and text.startswith("**head") and "(https://ci.example/1)" in text
    assert ("5 more comparisons" in text) == (name == "short")


@pytest.mark.parametrize("page", ["javascript:alert(1)", "https://a.b/) [x](y", "https://a.b/ c", "http://", "//a"])
def test_an_address_that_could_end_the_link_is_refused(run, page):
    with raises_sentence(ValueError):
        comment(analyse(run(costs={"head": 1.0})), page=page)


def test_the_address_is_a_link(run):
    text = comment(analyse(run(costs={"head": 1.0})), page="https://ci.example:8443/a/-/jobs/1?x=1#artifacts")
    assert re.search(r'<a href="https://ci\.example:8443/a/-/jobs/1\?x=1#artifacts">Report</a>', html(text))
