"""The arithmetic of the benchmarks that measure for real: intervals, and no word on what is too few."""

import importlib.util
import math
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

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
