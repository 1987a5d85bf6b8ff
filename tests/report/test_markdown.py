"""Text in Markdown: what a renderer of CommonMark with GFM's tables shows is the text, wherever it stands."""

import html
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from weighbridge.model.text import one_line
from weighbridge.report.markdown import escaped

RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
PIECES = st.sampled_from([
    *"\\`*_{}[]()<>#+-.!|~$@&:%^='\"/0123456789ax \t\n", "www.x.org", "https://x.org", "a@b.org", "@someone", "#123",
    "GH-1", "!1", ":smile:", "$x$", "$`x`$", "&amp;", "&#64;", "<b>", "<!-- -->", "<!--", "~~~", "```", "---",
    "|---|", "1. ", "- ", "[x]", "![a](b)", "[a]: b", "://", "\N{REPLACEMENT CHARACTER}", "\x1b[31m", "\0", "é",
    "\u202e", "\ud800",
])  # fmt: skip
TEXT = st.one_of(st.lists(PIECES, max_size=12).map("".join), st.text(max_size=30))
PLACES = {
    "a paragraph": ("", "", "p"), "a heading": ("## ", "", "h2"), "a list": ("- ", "", "li"),
    "bold": ("**x ", " x**", "strong"),
    "a cell": ("| a | b |\n|---|---|\n| ", " | y |", "td"),
}  # fmt: skip
STEERED = re.compile(r"""[@#!$&~^]\S|%[\w"]|:[\w+-]+:|://|www\.|GH-\d""", re.IGNORECASE)
"""What GitHub or GitLab look for in the text nodes of what was rendered."""


def nodes(before: str, text: str, after: str, tag: str) -> list[str]:
    """The text nodes of an element, between its comments; it has no other element."""
    made = RENDERER.render(before + escaped(text) + after)
    found = re.search(rf"<{tag}>(.*?)</{tag}>", made, re.DOTALL)
    assert found is not None or not escaped(text), made
    inside = re.sub(r"</?p>\n?", "", found[1]) if found else ""
    parts = inside.split("<!-- -->")
    assert all("<" not in part for part in parts), made
    return [html.unescape(part) for part in parts]


@pytest.mark.parametrize("place", PLACES)
@given(text=TEXT)
@example(text="- a")
@example(text="12. a")
@example(text="1) a")
@example(text="a \\")
@example(text="\\|")
def test_what_is_shown_is_the_text(place, text):
    before, after, tag = PLACES[place]
    shown = "".join(nodes(before, text, after, tag))
    told = one_line(text)
    assert " ".join(shown.split()) == (" ".join(("x", *told.split(), "x")) if place == "bold" else told)


@given(text=TEXT)
def test_no_text_node_has_what_a_platform_follows(text):
    for node in nodes("", text, "", "p"):
        assert not STEERED.search(node), node


@pytest.mark.parametrize(
    "text",
    [
        "<script>",
        "[a](b)",
        "a|b",
        "`x`",
        "**b**",
        "@someone",
        "http://x",
        "www.x.org",
        "#1",
        "~~x~~",
        "$x$",
        ":smile:",
    ],
)
def test_nothing_from_a_run_steers_a_renderer(text):
    assert "".join(nodes("", text, "", "p")) == text and escaped(text) != text


def test_plain_text_stays_readable():
    told = "bridge.tcp.throughput, 20.1 [19.2, 21.0] - of 12 blocks: 4% at 08:26"
    assert escaped(told) == told.replace("[", "\\[").replace("]", "\\]")
