import math

import pytest

from report.made_up_runs import P99, REQUESTS, TOO_MANY, Recipe, Workload, make_run, rising_load
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.curves import numbers
from weighbridge.analysis.overload import breakages, reason, without_retries
from weighbridge.analysis.trial_row import TrialRow
from weighbridge.model.address import ArmId, CellId
from weighbridge.model.level import Level
from weighbridge.model.measurement import Outcome
from weighbridge.model.study import Repetitions


def levels(*loads):
    return [(("connections", str(load)),) for load in loads]


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
    assert peak.level.text == "500" and peak.edge == "" and peak.total == 10 and 5 <= peak.highest < 10
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


def test_a_peak_at_the_last_level_may_lie_beyond(run):
    rising = [
        Workload("web", [(REQUESTS, rate, 0.01)], level)
        for rate, level in zip((1e4, 2e4, 3e4), levels(1, 2, 3), strict=True)
    ]
    sweep = analyse(run(costs={"host": 1.0}, workloads=rising, loads={"web": "connections"})).sweeps[0]
    assert {each.peak.edge for each in sweep.metrics[0].curves} == {"highest"}
    falling = [
        Workload("web", [(REQUESTS, 1 / rate, 0.01)], level)
        for rate, level in zip((1e-4, 1e-3, 1e-2), levels(1, 2, 3), strict=True)
    ]
    sweep = analyse(run(costs={}, workloads=falling, loads={"web": "connections"})).sweeps[0]
    assert sweep.metrics[0].curves[0].peak.edge == "lowest"


def test_errors_begin_where_some_block_has_them(analysis, run):
    errors = analysis.sweeps[0].errors
    assert errors["native"].first.text == "2000" and errors["native"].most.text == "2000"
    assert (errors["bridge"].blocks, errors["bridge"].total) == (7, 7)
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


# -- what broke is a result ------------------------------------------------------------------------


def row(analysis, load, environment="bridge", metric="requests"):
    report = next(m for m in analysis.metrics if m.metric == metric and m.level.value_of("connections") == load)
    return report, next(each for each in report.comparisons if each.environment == environment)


def test_a_broken_trial_is_no_failure(analysis, run):
    assert analysis.failed == () and sum(trial.broke for trial in analysis.trials) == 13
    broke = analysis.broken[ArmId(CellId("web", Level([("connections", "2000")])), "bridge")]
    assert (broke.trials, broke.total) == (3, 10)
    both = analyse(run(**rising_load(outputs=False, failing={(1, "host"): Outcome.DEADLINE}, blocks=3)))
    assert len(both.failed) == 6 and {trial.outcome for trial in both.failed} == {"deadline"}
    assert not any(remark.code == "failed" for remark in row(both, "2000")[1].remarks)


def test_the_cost_is_that_of_the_blocks_in_which_neither_broke_and_says_so(analysis):
    bridge = row(analysis, "2000")[1]
    assert bridge.blocks == 7 and bridge.verdict == "different"
    codes = {remark.code for remark in bridge.remarks}
    assert "overloaded" in codes and not {"incomplete", "selected", "failed", "no-rounds"} & codes


def test_what_broke_is_never_equivalent(run):
    parts = rising_load(outputs=False, costs={"host": 1.0, "bridge": 1.0}, bends={}, blocks=14)
    quiet = [Workload(each.name, [(REQUESTS, 1e4, 0.002)], each.level) for each in parts["workloads"]]
    analysis = analyse(run(**{**parts, "workloads": quiet}))
    assert row(analysis, "1000")[1].verdict == "equivalent"
    same = row(analysis, "2000")[1]
    assert same.cost.equivalent and same.blocks == 11 and same.verdict == "inconclusive"


def test_what_always_broke_stands_where_the_cost_would(analysis):
    bridge = row(analysis, "5000")[1]
    assert bridge.cost is None and bridge.broke.always and [each.code for each in bridge.remarks] == ["overloaded"]


def test_where_the_baseline_broke_the_others_have_their_median(run):
    breaking = {(block, "native", level): TOO_MANY for block in range(1, 4) for level in levels(5000)}
    store = run(**rising_load(breaking=breaking, blocks=3))
    host = row(analyse(store), "5000", "host")[1]
    assert host.baseline_broke.always and host.value is not None


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
    assert curve(analysis, "native").peak.total == 3


def test_a_run_in_which_everything_broke_has_curves_without_metrics(run):
    parts = rising_load(blocks=2, aa=False)
    names = ("native", "host", "bridge")
    breaking = {(block, name, w.level): "died" for block in (1, 2) for name in names for w in parts["workloads"]}
    store = run(**{**parts, "breaking": breaking})
    analysis = analyse(store)
    assert analysis.metrics == () and analysis.sweeps[0].metrics == () and analysis.failed == ()


def test_a_repetition_does_not_try_a_break_away(analysis, run):
    twice = analyse(run(**rising_load(outputs=False, again=(2, 5))))
    for each in (analysis, twice):
        assert row(each, "2000")[1].blocks == 7 and curve(each, "bridge").points[4].blocks == 7
    assert analysis.sweeps[0].metrics[0].whole_costs == twice.sweeps[0].metrics[0].whole_costs


def made(block, attempt, outcome, message="", environment="b"):
    return TrialRow(
        100 * block + attempt, 1, block, attempt, environment, "w", Level(), outcome, message, 0.0, 1.0, (), {}
    )


def test_standing_results_and_reasons():
    trials = [made(1, 0, "broke", "12 of 90 refused"), made(1, 1, "ok"), made(2, 0, "deadline"), made(2, 1, "ok"),
              made(3, 0, "broke", "11 of 80 refused"), made(4, 0, "broke", "out of memory.")]  # fmt: skip
    assert [t.id for t in without_retries(trials)] == [100, 200, 201, 300, 400]
    broke = breakages(trials)[ArmId(CellId("w", Level()), "b")]
    assert (broke.trials, broke.total, broke.lost, broke.measured, broke.always) == (3, 5, 3, 1, False)
    assert broke.reason == "12 of 90 refused" and reason([trials[-1]]) == "out of memory" and reason([]) == ""
    assert breakages([made(1, 0, "deadline")]) == {}
