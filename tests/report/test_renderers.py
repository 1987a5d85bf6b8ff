"""A made-up document with every kind of block, rendered in each form; reports test their documents alone."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from weighbridge.report.charts.base import Canvas, Chart, MarkStyle, layer, nominal
from weighbridge.report.document import (
    Amount,
    Break,
    Code,
    Column,
    Command,
    CostOf,
    Document,
    Env,
    Fold,
    Heading,
    Link,
    Listing,
    Rank,
    Table,
    Tone,
    say,
)
from weighbridge.report.document import Chart as ChartBlock
from weighbridge.report.render_markdown import markdown
from weighbridge.report.render_page import write_document
from weighbridge.report.render_terminal import print_document
from weighbridge.report.screen import LINES
from weighbridge.statistics import Interval

from .test_golden import golden
from .test_html import HOSTILE, Page, check_links
from .visible_text import VisibleText

__all__ = ["golden"]


def drawing() -> Chart:
    canvas = Canvas()
    table = canvas.rows([{"run": "A"}])
    return canvas.layered([layer(table, "point", x=nominal("run", title="runs"))], 40)


def made_up(rows: int = 3) -> Document:
    """A document with every kind of block and every rank."""
    cost = CostOf(Interval(12.5, 10.0, 15.1), "ratio", "bit/s")
    change = CostOf(Interval(0.12, 0.1, 0.15), "difference", "%")
    columns = Column("environment", 2), Column("cost [95%]", 1), Column("change", align="right"), Column("verdict", 3)
    significant = say("significant", tone="different")
    cells = tuple(
        (say(Env(f"env-{number}")), say("A ", cost, Break(), "B ", cost), say(change), significant)
        for number in range(rows)
    )
    summary = tuple((say(row[0].parts, ", x"), say(cost)) for row in cells)
    facts = say("kernel: 6.1 → 6.2", tone=Tone.NOTICE), say("engine: 20 → 29")
    further = Heading("UDP loss", 3), say("Type ", Code("weighbridge report"), ".")
    several = (*columns, Column("a detail that a narrow terminal leaves out", detail=True))
    own = Table((Column("environment"), Column("median")), ((say(Env("host")), say(Amount(8.6e9, "bit/s"))),))
    notes = say("within the noise floor", tone=Tone.DIM), say("hidden by ", Link("a limit", "#m1"), tone="hidden")
    return Document(
        kind="made up",
        title="Made up: study",
        heading="What does *it* cost?",
        blocks=(
            say("a sentence of the screen about ", Env("host"), rank=Rank.SUMMARY),
            say("the control failed", tone=Tone.FAILURE, rank=Rank.FIRST),
            Table((Column(""), Column("")), summary, rank=Rank.SUMMARY),
            say("only a hint, if there is room", tone="different", rank=Rank.HINT),
            say("other load differed", tone=Tone.WARNING, rank=Rank.REMARK),
            Listing(facts, "changed: ", rank=Rank.REMARK),
            Heading("TCP throughput", soft="higher is better", anchor="m1"),
            say("The answer.", tone=Tone.STRONG),
            ChartBlock("costs in all runs", drawing, (("A", MarkStyle("#000000")),), "a caption",
                       (Table(several, tuple((*row, say("detail")) for row in cells), "m1"), Listing(notes))),
            Fold("absolute rates", (own,)),
            Fold("further metrics", further, rank=Rank.EXTRA),
            Command(("weighbridge", "compare", "a run", "--all"), "all tables: ", rank=Rank.SUMMARY),
        ),
        names={"host": "host (QEMU)"},
    )  # fmt: skip


def page_of(document: Document, path: Path) -> str:
    write_document(document, path)
    return path.read_text()


def printed(document: Document, width: int = 80, *, full: bool = False) -> str:
    file = io.StringIO()
    print_document(document, Console(file=file, width=width, highlight=False), full=full, pages=["page: x.html"])
    lines = file.getvalue().replace("\u00a0", " ").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def test_every_kind_of_block_in_every_form(golden, tmp_path):
    document = made_up()
    golden("rendered-terminal", printed(document))
    golden("rendered-terminal-all", printed(document, full=True))
    golden("rendered-terminal-narrow", printed(document, 40, full=True))
    golden("rendered-markdown", markdown(document, details=True).replace("\u00a0", " "))
    page = page_of(document, tmp_path / "page.html")
    golden("rendered-page", VisibleText(page, reading=True).text())
    check_links(Page(page), tmp_path)


@pytest.mark.parametrize("width", [30, 40, 80, 160])
@pytest.mark.parametrize("rows", [1, 8, 60])
def test_a_first_screen_has_25_lines_whatever_is_in_it(width, rows):
    lines = printed(made_up(rows), width).splitlines()
    assert len(lines) <= LINES and lines[-1] == "page: x.html"
    assert "the control failed" in lines
    assert all(len(line) <= width for line in lines if "weighbridge compare" not in line)


@pytest.mark.parametrize("width", [30, 40, 80, 160])
def test_no_line_of_a_full_report_is_wider_than_the_terminal(width):
    assert max(map(len, printed(made_up(), width, full=True).splitlines())) <= width


def test_markdown_has_details_only_if_they_are_asked_for():
    assert "UDP loss" in markdown(made_up(), details=True) and "UDP loss" not in markdown(made_up())


def test_a_table_without_its_chart_has_no_empty_place(tmp_path):
    chart = ChartBlock("costs", lambda: None, (("A", MarkStyle("#000000")),), "a caption", (say("its figures"),))
    page = page_of(Document("k", "t", "h", (chart,)), tmp_path / "page.html")
    assert "its figures" in page and "a caption" not in page and 'class="pair"' not in page


def test_hostile_texts_are_only_text(tmp_path):
    hostile = f"{HOSTILE}\x1b[2J"
    blocks = (
        say(hostile, Env(hostile), Code(hostile)), Heading(hostile, soft=hostile), Listing((say(hostile),), hostile),
        Table((Column(hostile),) * 2, ((say(hostile),) * 2,), "m1"), Command((hostile,), "run: "),
        ChartBlock(hostile, drawing, ((hostile, MarkStyle("#000000")),), hostile, (say("x"),)),
        Fold(hostile, (say(hostile),)),
    )  # fmt: skip
    document = Document("k", hostile, hostile, blocks, {hostile: f"{hostile} (QEMU)"})
    page = Page(page_of(document, tmp_path / "page.html"))
    assert not page.all("img") and HOSTILE in page.text and len(page.scripts) == 2
    assert all(not name.startswith("on") for _, attrs in page.elements for name in attrs)
    for text in (printed(document, full=True), markdown(document)):
        assert "\x1b" not in text
    assert "<script>" not in markdown(document).replace("\\<", "")
