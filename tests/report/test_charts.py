import itertools
import math
import re
from importlib import resources

import pytest

from weighbridge.analysis.analyse import analyse
from weighbridge.model.measurement import Metric, Outcome
from weighbridge.report import charts
from weighbridge.report.html import write_html

from .made_up_runs import LOSS, TCP, Workload
from .test_svg import drawing, elements
from .vega_lite import definition_of


def layers(chart):
    """Each layer's mark and rows."""
    spec = definition_of(chart)
    return [(layer["mark"]["type"], spec["datasets"][layer["data"]["name"]]) for layer in spec["layer"]]


def test_every_trial_is_a_point_and_failed_ones_are_crosses(run):
    analysis = analyse(run(costs={"bridge": 1.25}, failing={(4, "bridge"): Outcome.DEADLINE}))
    (_, points), (_, crosses) = layers(charts.runs(analysis, analysis.metrics[0]))
    assert len(points) == 29 and len(crosses) == 1
    assert crosses[0]["environment"] == "bridge" and crosses[0]["outcome"] == "deadline"
    orders = [each["order"] for each in points]
    assert orders == sorted(orders)


def test_the_forest_shows_both_bands_and_every_environment(run):
    analysis = analyse(run(costs={"bridge": 1.25, "host": 1.0}))
    chart = charts.forest(analysis, analysis.metrics[0])
    assert chart.definition["width"] == "container"
    drawn = layers(chart)
    assert [mark for mark, _ in drawn] == ["rect", "rect", "rule", "rule", "point"]
    equivalence = drawn[0][1][0]
    assert equivalence["cost"] == pytest.approx(-3) and equivalence["end"] == pytest.approx(100 * (1 - 1 / 1.03))
    assert [each["environment"] for each in drawn[4][1]] == ["bridge", "host", "native-again"]


@pytest.mark.parametrize("blocks", [0, 1, 2])
def test_few_blocks_still_draw(run, blocks):
    lossy = Workload("udp", [(LOSS, 0.05, 2.0)])
    analysis = analyse(run(costs={"bridge": 1.25}, workloads=[TCP, lossy], blocks=blocks))
    for report in analysis.metrics:
        for chart in (charts.forest, charts.runs, charts.distribution):
            drawn = chart(analysis, report)
            assert (drawn is None) == (chart is charts.forest and 0 < blocks < 5)
            assert drawn is None or definition_of(drawn)
    assert (charts.overview(analysis) is None) == (blocks < 5)


def test_a_percentage_that_is_compared_by_difference_has_an_axis_in_points(run):
    analysis = analyse(run(costs={"bridge": 2.0}, workloads=[Workload("udp", [(LOSS, 4.0, 0.05)])]))
    layers_of = definition_of(charts.forest(analysis, analysis.metrics[0]))["layer"]
    titles = {layer["encoding"]["x"]["title"] for layer in layers_of if "title" in layer["encoding"]["x"]}
    assert titles == {"cost, points (right of 0 is worse, left is better)"}


def test_a_cost_far_out_leaves_the_others_their_axis(run):
    boot = Workload("boot", [(Metric("time to ready", "s", "lower"), 0.02, 0.01)])
    analysis = analyse(run(costs={"guest": 250.0}, bends={}, workloads=[boot]))
    assert "beyond" not in str(definition_of(charts.overview(analysis))), "it is alone"
    near = Workload("latency", [(Metric("p99", "s", "lower"), 0.02, 0.01)], (("near", "1"),))
    both = analyse(run(costs={"guest": 250.0}, bends={("guest", near.level): 1.3 / 250}, workloads=[boot, near]))
    chart = charts.overview(both)
    assert "marks at the edge lie beyond it" in str(definition_of(chart))
    (dots,) = [rows for mark, rows in layers(chart) if mark == "point"]
    assert 25 < dots[1]["cost"] < 35 and dots[0]["cost"] < 200 and "times" in dots[0]["typical"]


def test_a_metric_that_has_a_noise_floor_and_no_cost_is_not_in_the_overview(run):
    """Every environment but the A/A arm broke there: its band had no place, and the run no page."""
    levels = [Workload("web", TCP.metrics, (("load", load),)) for load in ("1", "2")]
    breaking = {(block, "bridge", levels[1].level): "too many connections" for block in range(1, 11)}
    store = run(costs={"bridge": 1.25}, workloads=levels, breaking=breaking)
    overview = charts.overview(analyse(store))
    assert overview.axes[1].labels == {"web (load=1) · throughput": "web (load=1)\nthroughput"}
    assert {row["metric"] for _, rows in layers(overview) for row in rows if "end" in row} == {
        *overview.axes[1].labels
    }
    assert "</html>" in write_html(store, store.directory / "report.html").read_text()


def test_an_environment_without_any_cost_is_named_in_the_caption(run):
    failing = {(block, "qemu"): Outcome.DEADLINE for block in range(1, 7)}
    analysis = analyse(run(costs={"qemu": 1.0, "host": 1.0}, blocks=6, failing=failing))
    assert charts.caption(analysis, analysis.metrics[0]).endswith("not drawn: qemu")


def test_few_trials_have_a_tick_each_and_many_have_whole_ones(run):
    for blocks, ticks in ((1, 3), (10, None)):
        analysis = analyse(run(costs={"bridge": 1.25}, blocks=blocks))
        axis = definition_of(charts.runs(analysis, analysis.metrics[0]))["layer"][0]["encoding"]["x"]["axis"]
        assert axis["tickMinStep"] == 1 and len(axis.get("values", [])) == (ticks or 0)
        assert all(isinstance(each, int) for each in axis.get("values", []))


def test_the_noise_floor_is_explained_only_where_it_is_drawn(run):
    for blocks in (1, 6):
        store = run(costs={"bridge": 1.25}, blocks=blocks, workloads=[TCP, Workload("udp", TCP.metrics)])
        analysis = analyse(store)
        forest = charts.forest(analysis, analysis.metrics[0])
        marks = [mark for mark, _ in layers(forest)] if forest else []
        assert ("grey" in charts.caption(analysis, analysis.metrics[0])) == (marks.count("rect") == 2) == (blocks > 1)
        page = write_html(store, store.directory / "report.html").read_text()
        assert ("Grey: noise floor" in page) == (blocks > 1)


def test_each_environment_has_a_colour_and_a_mark_of_its_own_everywhere(run):
    """From the eighth on colours came again, and all were circles: isolation-tour has more."""
    names = [f"e{n}" for n in range(12)]
    analysis = analyse(run(costs=dict.fromkeys(names, 1.0)))
    scheme = charts.styles(analysis)
    assert scheme["native"].colour == charts.BASELINE and scheme["native-again"].colour == charts.AA_ARM
    for part in ("colour", "shape", "path"):
        assert len({getattr(style, part) for style in scheme.values()}) == len(names) + 2
    for chart in (charts.forest(analysis, analysis.metrics[0]), charts.overview(analysis)):
        root, _ = drawing(chart)
        drawn = {(each.get("fill"), each.get("d")) for each in elements(root, "path")}
        assert {(scheme[name].colour, scheme[name].path) for name in names} <= drawn
    live = [charts.forest(analysis, analysis.metrics[0]), charts.overview(analysis)]
    live.append(charts.runs(analysis, analysis.metrics[0]))
    for chart in live:
        (points,) = [each for each in definition_of(chart)["layer"] if each["mark"]["type"] == "point"]
        for channel in ("color", "shape"):
            scale = points["encoding"][channel]["scale"]
            assert len({*scale["range"]}) == len(scale["range"]) == len(scale["domain"])
    many = charts.base.styles_in_turn([str(number) for number in range(100)])
    assert len({*many.values()}) == 100, "never the same colour and mark together"


def linear(colour: str) -> list[float]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]


def luminance(colour: str) -> float:
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))


def oklab(colour: str) -> list[float]:
    """Björn Ottosson, "A perceptual color space for image processing" (2020)."""
    cones = ((0.41222, 0.53633, 0.05145), (0.21190, 0.68070, 0.10740), (0.08830, 0.28172, 0.62998))
    roots = [sum(w * part for w, part in zip(row, linear(colour), strict=True)) ** (1 / 3) for row in cones]
    axes = ((0.21045, 0.79362, -0.00407), (1.97800, -2.42859, 0.45059), (0.02590, 0.78277, -0.80868))
    return [sum(w * part for w, part in zip(row, roots, strict=True)) for row in axes]


def test_colours_are_told_apart_on_the_light_and_on_the_dark_page():
    style_sheet = resources.files("weighbridge.report").joinpath("templates/report.css").read_text()
    pages = set(re.findall(r"--paper: (#[0-9a-f]{6})", style_sheet))  # paper is as light as the light page
    assert len(pages) == 2
    every = [*charts.PALETTE, charts.BASELINE, charts.AA_ARM]
    for colour, page in itertools.product(every, pages):
        low, high = sorted((luminance(colour), luminance(page)))
        assert (high + 0.05) / (low + 0.05) >= 2.99, f"contrast of {colour} on {page} (WCAG 2.1, 1.4.11: 3 : 1)"
    for one, other in itertools.combinations(every, 2):
        assert math.dist(oklab(one), oklab(other)) > 0.1, f"{one} and {other} look alike"
