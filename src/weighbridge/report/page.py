"""The parts of every page: one file that needs no network. Every value is escaped, and only our script can run.

Text from a study, a program or a machine passes Jinja's autoescape, or `escaped` outside of templates. Chart
definitions are JSON in inert script elements with every ``<``, ``>`` and ``&`` written as an escape, so that no text
can end the element. A content security policy in the page forbids every connection.
"""

import base64
import gzip
import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import ClassVar

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from weighbridge.model.text import printable
from weighbridge.report.charts.base import Chart
from weighbridge.report.charts.library import chart_library
from weighbridge.report.charts.svg import static_svg
from weighbridge.report.page_cache import read_cached, write_cached
from weighbridge.report.text.environments import display_name, reference_words
from weighbridge.report.text.formatting import level, margin, plain, quantity, share
from weighbridge.report.text.metric_names import metric_title
from weighbridge.report.text.remarks import remark_text, remark_texts
from weighbridge.report.text.steps import change_text
from weighbridge.report.text.trial_flags import flag_text
from weighbridge.store.safe_folder import SafeFolder

FOLDER = Path(__file__).parent / "templates"

PLAIN_CHARACTERS = 1_000_000
"""The largest size of all charts' definitions, and of all trials; beyond it, they are stored compressed."""

FULL_PX, HALF_PX = 1080, 470
"""Widths of charts that are drawn without a script: as wide as the page, and next to a table."""


# -- charts ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChartPlace:
    """The place of one chart in the page: the id of its definition (empty: no chart), its height in pixels."""

    id: str
    height: int
    svg: str = ""
    """The chart as drawn without a script; empty if only the script draws it."""


NO_CHART = ChartPlace("", 0)


class PageCharts:
    """The definitions of a page's charts, by the id of each."""

    def __init__(self) -> None:
        self.definitions: dict[str, str] = {}

    def place(self, chart: Chart | None, *, static_px: int = 0) -> ChartPlace:
        """Add a chart and return its place; None means no chart.

        With `static_px`, a chart with axes is also drawn at that width, so that it is visible without a script.
        """
        if chart is None:
            return NO_CHART
        name = f"chart-{len(self.definitions) + 1}"
        self.definitions[name] = _json(chart.definition)
        return ChartPlace(name, chart.height + 60, static_svg(chart, static_px) if static_px else "")


def _json(value: object) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)  # ASCII only: U+2028 is escaped too
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# -- pages -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The contents of a page for its template: each field is a variable there."""

    template: ClassVar[str]
    title: str
    charts: PageCharts
    packed: bool = False
    """Whether a part of it is stored compressed, for its script to unpack."""


def render(page: Page) -> str:
    """Return a page with its charts, style and script."""
    specs = page.charts.definitions
    large = sum(map(len, specs.values())) > PLAIN_CHARACTERS
    parts = {
        "packed_specs": large,
        "specs": {name: Markup(packed(spec) if large else spec) for name, spec in specs.items()},  # noqa: S704 - _json
        "style": Markup((FOLDER / "report.css").read_text()),  # noqa: S704 - our own file
        "script": Markup((FOLDER / "report.js").read_text()),  # noqa: S704 - our own file
        "library": Markup(chart_library() if specs else ""),  # noqa: S704 - Vega as vl-convert ships it
    }
    values = {field.name: getattr(page, field.name) for field in fields(page)}
    return templates().get_template(page.template).render(**values, **parts)


def escaped(text: str) -> str:
    """Return text for HTML, without control characters; as the templates write every text."""
    return str(escape(printable(text)))


def packed(text: str) -> str:
    """Return text as its gzip in base 64, which the page's script unpacks."""
    return base64.b64encode(gzip.compress(text.encode(errors="replace"), 6, mtime=0)).decode()


def write_page(page: Page, path: Path, run: Path | None = None) -> Path:
    """Write a page to `path` and return it; one in the run's directory `run` is a new file. Raises OSError.

    The run can belong to another user, and a link in the page's place must not lead to a file of this user.
    """
    text = render(page).encode(errors="replace")
    if run is not None and path.parent.resolve() == run.resolve():
        with SafeFolder.open(run) as folder:
            folder.write_new(path.name, text)
    else:
        path.write_bytes(text)
    return path


# -- templates: what they compile to is kept, for that takes a tenth of a small run's report --------


@cache
def templates() -> Environment:
    """Return the environment that renders them; it escapes every value."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, bytecode_cache=_Compiled(), finalize=_shown,
    )  # fmt: skip
    environment.filters.update(
        quantity=quantity,
        plain=plain,
        share=share,
        margin=margin,
        level=level,
        clean=printable,
        flag_text=flag_text,
        metric_title=metric_title,
        display_name=display_name,
        reference_words=reference_words,
        remark_text=remark_text,
        remark_texts=remark_texts,
        change_text=change_text,
    )
    return environment


def _shown(value: object) -> object:
    """Return a value without control characters, because a page can be printed in a terminal."""
    if not isinstance(value, str):
        return value
    shown = printable(value)
    return value if shown is value else type(value)(shown)


class _Compiled(BytecodeCache):
    """Jinja compares a checksum of the template, and the versions of itself and of Python."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load what is kept of a template, if anything."""
        if bytecode := read_cached(_name(bucket)):
            bucket.bytecode_from_string(bytecode)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template compiled."""
        write_cached(_name(bucket), bucket.bytecode_to_string())


def _name(bucket: Bucket) -> str:
    return f"templates/{bucket.key}"
