"""The arithmetic of the benchmarks that measure for real: intervals, and no word on what is too few."""

import importlib.util
import math
import random
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from report.made_up_runs import Recipe, make_run
from weighbridge.features.replication.published import published
from weighbridge.statistics import Interval
from weighbridge.study.loader import check
from weighbridge.study.source import parse

FOLDER = Path(__file__).parents[1] / "benchmarks"


def benchmark(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("time_to_precision", monkeypatch)


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("trial_cost", monkeypatch)


def test_no_time_to_a_precision_is_told_of_too_few_blocks(times: ModuleType, capsys: pytest.CaptureFixture[str]):
    few = times.Comparison((1.0, 1.1, 0.9, 1.2), block_s=2.0, work_s=1.0)
    assert times.report_workload("tcp", {"as written": [few], "short": [few]}) == ("cannot tell", ())
    printed = capsys.readouterr().out
    assert "too few to say, 20 are needed" in printed and "of the published" not in printed


def test_both_ways_go_on_until_the_target_and_for_twenty_blocks_at_least(times: ModuleType):
    for way in times.WAYS:
        repetitions = check(parse(times.written(way, 1800, 1, ["tcp"]), "s.yaml")).file.repetitions
        assert (repetitions.target, repetitions.min) == (0.02, 20)


def test_a_time_to_a_precision_has_an_interval_that_holds_the_true_one(
    times: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    """Blocks that differ by 4 %: the interval holds the time to the true precision in most of 20 runs."""
    monkeypatch.setattr(times, "RESAMPLES", 100)
    deviation, blocks, held = 0.04, 30, 0
    true_s = 2.0 * (2.108 * deviation / math.log1p(0.02)) ** 2 * math.pi / 3  # a normal 96.5 % interval by ranks
    for seed in range(20):
        chance = random.Random(seed)
        ratios = tuple(chance.lognormvariate(0.1, deviation) for _ in range(blocks))
        low, high = times.seconds_to(0.02, [times.Comparison(ratios, block_s=2.0, work_s=1.0)]).limits
        held += low <= true_s <= high
    assert held >= 15


@pytest.mark.parametrize(("low", "high", "verdict"), [(1, 2, "met"), (4, 5, "missed"), (2, 4, "cannot tell")])
def test_a_limit_is_judged_by_the_interval(times: ModuleType, costs: ModuleType, low: int, high: int, verdict: str):
    assert times.judged(low, high, 3) == costs.judged(Interval(low, low, high), 3) == verdict


def test_the_cost_of_a_trial_is_that_beyond_the_bare_one_of_its_block(costs: ModuleType):
    bare = {block: float(block) for block in range(1, 11)}
    trials = {block: block + 0.01 for block in range(2, 11)}  # the first one opens the sites
    interval = costs.difference(trials, bare)
    assert interval.estimate == pytest.approx(0.01) and interval.high - interval.low == pytest.approx(0)


@pytest.fixture
def cross(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("cross_check", monkeypatch)


def entry(hand: float, weighbridge: float, noise: float = 0.01) -> dict[str, Any]:
    """A cost that the two methods measure as these ratios."""
    pairs = [[1.0, hand * math.exp(noise * sign)] for sign in (1, -1) * 5]
    run = {"typical": weighbridge, "low": weighbridge / (1 + noise), "high": weighbridge * (1 + noise), "blocks": 10}
    about = {"date": "today", "commit": "0123abc", "load": [0.1, 0.2]}
    return {"hand": [pairs, pairs], "weighbridge": [run, run], "check": [], **about}


def test_methods_that_measure_the_same_ratio_agree(cross: ModuleType):
    row = cross.compared(entry(1.2, 1.2))
    assert row.agree and row.difference[0] == pytest.approx(0, abs=1e-9)
    assert cross.cost(row.hand, "lower")[0] == pytest.approx(20)


def test_methods_disagree_when_the_interval_of_their_difference_leaves_out_zero(cross: ModuleType):
    assert not cross.compared(entry(1.2, 1.3)).agree
    assert cross.compared(entry(1.2, 1.3, noise=0.2)).agree


def test_a_stated_disagreement_is_detected_in_four_of_five_sessions(cross: ModuleType):
    error, chance = 0.02, random.Random(5)
    half = 1.96 * error / math.sqrt(2)
    size = math.log1p(cross.Compared((0, -half, half), (0, -half, half)).detectable)
    found = 0
    for _ in range(2000):
        ours, theirs = chance.gauss(size, error / math.sqrt(2)), chance.gauss(0, error / math.sqrt(2))
        found += not cross.Compared((ours, ours - half, ours + half), (theirs, theirs - half, theirs + half)).agree
    assert found / 2000 == pytest.approx(0.8, abs=0.03)


def test_a_lower_rate_is_a_positive_cost(cross: ModuleType):
    limits = tuple(map(math.log, (0.8, 0.7, 0.9)))
    assert cross.cost(limits, "higher") == pytest.approx((20, 10, 30))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("hyperfine", '{"results": [{"mean": 0.25}]}', 0.25),
        ("iperf3", '{"end": {"sum_received": {"bits_per_second": 8e9}}}', 8e9),
        ("netperf", "MIGRATED TCP REQUEST/RESPONSE TEST\nTHROUGHPUT=17551.73\n", 17551.73),
        ("redis", '"test","rps"\n"SET","52083.33","0.2"\n', 52083.33),
        ("sysbench", "    events per second:  1613.20\n", 1613.2),
        ("fio", 'note: both\n{"jobs": [{"read": {"iops": 75.5}}]}', 75.5),
    ],
)
def test_what_tools_print_is_read(cross: ModuleType, name: str, text: str, value: float):
    assert cross.READERS[name][1](text) == value


def test_every_case_has_a_study_that_is_valid(cross: ModuleType):
    for case in cross.CASES:
        nodes = ['{kind: kubernetes, node: "x"}'] * 2
        study = case.study.format(hosts=nodes) if case.needs == "cluster" else case.study
        text = cross.STUDY.format(name=case.name, question="What?", tree="/", study=study, rounds=10)
        assert case.environment in check(parse(text, "s.yaml")).file.environments


def test_the_page_lists_every_cost_and_explains_each_disagreement(cross: ModuleType):
    costs = {case.name: entry(1.2, 1.2) for case in cross.CASES}
    costs["gvisor"] = {"skipped": "runsc is not installed"}
    costs["system-calls"] = entry(1.2, 1.4)
    costs["exec-from-outside"] = {**entry(1.2, 1.4), "check": [[0.01, 0.02]]}
    text = cross.page({"machine": {"CPUs": "2"}, "costs": costs})
    assert f"{len(cross.CASES) - 3} of {len(cross.CASES) - 1} costs agree." in text
    assert "Not explained yet." in text and "10 ms and 20 ms" in text and "because runsc is not installed" in text
    assert all(f"### {case.title}" in text and case.isolated in text for case in cross.CASES)


# -- placebos of `explain` ---------------------------------------------------------------------------


@pytest.fixture
def explain(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("explain", monkeypatch)


def test_parts_that_err_together_have_a_wider_interval(explain: ModuleType):
    """The limits of 20 of 400 independent parts are those of Clopper and Pearson."""
    spread = [1] * 20 + [0] * 80
    together = [4] * 5 + [0] * 95
    (share, low, high), (same, lower, higher) = (explain.of_parts(counts, 4) for counts in (spread, together))
    assert share == same == 0.05
    assert (low, high) == pytest.approx((0.0308, 0.0761), abs=0.001)
    assert lower < low < high < higher
    assert explain.of_parts([0] * 30, 4) == pytest.approx((0.0, 0.0, 1 - 0.025 ** (1 / 30)))


def test_the_interval_of_clustered_parts_holds_the_true_share(explain: ModuleType):
    """Four parts of a run share an arm, so that 5 % of them are counted, often together."""
    rng, held = np.random.default_rng(5), 0
    for _ in range(200):
        arms = rng.normal(size=(50, 5))
        counts = (np.abs(arms[:, :1] - arms[:, 1:]) / math.sqrt(2) > 1.96).sum(axis=1)
        _, low, high = explain.of_parts([*map(int, counts)], 4)
        held += low <= 0.05 <= high
    assert held >= 186


@pytest.mark.parametrize(("lasting", "least", "most"), [(0.0, 0.9, 1.1), (0.3, 1.9, 2.4)])
def test_arms_that_differ_for_a_whole_run_show(explain: ModuleType, lasting: float, least: float, most: float):
    rng = np.random.default_rng(5)
    values = [
        explain.lasting(rng.normal(size=(5, 12)) + lasting * rng.normal(size=(5, 1)) + rng.normal(size=(1, 12)))
        for _ in range(2000)
    ]
    assert least < np.mean(values) < most


def test_an_exact_interval_of_twelve_rounds_errs_less_than_5_percent(explain: ModuleType):
    assert explain.by_chance(12) == pytest.approx(0.0425, abs=0.0005)


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("sequential_order", monkeypatch)


def drifting(order: ModuleType, trials: int, fall: float, offset: float = 0.0) -> list[Any]:
    """Trials of one arm while the machine loses the share ``fall`` of its speed, with noise of 1%."""
    rng = random.Random(trials)
    places = [(number + offset) / trials for number in range(trials)]
    return [order.Timed(100 * at, (1 - fall * at) * rng.gauss(100, 1)) for at in places]


def test_drift_looks_like_a_cost_in_a_sequential_order(order: ModuleType):
    """The means of the halves are at a quarter and three quarters of the fall."""
    native, other = drifting(order, 40, 0.4), drifting(order, 40, 0.4, offset=0.5)
    after, before = order.one_after_the_other(native, other), order.one_after_the_other(other, native)
    assert after.estimate == pytest.approx(0.7 / 0.9, abs=0.02) and order.excludes_none(after)
    assert before.estimate == pytest.approx(0.7 / 0.9, abs=0.02)
    assert order.cost_of(after.estimate, "higher") == pytest.approx(22.2, abs=2)
    assert order.cost_of(after.estimate, "lower") == pytest.approx(-22.2, abs=2)
    every = order.windows(native)
    assert every.pairs == 21 and every.significant == 21 and every.largest == pytest.approx(0.89, abs=0.03)


def test_a_steady_machine_has_no_false_cost(order: ModuleType):
    native = drifting(order, 200, 0.0)
    assert not order.excludes_none(order.one_after_the_other(native, native))
    every = order.windows(native)
    assert every.pairs == 181 and every.significant < 0.2 * every.pairs and abs(every.largest - 1) < 0.03


def test_too_few_trials_have_no_order(order: ModuleType):
    assert order.windows(drifting(order, 19, 0.0)) is None
    assert order.one_after_the_other(drifting(order, 4, 0.0), drifting(order, 4, 0.0)) is None
    assert order.ratio_of([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]) is None
    assert order.ratio_of([1.0, 0.0, 1.0], [1.0, 2.0, 1.0]) is None


def test_the_published_costs_of_serverless_virtualization_are_those_of_two_speeds(order: ModuleType):
    """Docker's runs on the CPU differ from metal's significantly, and their fastest run is the fastest of all."""
    runs = {
        name: [each.value for each in published("serverless-virtualization").figures
               if (each.table, each.environment) == ("cpu_results.csv", name)]
        for name in ("metal", "docker")
    }  # fmt: skip
    ratio = order.ratio_of(runs["metal"], runs["docker"])
    assert order.excludes_none(ratio) and ratio.estimate == pytest.approx(0.834, abs=0.001)
    assert max(runs["docker"]) > max(runs["metal"])
    assert min(runs["docker"]) / max(runs["metal"]) == pytest.approx(1.6 / 2.4, abs=0.01)


def test_both_orders_of_a_run_are_printed(order: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    directory = tmp_path / "run"
    make_run(directory, Recipe(costs={"docker": 1.1}, blocks=12)).close()
    monkeypatch.setattr(sys, "argv", ["sequential_order.py", str(directory)])
    assert order.main() == 0
    head, false_cost, pairs, docker, control = capsys.readouterr().out.splitlines()[1:]
    assert head.endswith("24 native trials") and "false cost" in false_cost and "5 pairs of 10 and 10" in pairs
    assert docker.startswith("  docker: interleaved") and control.startswith("  native-again:")


def test_simulated_pull_requests_are_judged_as_the_report_judges_them(monkeypatch: pytest.MonkeyPatch, tmp_path):
    module = benchmark("pull_requests", monkeypatch)
    given = SimpleNamespace(within=20, trial=0.5, folder=tmp_path, environments=1, commands=1)
    (slower,) = module.simulated("lognormal CV 2 %", 0.2, 1, given)
    assert slower.found == 1 and slower.trusted and 10 * 3 * 0.6 < slower.seconds < 30
    (equal,) = module.simulated("lognormal CV 2 %", 0.0, 1, given)
    assert not equal.different and equal.rows[0].blocks >= 10
    several = SimpleNamespace(**vars(given) | {"environments": 2, "commands": 2})
    (slower,) = module.simulated("lognormal CV 2 %", 0.2, 1, several)
    assert [row.against for row in slower.rows] == ["base", "base-docker"] * 2 and slower.found == 4
    assert set(module.MODELS) <= set(module.KINDS)
