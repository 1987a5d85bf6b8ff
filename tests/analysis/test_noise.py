"""How noisy a machine is: what is told of runs that differ, and whether its blocks keep their promise."""

import math

import numpy as np
import pytest

from report.made_up_runs import REQUESTS, Workload
from weighbridge.analysis.noise import ARMS, SPAN_S, TARGETS, MachineNoise, WorkloadNoise, machine_noise
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.statistics import LOOKS, compare
from weighbridge.statistics.verdicts import excludes_no_cost


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("variation", [0.04, 0.15])
def test_so_many_blocks_have_this_half_width(variation: float, target: float):
    blocks = WorkloadNoise("tcp", "iperf3", variation, 10, 1.0).blocks(target)
    rng, widths = np.random.default_rng(7), []
    for _ in range(20):
        ratios = np.exp(rng.normal(0.0, variation, blocks))
        cost = compare([1.0] * blocks, ratios.tolist(), better="higher", looks=len(LOOKS))
        widths.append(cost.half_width)
    assert blocks >= LOOKS[0]
    if blocks > LOOKS[0]:
        assert np.mean(widths) == pytest.approx(target, rel=0.15)
    else:
        assert np.mean(widths) < target


def test_the_variation_is_that_of_pairs_and_a_shift_is_none(run):
    noisy, quiet = Workload("noisy", [(REQUESTS, 1000.0, 0.1)]), Workload("quiet", [(REQUESTS, 1000.0, 0.001)])
    found = machine_noise(run(costs={}, workloads=[noisy, quiet], blocks=40, aa_factor=1.3))
    (first, second) = found.rows
    assert (first.workload, first.pairs, second.workload) == ("noisy", 40, "quiet")
    assert first.variation == pytest.approx(math.sqrt(2) * 0.1, rel=0.4)
    assert second.variation == pytest.approx(math.sqrt(2) * 0.001, rel=0.4)
    assert first.trial_s > 0 and first.seconds(0.02) == 2 * first.trial_s * first.blocks(0.02)


def test_one_block_says_nothing(run):
    assert machine_noise(run(costs={}, blocks=1)).rows == ()


def test_only_flags_of_the_machine_disturb(run):
    flags = {
        (2, "native"): (Flag(FlagCode.STEAL, "", {"share": 0.2}), Flag(FlagCode.GENERATOR_SATURATED)),
        (3, "native"): (Flag(FlagCode.STEAL, "", {"share": 0.1}),),
    }
    facts = {"host": {"frequency governor": "schedutil", "SMT": "on"}}
    found = machine_noise(run(costs={}, flags=flags, facts=facts))
    assert [(each.flag.code, each.count) for each in found.disturbed] == [(FlagCode.STEAL, 2)]
    assert machine_noise(run(costs={})).disturbed == ()


@pytest.mark.parametrize(("variation", "trial_s"), [(0.02, 1.0), (0.1, 4.0)])
def test_four_of_five_runs_of_ten_minutes_show_the_smallest_cost(variation: float, trial_s: float):
    """The spread is known from twenty rounds, and each run has as many rounds as the time holds."""
    rng, called = np.random.default_rng(3), []
    rounds = int(SPAN_S / (ARMS * trial_s))
    for _ in range(60):
        spread = float(rng.normal(0.0, variation, 20).std(ddof=1))
        cost = WorkloadNoise("cpu", "compress", spread, 20, trial_s).smallest_cost
        ratios = (1 + cost) * np.exp(rng.normal(0.0, variation, rounds))
        found = compare([1.0] * rounds, ratios.tolist(), better="lower", looks=len(LOOKS))
        called.append(excludes_no_cost(found))
    assert np.mean(called) >= 0.7


def test_the_noisier_workload_of_a_resource_counts():
    rows = [
        WorkloadNoise(name, name, each, 20, 1.0) for name, each in (("cpu", 0.01), ("tcp", 0.02), ("latency", 0.03))
    ]
    costs = MachineNoise(tuple(rows), (), {}).smallest_costs
    unmeasured = {"memory": math.inf, "disk": math.inf}
    assert costs == unmeasured | {"CPU": rows[0].smallest_cost, "network": rows[2].smallest_cost}
    assert rows[0].smallest_cost < rows[1].smallest_cost < rows[2].smallest_cost


def test_ten_minutes_are_too_short_for_long_trials():
    assert math.isinf(WorkloadNoise("cpu", "compress", 0.01, 20, 60.0).smallest_cost)
