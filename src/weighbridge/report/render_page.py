"""Renders a document as a page: one offline file, with a template macro for each kind of block."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from weighbridge.model.text import printable
from weighbridge.report.document import Chart, Code, Document, Link, Sentence, charts_in, inline_text
from weighbridge.report.page import FULL_PX, HALF_PX, ChartPlace, Page, PageCharts, write_page
from weighbridge.report.text.environments import use_display_names


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPage(Page):
    """A document, and the functions that its template calls."""

    template = "document.html.j2"
    document: Document
    html: Callable[[Sentence], Markup]
    place: Callable[[Chart], ChartPlace]


def write_document(document: Document, path: Path, run: Path | None = None) -> Path:
    """Write a document as one offline file, as `write_page` does. Raises OSError if it cannot be written."""
    return write_page(document_page(document), path, run)


def document_page(document: Document) -> DocumentPage:
    """Return the page of a document."""

    def html(sentence: Sentence) -> Markup:
        markup = Markup()
        for part in sentence.parts:
            text = escape(printable(inline_text(part, document.names))).replace("\n", Markup("<br>"))
            match part:
                case Code():
                    text = Markup("<code>{}</code>").format(text)
                case Link():
                    text = Markup('<a href="{}">{}</a>').format(part.to, text)
            markup += text
        return markup

    charts, places = PageCharts(), {}
    with use_display_names(document.names):
        for each in charts_in(document.blocks):
            drawing = each.draw()
            static_px = (HALF_PX if each.fallback else FULL_PX) if drawing and drawing.axes else 0
            places[id(each)] = charts.place(drawing, static_px=static_px)
    return DocumentPage(
        title=document.title, charts=charts, document=document, html=html, place=lambda chart: places[id(chart)]
    )
