import io
import json
import math

import pytest
from rich.console import Console

from csv_rows import csv_rows
from report.made_up_runs import LATENCY, P99, REQUESTS, TOO_MANY, Recipe, Workload, make_run, rising_load
from report.test_html import check_links, page_of
from report.test_terminal import shown
from report.vega_lite import definition_of
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.curves import CurvePeak, SweptLevel, numbers
from weighbridge.analysis.overload import Breakage, breakages, reason, without_retries
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.cli import progress
from weighbridge.model.address import ArmId, CellId
from weighbridge.model.level import Level
from weighbridge.model.measurement import Outcome
from weighbridge.model.study import Repetitions
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.report import charts
from weighbridge.report.export.csv import write_csv
from weighbridge.report.export.json import report_json
from weighbridge.report.text.curves import broke_sentences, broke_words, curve_sentences, level_words, peak_doubt
from weighbridge.report.text.remarks import remark_text
from weighbridge.report.text.summary import remark_lines, verdict_sentences
from weighbridge.report.text.verdicts import broke_count, broke_instead, comparison_verdict

BROKE_BRIDGE = (
    "bridge: overloaded in web at 2,000 connections (3 of 10 trials) and 5,000 connections (10 of 10 trials): too"
    " many connections"
)


def levels(*loads):
    return [(("connections", str(load)),) for load in loads]


def plain_text(text: str) -> str:
    return text.replace("\u00a0", " ")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The run that most tests read: making it takes longest."""
    with make_run(tmp_path_factory.mktemp("rising") / "run", Recipe(**rising_load())) as made:
        yield made


@pytest.fixture(scope="module")
def analysis(store):
    return analyse(store)


def curve(analysis, environment, metric=0):
    return next(each for each in analysis.sweeps[0].metrics[metric].curves if each.environment == environment)


# -- what a curve is made of -----------------------------------------------------------------------


def test_each_level_is_a_point_with_an_interval_around_the_median(analysis):
    (sweep,) = analysis.sweeps
    assert (sweep.workload, sweep.load, sweep.fixed) == ("web", "connections", "")
    assert [level.load for level in sweep.levels] == [50, 200, 500, 1000, 2000, 5000]
    assert [metric.metric for metric in sweep.metrics] == [
        "requests", "latency_p99", "transfer", "errors_connect", "errors_timeout"
    ]  # fmt: skip
    by_level = {m.cell: m.baseline_value for m in analysis.metrics if m.metric == "requests"}
    for point in curve(analysis, "native").points:
        assert point.value.estimate == by_level[point.level.cell] and point.blocks == 10
        assert point.value.low <= point.value.estimate <= point.value.high < 1.1 * point.value.low
    bridge = curve(analysis, "bridge").points
    assert [point.blocks for point in bridge] == [10, 10, 10, 10, 7, 0] and bridge[-1].value is None


def test_the_peak_is_the_highest_median_and_says_how_sure_it_is(analysis):
    peak = curve(analysis, "native").peak
    assert peak.level.text == "500" and peak.edge == "" and peak.of == 10 and 5 <= peak.highest < 10
    assert [level.text for level in peak.others] == ["1000"]
    bridge = curve(analysis, "bridge").peak
    assert (bridge.level.text, bridge.highest, bridge.others) == ("500", 10, ())
    values = {point.level.text: point.value.estimate for point in curve(analysis, "bridge").points if point.value}
    assert bridge.value == max(values.values()) == values["500"]


def test_a_latency_has_the_peak_of_its_throughput_and_a_count_has_none(analysis):
    for name in ("native", "bridge"):
        latency = curve(analysis, name, 1)
        assert latency.peak.level == curve(analysis, name).peak.level
        assert latency.peak.value == next(p.value.estimate for p in latency.points if p.level == latency.peak.level)
    assert curve(analysis, "native", 3).peak is None


def test_an_open_loop_whose_first_metric_is_a_latency_has_a_peak_too(run):
    achieved = {100: 100.0, 200: 200.0, 400: 150.0}
    cells = [
        Workload("web", [(P99, 1e3 / rate, 0.0), (REQUESTS, rate, 0.0)], (("rate", str(load)),))
        for load, rate in achieved.items()
    ]
    sweep = analyse(run(costs={"host": 1.0}, workloads=cells, loads={"web": "rate"}, blocks=2, aa=False)).sweeps[0]
    assert sweep.headline.metric == "latency_p99" and sweep.throughput.metric == "requests"
    assert {each.peak.level.text for metric in sweep.metrics for each in metric.curves} == {"200"}
    assert plain_text(curve_sentences(sweep, "native")[0]).startswith("native: peak 20")
    assert " at 200 requests/s (highest in 2 of 2 rounds)" in plain_text(curve_sentences(sweep, "native")[0])


def test_a_peak_that_no_single_block_has_says_so():
    first, second, third = (SweptLevel(load, str(load), CellId("w", Level())) for load in (100, 200, 400))
    none = CurvePeak(second, 1.0, 0, 3, (first, third), "")
    assert plain_text(peak_doubt("threads", none)) == (
        "highest in none of 3 rounds; they peaked at 100 or 400 threads"
    )
    many = tuple(SweptLevel(load, str(load), CellId("w", Level())) for load in (1, 2, 3, 1000))
    assert plain_text(peak_doubt("threads", CurvePeak(second, 1.0, 1, 9, many, ""))).endswith(
        "else at 1 to 1,000 threads"
    )
    assert peak_doubt("threads", CurvePeak(second, 1.0, 0, 0, (), "")) == ""


def test_breaks_for_several_reasons_are_told_apart():
    low, high = (SweptLevel(load, str(load), CellId("w", Level())) for load in (1000, 2000))
    memory, refused = (Breakage("b", count, 10, why, 10, 0) for count, why in ((4, "no memory"), (10, "refused")))
    assert plain_text(broke_words("threads", [(high, refused)], "mysql")) == (
        "overloaded in mysql at 2,000 threads: refused (10 of 10 trials)"
    )
    assert plain_text(broke_words("threads", [(low, memory), (high, refused)])) == (
        "overloaded at 1,000 threads (4 of 10 trials): no memory; at 2,000 threads (10 of 10 trials): refused"
    )


def test_a_peak_at_the_last_level_may_lie_beyond(run):
    rising = [
        Workload("web", [(REQUESTS, rate, 0.01)], level)
        for rate, level in zip((1e4, 2e4, 3e4), levels(1, 2, 3), strict=True)
    ]
    sweep = analyse(run(costs={"host": 1.0}, workloads=rising, loads={"web": "connections"})).sweeps[0]
    assert {each.peak.edge for each in sweep.metrics[0].curves} == {"highest"}
    assert "the peak might be higher" in curve_sentences(sweep, "native")[0]
    falling = [
        Workload("web", [(REQUESTS, 1 / rate, 0.01)], level)
        for rate, level in zip((1e-4, 1e-3, 1e-2), levels(1, 2, 3), strict=True)
    ]
    sweep = analyse(run(costs={}, workloads=falling, loads={"web": "connections"})).sweeps[0]
    assert sweep.metrics[0].curves[0].peak.edge == "lowest"
    assert "lowest level tested; the peak might be lower" in curve_sentences(sweep, "native")[0]


def test_a_peak_below_a_level_that_broke_everywhere_is_the_last_that_it_bears(run):
    rising = [
        Workload("web", [(REQUESTS, rate, 0.01)], level)
        for rate, level in zip((1e4, 2e4, 3e4), levels(1, 2, 3), strict=True)
    ]
    breaking = {(block, "host", levels(3)[0]): TOO_MANY for block in range(1, 4)}
    recipe = {"costs": {"host": 1.0}, "workloads": rising, "loads": {"web": "connections"}, "blocks": 3}
    sweep = analyse(run(**recipe, breaking=breaking)).sweeps[0]
    told = {text.split(":")[0]: text for text in curve_sentences(sweep, "native")}
    assert "highest level within capacity" in told["host"] and "might be higher" not in told["host"]
    assert "the peak might be higher" in told["native"]
    partly = {place: why for place, why in breaking.items() if place[0] > 1}
    sweep = analyse(run(**recipe, breaking=partly)).sweeps[0]
    assert "highest level within capacity in most trials" in curve_sentences(sweep, "native")[1]


def test_the_page_says_why_the_cost_of_the_peak_is_not_that_of_the_peaks(store):
    assert "so it can differ from the ratio of the highest medians" in page_of(store).text


def test_errors_begin_where_some_block_has_them(analysis, run):
    errors = analysis.sweeps[0].errors
    assert errors["native"].first.text == "2000" and errors["native"].most.text == "2000"
    assert (errors["bridge"].blocks, errors["bridge"].of) == (7, 7)
    parts = rising_load(outputs=False)
    early = levels(200)[0]
    seldom = [
        Workload("web", [*each.metrics[:3], (each.metrics[3][0], float(each.level == early), 3.0)], each.level)
        for each in parts["workloads"]
    ]
    found = analyse(run(**{**parts, "workloads": seldom})).sweeps[0].errors["native"]
    assert found.first.text == "200" and 0 < found.blocks <= 10


def test_the_peak_is_paired_by_block_each_at_its_own_level(analysis):
    host, bridge, again = analysis.sweeps[0].metrics[0].whole_costs
    assert (host.environment, bridge.environment, again.environment) == ("host", "bridge", "native-again")
    trials = [t for t in analysis.trials if t.ok]
    ratios = []
    for block in range(1, 11):
        tops = [
            max(t.values["requests"] for t in trials if t.block == block and t.environment == name)
            for name in ("native", "bridge")
        ]
        ratios.append(tops[1] / tops[0])
    assert bridge.peak_cost.blocks == 10
    assert bridge.peak_cost.geometric.estimate == pytest.approx(math.exp(sum(map(math.log, ratios)) / 10))
    assert bridge.peak_cost.low < 0.8 < bridge.peak_cost.high and again.peak_cost.low < 1 < again.peak_cost.high


def test_the_cost_over_all_levels_leaves_out_those_at_which_one_broke(analysis):
    host, bridge, _ = analysis.sweeps[0].metrics[0].whole_costs
    assert (host.levels, bridge.levels) == (6, 4)
    trials = {(t.block, t.environment, t.cell): t.values["requests"] for t in analysis.trials if t.ok}
    cells = [level.cell for level in analysis.sweeps[0].levels[:4]]
    logs = [math.log(trials[b, "bridge", cell] / trials[b, "native", cell]) for b in range(1, 11) for cell in cells]
    assert bridge.mean.geometric.estimate == pytest.approx(math.exp(sum(logs) / len(logs)))


def test_counts_have_no_cost_over_the_curve_and_a_latency_no_peak(analysis):
    metrics = {each.metric: each for each in analysis.sweeps[0].metrics}
    assert metrics["errors_connect"].whole_costs == ()
    latency = metrics["latency_p99"].whole_costs
    assert all(each.peak_cost is None and each.mean is not None for each in latency)


def test_an_adaptive_run_widens_the_peaks_interval_too(analysis, run):
    fixed = analysis.sweeps[0].metrics[0].whole_costs[0].peak_cost
    adaptive = (
        analyse(run(**rising_load(outputs=False, repetitions=Repetitions(target="2%"))))
        .sweeps[0]
        .metrics[0]
        .whole_costs[0]
        .peak_cost
    )
    assert adaptive.high - adaptive.low > fixed.high - fixed.low


# -- which workloads have curves -------------------------------------------------------------------


def test_only_a_workload_that_names_its_load_has_curves(run):
    assert analyse(run(**rising_load(outputs=False, loads={}, blocks=1))).sweeps == ()
    parts = rising_load(outputs=False, blocks=1)
    assert analyse(run(**{**parts, "workloads": parts["workloads"][:2]})).sweeps == ()
    assert analyse(run(**rising_load(outputs=False, loads={"web": "threads"}, blocks=1))).sweeps == ()


def test_other_factors_have_curves_of_their_own(run):
    page, picture = (
        rising_load(outputs=False, factors=(("content", what),), blocks=2) for what in ("page", "picture")
    )
    both = {**page, "workloads": [*page["workloads"], *picture["workloads"]]}
    first, second = analyse(run(**both)).sweeps
    assert (first.fixed, second.fixed) == ("content=page", "content=picture")
    assert first.title == "web (content=page)" and "bridge" in first.broke and "bridge" not in second.broke


@pytest.mark.parametrize(
    ("texts", "found"),
    [(["50", "100"], [50, 100]), (["1kB", "2B"], [1000, 2]), (["10/s", "20/s"], [10, 20]), (["a", "1"], None),
     (["10/s", "20"], None), (["", "1"], None), (["true", "false"], None), (["2.5", "1"], [2.5, 1])],
)  # fmt: skip
def test_levels_are_numbers_or_there_is_no_curve(texts, found):
    assert numbers(texts) == found


@pytest.mark.parametrize(
    ("load", "text", "words"),
    [("connections", "2000", "2,000 connections"), ("rate", "400", "400 requests/s"),
     ("clients", "1", "1 client"),
     ("bitrate", "1Mbit/s", "bitrate 1Mbit/s")],
)  # fmt: skip
def test_every_level_has_its_unit(load, text, words):
    assert plain_text(level_words(load, SweptLevel(numbers([text])[0], text, CellId("w", Level())))) == words


# -- what broke is a result ------------------------------------------------------------------------


def row(analysis, load, environment="bridge", metric="requests"):
    report = next(m for m in analysis.metrics if m.metric == metric and m.level.value_of("connections") == load)
    return report, next(each for each in report.comparisons if each.environment == environment)


def test_a_broken_trial_is_no_failure(analysis, run):
    assert analysis.failed == () and sum(trial.broke for trial in analysis.trials) == 13
    broke = analysis.broken[ArmId(CellId("web", Level([("connections", "2000")])), "bridge")]
    assert broke_count(broke) == "overloaded in 3 of 10 trials"
    both = analyse(run(**rising_load(outputs=False, failing={(1, "host"): Outcome.DEADLINE}, blocks=3)))
    assert len(both.failed) == 6 and {trial.outcome for trial in both.failed} == {"deadline"}
    assert not any(remark.code == "failed" for remark in row(both, "2000")[1].remarks)


def test_the_cost_is_that_of_the_blocks_in_which_neither_broke_and_says_so(analysis):
    report, bridge = row(analysis, "2000")
    assert bridge.blocks == 7 and bridge.verdict == "different"
    told = {remark.code: remark_text(remark) for remark in bridge.remarks}
    assert told["overloaded"] == (
        "bridge: measured in 7 of 10 rounds, overloaded in 3 (too many connections): the cost covers the measured "
        "rounds"
    )
    assert not {"incomplete", "selected", "failed", "no-rounds"} & set(told)
    assert told["overloaded"] in remark_lines(report, set())


def test_what_broke_is_never_equivalent(run):
    parts = rising_load(outputs=False, costs={"host": 1.0, "bridge": 1.0}, bends={}, blocks=14)
    quiet = [Workload(each.name, [(REQUESTS, 1e4, 0.002)], each.level) for each in parts["workloads"]]
    analysis = analyse(run(**{**parts, "workloads": quiet}))
    assert row(analysis, "1000")[1].verdict == "equivalent"
    same = row(analysis, "2000")[1]
    assert same.cost.equivalent and same.blocks == 11 and same.verdict == "inconclusive"


def test_what_always_broke_stands_where_the_cost_would(analysis):
    bridge = row(analysis, "5000")[1]
    assert (
        bridge.cost is None
        and broke_instead(bridge) == "overloaded in 10 of 10 trials"
        and comparison_verdict(bridge) == "overloaded"
    )
    assert [remark_text(remark) for remark in bridge.remarks] == [
        "bridge: overloaded in every trial (10): too many connections"
    ]
    assert BROKE_BRIDGE in [plain_text(text) for text in broke_sentences(analysis)]
    sentences = verdict_sentences(analysis)
    assert ("broke", BROKE_BRIDGE) in [(verdict, plain_text(text)) for verdict, text in sentences]
    assert not any(text.startswith("bridge: inconclusive") for _, text in sentences)


def test_where_the_baseline_broke_the_others_have_their_median(run):
    breaking = {(block, "native", level): TOO_MANY for block in range(1, 4) for level in levels(5000)}
    store = run(**rising_load(breaking=breaking, blocks=3))
    host = row(analyse(store), "5000", "host")[1]
    assert broke_instead(host) == "native overloaded in 3 of 3 trials" and host.value is not None
    text = plain_text(page_of(store).text)
    assert "native overloaded in 3 of 3 trials" in text and "here 40" in text


def test_a_level_at_which_everything_broke_is_still_a_row(run):
    breaking = {
        (block, name, level): TOO_MANY
        for block in range(1, 4)
        for name in ("native", "host", "bridge", "native-again")
        for level in levels(2000, 5000)
    }
    store = run(**rising_load(breaking=breaking, blocks=3))
    analysis = analyse(store)
    assert [point.value is None for point in curve(analysis, "native").points] == [False] * 4 + [True] * 2
    assert curve(analysis, "native").peak.of == 3
    page = page_of(store)
    check_links(page, store.directory)
    text = plain_text(page.text)
    assert "Every trial was overloaded: too many connections." in text
    assert text.count("overloaded in 3 of 3") >= 8 and "No trial of this workload" not in text
    told = shown(store, width=200)
    assert "web (connections=5000): every trial was overloaded: too many connections" in told
    assert "native, host, bridge, native (control): overloaded in web at 2,000 connections (3 of 3 trials)" in told
    assert {(each["environment"], each["overloaded"], each["of"]) for each in report_json(store)["overloaded"]} == {
        (name, 3, 3) for name in ("native", "host", "bridge", "native-again")
    }


def test_a_run_in_which_everything_broke_is_reported(run):
    parts = rising_load(blocks=2, aa=False)
    names = ("native", "host", "bridge")
    breaking = {(block, name, w.level): "died" for block in (1, 2) for name in names for w in parts["workloads"]}
    store = run(**{**parts, "breaking": breaking})
    analysis = analyse(store)
    assert analysis.metrics == () and analysis.sweeps[0].metrics == () and analysis.failed == ()
    page = page_of(store)
    check_links(page, store.directory)
    assert "overloaded in 2 of 2" in page.text
    assert "died" in shown(store, width=200)


def test_a_repetition_does_not_try_a_break_away(analysis, run):
    twice = analyse(run(**rising_load(outputs=False, again=(2, 5))))
    for each in (analysis, twice):
        assert row(each, "2000")[1].blocks == 7 and curve(each, "bridge").points[4].blocks == 7
    assert analysis.sweeps[0].metrics[0].whole_costs == twice.sweeps[0].metrics[0].whole_costs
    told = next(remark_text(r) for r in row(twice, "2000")[1].remarks if r.code == "overloaded")
    assert told.startswith("bridge: measured in 7 of 10 rounds, overloaded in 3 ")


def made(block, attempt, outcome, message="", environment="b"):
    return TrialRow(
        100 * block + attempt, 1, block, attempt, environment, "w", Level(), outcome, message, 0.0, 1.0, (), {}
    )


def test_standing_results_and_reasons():
    trials = [made(1, 0, "broke", "12 of 90 refused"), made(1, 1, "ok"), made(2, 0, "deadline"), made(2, 1, "ok"),
              made(3, 0, "broke", "11 of 80 refused"), made(4, 0, "broke", "out of memory.")]  # fmt: skip
    assert [t.id for t in without_retries(trials)] == [100, 200, 201, 300, 400]
    broke = breakages(trials)[ArmId(CellId("w", Level()), "b")]
    assert (broke.trials, broke.of, broke.lost, broke.measured, broke.always) == (3, 5, 3, 1, False)
    assert broke.reason == "12 of 90 refused" and reason([trials[-1]]) == "out of memory" and reason([]) == ""
    assert breakages([made(1, 0, "deadline")]) == {}


# -- what a person sees ----------------------------------------------------------------------------


def test_the_page_has_the_curves_with_a_table_and_every_link_leads_somewhere(store):
    page = page_of(store)
    links = check_links(page, store.directory)
    assert {"#load0", "#broke", "#w4"} <= set(links) and "#failed" not in links
    text = plain_text(page.text)
    assert "web: requests/s over 6 levels of connections" in text
    assert "13 of 240 trials were overloaded" in text
    assert "overloaded in 3 of 10 trials: too many connections" in text and BROKE_BRIDGE in text
    assert "cost of the peak" in text and "10 rounds, 4 levels (neither overloaded)" in text
    assert "Zero in every round, not drawn: errors timeout." in text
    assert text.count("over 6 levels") == 1  # and no second table of the same costs
    ids = {attrs["id"] for _, attrs in page.elements if "id" in attrs}
    specs = [json.loads(script) for attrs, script in page.scripts if attrs.get("type") == "application/json"]
    hrefs = {row["link"] for spec in specs for rows in spec["datasets"].values() for row in rows if "link" in row}
    assert hrefs and all(href[1:] in ids for href in hrefs)


def marks(chart):
    """The rows of each layer by its mark: its shape where that is the same for all environments."""
    spec = definition_of(chart)
    return {
        "ring" if "size" in layer["encoding"] else layer["mark"].get("shape", layer["mark"]["type"]): spec[
            "datasets"
        ][layer["data"]["name"]]
        for layer in spec["layer"]
    }


def test_the_chart_marks_peaks_errors_and_breaks(analysis):
    sweep = analysis.sweeps[0]
    chart = charts.load_curve(analysis, sweep, sweep.metrics[0])
    definition_of(chart)
    drawn = marks(chart)
    assert set(drawn) == {"area", "line", "point", "ring", "triangle-up", "cross"}
    assert len(drawn["point"]) == 23 and len(drawn["ring"]) == 4
    assert {(each["environment"], each["load"]) for each in drawn["cross"]} == {("bridge", 2000), ("bridge", 5000)}
    assert {each["load"] for each in drawn["triangle-up"]} == {2000}
    top = definition_of(chart)["layer"][1]["encoding"]["y"]["scale"]["domain"][1]
    assert all(each["high"] <= 1.06 * each["value"] * 1.1 and each["high"] < top for each in drawn["line"])
    assert all(top > each["value"] > max(row["high"] for row in drawn["line"]) for each in drawn["cross"])
    assert definition_of(chart)["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"
    latency = definition_of(charts.load_curve(analysis, sweep, sweep.metrics[1]))["layer"][1]["encoding"]["y"]
    assert latency["scale"]["type"] == "log" and latency["title"] == "latency p99, ms"


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_few_blocks_still_draw(run, blocks):
    analysis = analyse(run(**rising_load(outputs=False, blocks=blocks)))
    for sweep, metric in [
        (each, metric) for each in analysis.sweeps for metric in each.metrics if not metric.nothing
    ]:
        spec = definition_of(charts.load_curve(analysis, sweep, metric))
        json.dumps(spec, allow_nan=False)
        scale = spec["layer"][1]["encoding"]["y"]["scale"]
        assert scale["domain"][0] < scale["domain"][1] and (scale["type"] == "linear" or scale["domain"][0] > 0)
    assert "too many" in " ".join(curve_sentences(analysis.sweeps[0], "native"))


def test_narrow_loads_are_drawn_on_a_linear_axis(run):
    cells = [Workload("web", [(REQUESTS, 1e4, 0.01), (LATENCY, 1.0, 0.01)], level) for level in levels(10, 20, 40)]
    analysis = analyse(run(costs={"host": 1.0}, workloads=cells, loads={"web": "connections"}))
    encoding = definition_of(charts.load_curve(analysis, analysis.sweeps[0], analysis.sweeps[0].metrics[0]))["layer"][
        0
    ]["encoding"]
    assert encoding["x"]["scale"]["type"] == "linear" and encoding["x"]["title"] == "connections"
    assert analysis.sweeps[0].errors == {} and analysis.sweeps[0].broke == {}
    caption = charts.curve_caption(analysis, analysis.sweeps[0], analysis.sweeps[0].metrics[0])
    assert "cross" not in caption and "triangle" not in caption and "signed-rank)" in caption


def test_runs_that_broke_are_triangles(analysis):
    report = row(analysis, "2000")[0]
    drawn = marks(charts.runs(analysis, report))
    assert len(drawn["triangle-down"]) == 3 and "cross" not in drawn


def test_the_terminal_says_a_line_for_each_environment(store):
    told = shown(store, width=400)
    assert "web: requests/s over 6 levels of connections" in told
    assert "  bridge: peak " in told and "the peak costs 20." in told and "against native's" in told
    assert (
        "overloaded in web at 2,000 connections (3 of 10 trials) and 5,000 connections (10 of 10 trials): too" in told
    )
    assert "trials failed" not in told and "10 of 10 trials" in told


@pytest.mark.parametrize("width", [40, 80])
def test_no_line_is_too_wide(store, width):
    assert max(len(line) for line in shown(store, width=width).splitlines()) <= width


def test_hostile_reasons_are_only_text(run):
    hostile = "</script><img src=x onerror=alert(1)>\x1b[2J"
    breaking = {(block, "bridge", levels(5000)[0]): hostile for block in range(1, 4)}
    store = run(**rising_load(breaking=breaking, blocks=3))
    page = page_of(store)
    assert not page.all("img") and "onerror" in page.text
    assert "\x1b" not in shown(store)


def test_machines_read_the_curves(store, tmp_path):
    document = report_json(store)
    json.dumps(document, allow_nan=False)
    bridge = next(each for each in document["curves"] if each["environment"] == "bridge")
    assert bridge["peak"]["level"] == "500" and bridge["load"] == "connections" and bridge["errors_from"] == "2000"
    assert bridge["peak_cost"]["low"] < 0.8 < bridge["peak_cost"]["high"] and bridge["peak_cost"]["rounds"] == 10
    assert {each["metric"] for each in document["curves"]} == {"requests", "transfer"}
    assert {"environment": "bridge", "workload": "web", "level": {"connections": "2000"}, "overloaded": 3, "of": 10,
            "reason": TOO_MANY, "layers": [], "emulated": False} in document["overloaded"]  # fmt: skip
    table = csv_rows(write_csv(store, tmp_path)[0])
    broke = [row for row in table if row["outcome"] == "broke"]
    assert [(row["message"], row["value"]) for row in broke] == 13 * [(TOO_MANY, None)]


def test_the_progress_says_broke(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(progress, "err", lambda: Console(file=out, width=200))
    trial = Trial(3, 0, "web", Level([("connections", "5000")]), "bridge")
    record = TrialRecord(trial, Outcome.BROKE, 0.0, 1.0, 1.0, TOO_MANY)
    progress.Shown(None).trial_finished(record)
    assert out.getvalue() == "round 3, web (connections=5000) in bridge: overloaded: too many connections\n"
