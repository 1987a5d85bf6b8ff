"""Charts as SVG inside a page: what is seen without its script, in print, and before the script has drawn.

What vl-convert gives is read as XML and written again with nothing but drawing in it: no script, no style sheet, no
link. Ids are made the page's own, so that two charts do not share a clip path.
"""

import json
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from weighbridge.report.charts.library import vega_lite_version

SVG = "http://www.w3.org/2000/svg"
ELEMENTS = {"svg", "g", "path", "text", "tspan", "rect", "line", "circle", "polygon", "clipPath", "defs"}
"""What a chart is drawn with. Anything else is left out."""

LEFT_OUT = {"class", "role", "target", "pointer-events", "style", "href"}
"""Attributes without a meaning here: the place of the chart says what it is."""

INK, LINE = "currentColor", "#88888859"
"""Colours of words and lines that can be read on a light page and on a dark one."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_CONTROL = re.compile(r"\\u(?:00[01][0-9a-f]|007f|fff[ef])")
"""Control characters as JSON writes them: vl-convert ends the whole process where it measures a NUL."""
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONG = re.compile(r"-?\d+\.\d{3,}")


def static_svg(definition: Mapping[str, Any], name: str, width: int) -> str:
    """Return a chart of `width` pixels as an SVG element that shrinks with its place; `name` begins its ids."""
    import vl_convert

    sized = {**definition, "width": width} if definition.get("width") == "container" else definition
    text = _CONTROL.sub(r"\\ufffd", json.dumps({**sized, "config": _config(width)}))
    drawn = vl_convert.vegalite_to_svg(text, vl_version=vega_lite_version())
    return _safe(drawn, name)


def _config(width: int) -> dict[str, Any]:
    axis = {"labelColor": INK, "titleColor": INK, "gridColor": LINE, "domainColor": LINE, "tickColor": LINE,
            "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelOverlap": True}  # fmt: skip
    return {
        "background": None, "font": FONT, "view": {"stroke": LINE}, "axis": axis,
        "axisY": {"labelLimit": max(150, width // 3)}, "axisX": {"tickCount": max(3, min(8, width // 90))},
        "text": {"color": INK}, "header": {"labelColor": INK, "titleColor": INK},
        "legend": {"labelColor": INK, "titleColor": INK},
    }  # fmt: skip


def _safe(drawn: str, name: str) -> str:
    """The drawing alone, with ids of its own."""
    root = ElementTree.fromstring(_NO_XML.sub("\N{REPLACEMENT CHARACTER}", drawn))  # noqa: S314 - vl-convert made it
    _clean(root, name)
    for key in ("width", "height"):
        root.attrib.pop(key, None)
    width = root.attrib.get("viewBox", "0 0 0 0").split()[2]
    root.set("style", f"max-width:{float(width):.0f}px")
    root.set("aria-hidden", "true")
    ElementTree.register_namespace("", SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, name: str) -> None:
    for child in list(element):
        if child.tag == f"{{{SVG}}}a":  # the script's chart leads to the trials, this one to nowhere
            child.tag = f"{{{SVG}}}g"
        if child.tag.removeprefix(f"{{{SVG}}}") in ELEMENTS:
            _clean(child, name)
        else:
            element.remove(child)
    for key in [each for each in element.attrib if each in LEFT_OUT or each.startswith(("aria-", "on", "{"))]:
        del element.attrib[key]
    for key, value in element.attrib.items():
        if key == "id":
            element.set(key, f"{name}-{value}")
        elif "url(" in value:
            element.set(key, value.replace("url(#", f"url(#{name}-") if value.startswith("url(#") else "none")
        elif key in ("d", "transform"):
            element.set(key, _LONG.sub(lambda found: f"{float(found[0]):.2f}", value))
