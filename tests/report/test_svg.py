"""Costs as they are seen without the page's script."""

import json
import re
from xml.etree import ElementTree

import pytest

from sentences import raises_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.report import charts
from weighbridge.report.charts.base import NameAxis, number_axis, round_values
from weighbridge.report.charts.svg import static_svg

from .made_up_runs import LATENCY, TCP, Workload
from .test_html import HOSTILE, Page, check_links, page_of
from .vega_lite import definition_of

ELEMENTS = {"svg", "g", "text", "rect", "line", "path"}


def test_costs_are_drawn_without_a_script_and_the_rest_says_that_it_needs_it(run):
    two = Workload("rr", [(LATENCY, 1.0, 0.01)])
    store = run(costs={"bridge": 1.25, "host": 1.0}, workloads=[TCP, two])
    page = page_of(store)
    places = [attrs for attrs in page.all("div") if "chart" in (attrs.get("class") or "").split()]
    # the overview, and the costs of two primary metrics; not those of the further metric, and no trials
    drawn_charts = [attrs for attrs in page.all("svg") if attrs.get("class") != "mark"]
    assert len(drawn_charts) == 3 and len(places) == 10
    assert len(page.all("noscript")) == 1 + 7
    first = next(place for place, (tag, attrs) in enumerate(page.elements) if tag == "svg" and "class" not in attrs)
    drawn = [tag for tag, _ in page.elements[first:]]
    assert {*drawn[: drawn.index("figcaption")]} <= ELEMENTS
    check_links(page, store.directory)


def drawing(chart, width=470):
    assert definition_of(chart)
    root = ElementTree.fromstring(static_svg(chart, width))
    return root, [each for each in root.iter() if each.tag.endswith("}text")]


def elements(root, name):
    return [each for each in root.iter() if each.tag == f"{{http://www.w3.org/2000/svg}}{name}"]


def test_costs_and_steps_are_drawn(run):
    analysis = analyse(run(costs={"bridge": 1.25, "host": 1.0}, ladder=[["host", "native"], ["bridge", "host"]]))
    forest, words = drawing(charts.forest(analysis, analysis.metrics[0]))
    assert len(elements(forest, "path")) == 3 and {"bridge", "host"} <= {each.text for each in words}
    colours = {each.get("fill") for each in elements(forest, "path")}
    assert colours == {charts.PALETTE[0], charts.PALETTE[1], charts.AA_ARM}
    overview, words = drawing(charts.overview(analysis), 1080)
    assert {"TCP throughput"} <= {each.text for each in words}
    assert overview.get("viewBox").startswith("0 0 1080 ")
    ladder, words = drawing(charts.waterfall(analysis, analysis.ladder[0]))
    assert len(elements(ladder, "rect")) == 1 + 2 * 2  # the frame; the noise floor and the bar of each step
    assert {"host", "bridge"} <= {each.text for each in words}


def test_a_mark_is_where_its_value_is(run):
    analysis = analyse(run(costs={"bridge": 1.25, "host": 1.0}))
    chart = charts.forest(analysis, analysis.metrics[0])
    root, _ = drawing(chart)
    (rows,) = [rows for rows in chart.definition["datasets"].values() if "low" in rows[0]]
    x, _ = chart.axes
    frame = elements(root, "rect")[0]
    width, height = float(frame.get("width")), float(frame.get("height"))
    transforms = [each.get("transform") for each in elements(root, "path")]
    drawn = [tuple(map(float, re.match(r"translate\((.*?),(.*?)\)", each).groups())) for each in transforms]
    at = [((row["cost"] - x.low) / (x.high - x.low) * width, height / 3 * (n + 0.5)) for n, row in enumerate(rows)]
    assert [place for each in drawn for place in each] == pytest.approx([p for each in at for p in each], abs=0.01)


def test_both_drawings_have_the_same_labels(run):
    """A name with hypervisors has each in a line of its own, uncut; any other is cut where it is long."""
    analysis, long_named = analyse(run(costs={"bridge": 1.25})), analyse(run(costs={f"vm-{'x' * 30}": 1.25}))
    chart = charts.forest(analysis, analysis.metrics[0])
    _, words = drawing(chart)
    written = {each.text for each in words}
    for channel in ("x", "y"):
        expression = chart.definition["layer"][-1]["encoding"][channel]["axis"]["labelExpr"]
        labels, _ = json.JSONDecoder().raw_decode(expression)
        lines = [line for label in labels for line in ([label] if channel == "x" else label)]
        assert lines and {*lines} <= written, channel
    _, words = drawing(charts.forest(long_named, long_named.metrics[0]))
    assert [each.text for each in words if "…" in each.text] == [f"vm-{'x' * 19}…"]
    assert NameAxis({"a": "a\nb"}, uncut=True).encoding("name")["axis"]["labelLimit"] == 0


def test_a_chart_without_axes_is_drawn_by_the_script_alone(run):
    analysis = analyse(run(costs={"bridge": 1.25}))
    with raises_sentence(ValueError):
        static_svg(charts.runs(analysis, analysis.metrics[0]), 470)


def test_a_drawing_holds_nothing_but_drawing(run):
    analysis = analyse(run(costs={"bridge": 1.25}))
    root, _ = drawing(charts.forest(analysis, analysis.metrics[0]))
    assert "width" not in root.attrib and "viewBox" in root.attrib
    assert {each.tag.partition("}")[2] for each in root.iter()} <= ELEMENTS
    assert not {name for each in root.iter() for name in each.attrib} & {"id", "href", "class"}


def test_hostile_names_are_only_text(run):
    hostile = f"{HOSTILE}\x1b\x00\ufffe"
    analysis = analyse(run(costs={hostile: 1.25}))
    drawn = static_svg(charts.forest(analysis, analysis.metrics[0]), 600)
    page = Page(drawn)
    assert not page.scripts and not page.all("img") and "script" in page.text
    assert all(not name.startswith("on") for _, attrs in page.elements for name in attrs)
    assert not re.search("[\x00-\x1f\ufffe]", drawn) and ElementTree.fromstring(drawn) is not None


@pytest.mark.parametrize(
    ("low", "high", "count", "expected"),
    [(0, 1, 5, [0, 0.2, 0.4, 0.6, 0.8, 1]), (-6.7, 17.8, 5, [-5, 0, 5, 10, 15]), (3, 3, 5, [3]),
     (80_000, 97_000, 4, [80_000, 85_000, 90_000, 95_000])],
)  # fmt: skip
def test_ticks_are_round(low, high, count, expected):
    assert round_values(low, high, count) == expected


def test_axes_have_their_places_and_labels():
    up = number_axis((0, 2000), "requests", 2)
    assert up.ticks == {0: "0", 1000: "1,000", 2000: "2,000"} and up.share(500) == 0.25
    assert number_axis((-1, 0.5), "cost", 3).ticks == {-1: "−1.0", -0.5: "−0.5", 0: "0.0", 0.5: "0.5"}
    decades = number_axis((1, 1000), "ratio", 4, logarithmic=True)
    assert [*decades.ticks.values()] == ["1", "10", "100", "1,000"]
    assert decades.share(10) == pytest.approx(1 / 3)
    assert NameAxis({"a": "a", "b": "two\nlines\nof it"}).height(26) == 2 * 48
