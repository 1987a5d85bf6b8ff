"""How noisy a machine is: what is told of runs that differ, and whether its blocks keep their promise."""

import math

import numpy as np
import pytest

from report.made_up_runs import REQUESTS, Workload
from weighbridge.analysis.noise import TARGETS, WorkloadNoise, machine_noise
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.statistics import LOOKS, compare


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
