import re
from xml.etree import ElementTree

import pytest

from weighbridge.analysis.analyse import analyse
from weighbridge.report import charts
from weighbridge.report.charts.labels import NINES, SPACED, TWO_LINES, listed
from weighbridge.report.charts.static import static_svg
from weighbridge.report.charts.static.axes import label_lines
from weighbridge.report.charts.static.rows import transformed
from weighbridge.report.charts.static.scales import Names, Numbers, round_values

from .made_up_runs import LATENCY, TCP, Workload, rising_load
from .test_html import HOSTILE, Page, check_links, page_of
from .vega_lite import definition_of

ELEMENTS = {"svg", "g", "path", "text", "rect", "line", "circle", "polygon"}


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


def drawing(chart, width=470):
    root = ElementTree.fromstring(static_svg(definition_of(chart), width))
    return root, [each for each in root.iter() if each.tag.endswith("}text")]


def elements(root, name):
    return [each for each in root.iter() if each.tag == f"{{http://www.w3.org/2000/svg}}{name}"]


def test_every_kind_of_chart_is_drawn(run):
    analysis = analyse(run(costs={"bridge": 1.25, "host": 1.0}))
    metric = analysis.metrics[0]
    forest, words = drawing(charts.forest(analysis, metric))
    assert len(elements(forest, "circle")) == 3 and {"bridge", "host", "native-again"} <= {
        each.text for each in words
    }
    colours = {each.get("fill") for each in elements(forest, "circle")}
    assert colours == {charts.PALETTE[0], charts.PALETTE[1], charts.AA_ARM}
    assert len(elements(drawing(charts.runs(analysis, metric))[0], "circle")) == 40
    boxes, _ = drawing(charts.distribution(analysis, metric))
    assert len(elements(boxes, "rect")) == 1 + 4  # the frame, and a box for each environment
    overview, words = drawing(charts.overview(analysis), 1080)
    assert {"tcp", "throughput"} <= {each.text for each in words}
    assert overview.get("viewBox").startswith("0 0 1080 ")


def test_a_mark_is_where_its_value_is(run):
    analysis = analyse(run(costs={"bridge": 1.25}))
    chart = charts.runs(analysis, analysis.metrics[0])
    root, _ = drawing(chart)
    rows = next(iter(chart.definition["datasets"].values()))
    drawn = [(float(each.get("cx")), float(each.get("cy"))) for each in elements(root, "circle")]
    assert [row["order"] for row in rows] == sorted(row["order"] for row in rows)
    assert [x for x, _ in drawn] == sorted(x for x, _ in drawn) and drawn[0][0] == pytest.approx(8, abs=0.1)
    assert min(drawn, key=lambda place: place[1]) == drawn[rows.index(max(rows, key=lambda row: row["value"]))]


def test_curves_over_the_load_are_drawn(run):
    analysis = analyse(run(**rising_load(outputs=False)))
    sweep = analysis.sweeps[0]
    root, words = drawing(charts.load_curve(analysis, sweep, sweep.metrics[0]), 1080)
    lines = [each for each in elements(root, "path") if each.get("fill") == "none"]
    assert len(lines) == 4 and [bool(each.get("stroke-dasharray")) for each in lines].count(True) == 1
    assert {str(int(level.load)) for level in sweep.levels if level.load < 1000} <= {each.text for each in words}


def test_a_drawing_holds_nothing_but_drawing(run):
    analysis = analyse(run(costs={"bridge": 1.25}))
    root, _ = drawing(charts.runs(analysis, analysis.metrics[0]))
    assert "width" not in root.attrib and "viewBox" in root.attrib
    assert {each.tag.partition("}")[2] for each in root.iter()} <= ELEMENTS
    assert not {name for each in root.iter() for name in each.attrib} & {"id", "href", "class"}


def test_hostile_names_are_only_text(run):
    hostile = f"{HOSTILE}\x1b\x00\ufffe"
    analysis = analyse(run(costs={hostile: 1.25}))
    drawn = static_svg(definition_of(charts.forest(analysis, analysis.metrics[0])), 600)
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


def test_scales_and_their_labels():
    up = Numbers(0, 2000, 100, 0)
    assert up.place(500) == 75 and up.ticks({"labelExpr": SPACED}, 2) == [
        (100, "0"), (50, "1\u00a0000"), (0, "2\u00a0000"),
    ]  # fmt: skip
    decades = Numbers(1, 1000, 0, 300, logarithmic=True)
    assert [label for _, label in decades.ticks({}, 4)] == ["1", "10", "100", "1,000"]
    nines = {"values": [2, 10, 1000], "labelExpr": NINES}
    assert [label for _, label in decades.ticks(nines, 4)] == ["50 %", "90 %", "99.90 %"]
    levels = {"values": [1.5, 20.0], "labelExpr": listed([1.5, 20.0], ["a", "b"])}
    assert Numbers(0, 30, 0, 30).ticks(levels, 5) == [(1.5, "a"), (20, "b")]
    assert Names(["a", "b"], 0, 100).place("b") == 75 and Names(["a", "b"], 0, 100, -0.5).place("b") == 100
    assert label_lines("long name\nof two", {"labelExpr": TWO_LINES}, 60) == ["long na…", "of two"]


def test_lists_become_rows_and_kinds_are_stacked():
    read = [{"n": 0, "t": [0, 1], "a": [1.0, 2.0], "b": [3.0, 4.0]}, {"n": 1, "t": [5]}]
    stack = {"stack": "v", "groupby": ["n", "t"], "sort": [{"field": "k"}], "as": ["low", "high"]}
    steps = [{"filter": "datum.a"}, {"flatten": ["t", "a", "b"]}, {"fold": ["a", "b"], "as": ["k", "v"]}, stack]
    assert [(row["t"], row["k"], row["low"], row["high"]) for row in transformed(read, steps)] == [
        (0, "a", 0, 1), (0, "b", 1, 4), (1, "a", 0, 2), (1, "b", 2, 6),
    ]  # fmt: skip
