"""What every page is made of: one file that needs no network. Every value is escaped, no script but ours can run.

Whatever comes from a study, a program or a machine passes Jinja's autoescape; chart definitions are JSON in inert
script elements with every ``<``, ``>`` and ``&`` written as an escape, so that no text can end the element. A content
security policy in the page forbids every connection.
"""

import base64
import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weighbridge.report.charts.base import Chart
from weighbridge.report.charts.library import chart_library
from weighbridge.report.charts.static import static_svg

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Drawn:
    """The place of one chart in the page: the id of its definition, and its height in pixels (0: no chart)."""

    id: str
    height: int
    svg: Any = ""
    """The chart as it is seen without a script; empty where only the script draws it."""


PLAIN_CHARACTERS = 1_000_000
"""Of all charts' definitions, and of all trials: beyond, they are stored compressed."""

FULL_PX, HALF_PX, SMALL_PX = 1080, 470, 270
"""Widths of charts that are drawn without a script: as wide as the page, beside a table, and one of many."""


def place(specs: dict[str, str], chart: Chart | None, *, static_px: int = 0) -> Drawn:
    """Add a chart's definition to `specs` and give its place; None is no chart.

    With `static_px` it is drawn at that width too, so that it is seen without a script.
    """
    if chart is None:
        return Drawn("", 0)
    name = f"chart-{len(specs) + 1}"
    specs[name] = _json(chart.definition)
    svg = static_svg(chart.definition, static_px) if static_px else ""
    return Drawn(name, chart.height + 60, svg)


def write_page(page: str, path: Path, run: Path) -> None:
    """Write a page to `path`; one in the run's directory `run` is made anew. Raises OSError.

    The run may be somebody else's, and a link in the page's place must not lead to a file of this user.
    """
    anew = path.parent.resolve() == run.resolve()
    if anew:
        path.unlink(missing_ok=True)
    with path.open("x" if anew else "w", encoding="utf-8", errors="replace") as file:
        file.write(page)


def render(template: str, specs: dict[str, str], **values: Any) -> str:
    """The page of a template with its charts, style and script."""
    from markupsafe import Markup

    from weighbridge.report.rendering import FOLDER, templates

    large = sum(map(len, specs.values())) > PLAIN_CHARACTERS
    definitions = {name: Markup(packed(spec) if large else spec) for name, spec in specs.items()}  # noqa: S704 - _json
    parts = {
        "packed_specs": large,
        "specs": definitions,
        "style": Markup((FOLDER / "report.css").read_text()),  # noqa: S704 - our own file
        "script": Markup((FOLDER / "report.js").read_text()),  # noqa: S704 - our own file
        "library": Markup(chart_library() if specs else ""),  # noqa: S704 - Vega as vl-convert ships it
    }
    return templates().get_template(template).render(**values, **parts)


def packed(text: str) -> str:
    """Text as its gzip in base 64, which the page's script unpacks."""
    return base64.b64encode(gzip.compress(text.encode(errors="replace"), 6, mtime=0)).decode()


def fragment(template: str, **values: Any) -> "Markup":
    """A part of a page, escaped."""
    from markupsafe import Markup

    from weighbridge.report.rendering import templates

    return Markup(templates().get_template(template).render(**values))  # noqa: S704 - the template escapes


def _json(value: object) -> str:
    """Give JSON that is safe inside a script element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)  # ASCII only: U+2028 is escaped too
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
