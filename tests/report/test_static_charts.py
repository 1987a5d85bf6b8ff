import re
from xml.etree import ElementTree

import pytest

from weighbridge.analysis.analyse import analyse
from weighbridge.report import charts
from weighbridge.report.charts.static import ELEMENTS, SVG, static_svg

from .made_up_runs import LATENCY, TCP, Workload
from .test_html import HOSTILE, Page, check_links, page_of
from .vega_lite import definition_of

pytestmark = pytest.mark.usefixtures("static_charts")


def test_what_is_seen_first_is_drawn_without_a_script(run):
    two = Workload("rr", [(LATENCY, 1.0, 0.01)])
    store = run(costs={"bridge": 1.25, "host": 1.0}, workloads=[TCP, two])
    page = page_of(store)
    places = [attrs for attrs in page.all("div") if "chart" in (attrs.get("class") or "").split()]
    # the overview, three of each headline, and the costs of the other metric that differs; not its trials, folded
    assert len(page.all("svg")) == 8 and len(places) == 10
    assert all(
        tag in ELEMENTS for tag, attrs in page.elements[page.elements.index(("svg", page.all("svg")[0])) :][:40]
    )
    check_links(page, store.directory)


def test_a_drawing_has_ids_of_its_own_and_no_size(run):
    analysis = analyse(run(costs={"bridge": 1.25}))
    definition = definition_of(charts.runs(analysis, analysis.metrics[0]))
    first, second = (static_svg(definition, name, 400) for name in ("chart-1", "chart-2"))
    ids = set(re.findall(r'id="([^"]+)"', first))
    assert all(each.startswith("chart-1-") for each in ids) and not ids & set(re.findall(r'id="([^"]+)"', second))
    root = ElementTree.fromstring(first)
    assert "width" not in root.attrib and "viewBox" in root.attrib and {each.tag for each in root.iter()} <= {
        f"{{{SVG}}}{name}" for name in ELEMENTS
    }  # fmt: skip
    assert "href" not in first and "currentColor" in first


def test_hostile_names_are_only_text(run):
    hostile = f"{HOSTILE}\x1b\x00\ufffe"
    analysis = analyse(run(costs={hostile: 1.25}))
    page = Page(static_svg(definition_of(charts.forest(analysis, analysis.metrics[0])), "chart-1", 600))
    assert not page.scripts and not page.all("img") and "alert(1)" in page.text
    assert all(not name.startswith("on") for _, attrs in page.elements for name in attrs)
