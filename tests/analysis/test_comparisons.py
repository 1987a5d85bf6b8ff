"""Contrasts of a run's environments, of the blocks that have them all, and the ladder of a study."""

import math
from itertools import pairwise

import pytest

from report.made_up_runs import LATENCY, LOSS, REQUESTS, TCP, Workload
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.comparisons import contrast_cost, values_by_metric
from weighbridge.analysis.plan import StepChange, changes, differing, plan_of
from weighbridge.model.measurement import Outcome
from weighbridge.statistics import Contrast, verdicts

MECHANISMS = {"first": 1.2, "second": 1.5, "both": 1.98}
INTERACTION = Contrast(("native", "first", "second", "both"), (1.0, -1.0, -1.0, 1.0))


@pytest.fixture
def values(run):
    def made(**recipe):
        store = run(
            costs=MECHANISMS, workloads=[Workload("tcp", [(REQUESTS, 1000, 0.01)])], **{"blocks": 14, **recipe}
        )
        (values,) = [each for key, each in values_by_metric(store.values()).items() if key.metric == REQUESTS.name]
        return values, plan_of(store), analyse(store)

    return made


def test_an_interaction_is_one_effect_a_block(values):
    """Of requests, of which more are better: both together lose a tenth more than each alone."""
    mine, plan, _ = values()
    found = contrast_cost(mine, INTERACTION, plan)
    assert found.cost.blocks == 14 and found.cost.low < 1 / 1.1 < found.cost.high < 1
    assert found.cost.penalty.estimate == pytest.approx(100 * (1 - 1 / 1.1), abs=1.5)
    effects = INTERACTION.effects(found.values, "ratio")
    assert found.p_values == verdicts.p_values_of(effects, found.cost, plan.looks, guarded=plan.aa_arm is not None)
    assert max(found.p_values.exact, found.p_values.by_t) < 0.001


def test_a_block_counts_that_has_all_of_them(values):
    mine, plan, _ = values(failing={(3, "second"): Outcome.DEADLINE})
    assert contrast_cost(mine, INTERACTION, plan).cost.blocks == 13
    assert contrast_cost(mine, Contrast.between("both", "first"), plan).cost.blocks == 14
    assert contrast_cost(mine, Contrast.between("both", "absent"), plan) is None


def test_a_cost_of_the_report_is_such_a_contrast(values):
    mine, plan, analysis = values()
    rows = {row.environment: row.cost for row in analysis.metrics[0].comparisons}
    assert all(contrast_cost(mine, Contrast.between(name, "native"), plan).cost == rows[name] for name in MECHANISMS)


# -- the ladder ---------------------------------------------------------------------------------

LADDER = ["native", "host", "bridge", "overlay"]
COSTS = {"host": 1.0, "bridge": 1.12, "overlay": 1.6}
OPTIONS = {"host": {"network": "host"}, "bridge": {"network": "bridge", "publish": True},
           "overlay": {"network": "overlay", "publish": True}}  # fmt: skip


BRANCHING = [
    ["native", None],
    ["host", "native"],
    ["bridge", "native"],
    ["published", "bridge"],
    ["overlay", "bridge"],
]
BRANCHES = {"host": 1.02, "bridge": 1.2, "published": 1.3, "overlay": 1.5}
JOINTS, BARS = 2, 3
"""Layers of the waterfall."""


def climbed(run, **recipe):
    return run(**{"costs": COSTS, "ladder": LADDER, "options": OPTIONS, "blocks": 12, **recipe})


def test_a_step_is_a_comparison_of_its_own(run):
    analysis = analyse(climbed(run))
    throughput = analysis.ladder[0]
    assert throughput.report.headline and [each.report.metric for each in analysis.ladder] == [
        "throughput", "p99 latency"
    ]  # fmt: skip
    assert [(s.row.against, s.row.environment) for s in throughput.steps] == list(pairwise(LADDER))
    host, bridge, overlay = throughput.steps
    assert host.row.verdict == "equivalent" and bridge.row.verdict == overlay.row.verdict == "different"
    assert overlay.row.cost.low < 1.12 / 1.6 < overlay.row.cost.high
    against_native = analysis.metrics[0].comparisons[1].cost
    assert bridge.start == pytest.approx(analysis.metrics[0].comparisons[0].cost.typical)
    assert overlay.start == against_native.typical and host.start == 1.0
    medians = {row.environment: row.value for row in analysis.metrics[0].comparisons}
    assert overlay.row.baseline_value == medians["bridge"]


def pairs_of(ladder):
    return [(step.row.against, step.row.environment) for step in ladder.steps]


def test_a_ladder_may_branch(run):
    analysis = analyse(run(costs=BRANCHES, ladder=BRANCHING, blocks=12))
    for ladder in analysis.ladder:
        assert pairs_of(ladder) == [(base, name) for name, base in BRANCHING[1:]]
    published, overlay = analysis.ladder[0].steps[2:]
    assert published.start == overlay.start == analysis.metrics[0].comparisons[1].cost.typical
    assert overlay.row.cost.low < 1.2 / 1.5 < overlay.row.cost.high


def test_what_was_not_measured_is_stepped_over(run):
    """A step is against the nearest environment below it that was measured, and says what differs there."""
    facts = {"host/server": {"not honoured: memory": "no limit"}}
    workloads = [TCP, Workload("udp", [(REQUESTS, 1000, 0.01)])]
    away = {("udp", "bridge"), ("udp", "host")}
    store = run(costs=BRANCHES, ladder=BRANCHING, workloads=workloads, absent=away, facts=facts, options=OPTIONS)
    *tcp, udp = analyse(store).ladder
    by_workload = {ladder.report.workload: ladder for ladder in (*tcp, udp)}
    assert pairs_of(by_workload["tcp"]) == [(base, name) for name, base in BRANCHING[1:]]
    assert pairs_of(by_workload["udp"]) == [("native", "published"), ("native", "overlay")]
    step = by_workload["udp"].steps[1]
    assert step.start == 1.0 and step.row.cost.low < 1 / 1.5 < step.row.cost.high
    assert not any(remark.code == "confounder" for remark in step.row.remarks)
    assert any(remark.code == "confounder" for remark in by_workload["tcp"].steps[0].row.remarks)


def test_a_root_that_was_not_measured_is_no_step(run):
    store = run(costs=BRANCHES, ladder=BRANCHING, workloads=[TCP], absent={("tcp", "native"), ("tcp", "host")})
    assert {pair for ladder in analyse(store).ladder for pair in pairs_of(ladder)} == {
        ("bridge", "published"), ("bridge", "overlay")
    }  # fmt: skip


def test_the_steps_are_a_family_of_their_own(run):
    """A ladder takes nothing from the comparisons with the baseline."""
    noisy = [Workload(f"w{n}", [(REQUESTS, 1000, 0.02)]) for n in range(6)]
    with_one, without = (analyse(climbed(run, workloads=noisy, ladder=ladder)) for ladder in (LADDER, []))
    p_values = [[row.adjusted_p for m in each.metrics for row in m.comparisons] for each in (with_one, without)]
    assert p_values[0] == p_values[1] and not without.ladder
    steps = [step.row for ladder in with_one.ladder for step in ladder.steps]
    assert len(steps) == 18 and all(row.adjusted_p is not None for row in steps)


def test_what_a_step_changes(run):
    store = climbed(run)
    assert changes(store, "host", "bridge")[0] == StepChange("network", "host", "bridge")
    assert changes(store, "bridge", "overlay") == (StepChange("network", "bridge", "overlay"),)
    assert changes(store, "native", "native-again") == ()


def test_a_ladder_of_differences(run):
    lossy = Workload("udp", [(LOSS, 0.5, 2.0), (LATENCY, 1.0, 0.01)])
    analysis = analyse(climbed(run, workloads=[lossy]))
    loss = analysis.ladder[0]
    assert all(step.row.cost.scale == "difference" for step in loss.steps) and loss.steps[0].start == 0


@pytest.mark.parametrize("blocks", [0, 1, 2])
def test_few_blocks_and_lost_arms(run, blocks):
    failing = {(block, "bridge"): Outcome.DEADLINE for block in range(1, 3)}
    for ladder in analyse(climbed(run, blocks=blocks, failing=failing)).ladder:
        assert ladder.steps[1].row.cost is None and ladder.steps[1].row.verdict == "inconclusive"


def test_a_failing_arm_is_said_of_its_step(run):
    failing = {(block, "bridge"): Outcome.DEADLINE for block in (1, 2, 3)}
    ladder = analyse(climbed(run, failing=failing)).ladder[0]
    assert "failed" in {remark.code for remark in ladder.steps[2].row.remarks}
    assert math.isfinite(ladder.steps[2].row.cost.typical) and ladder.steps[2].row.blocks == 9


def test_what_a_step_changes_inside_of_a_setting():
    ext4 = {"storage": {"kind": "directory", "disk": {"filesystem": "ext4", "size": 5}}, "limits": True}
    xfs = {"storage": {"kind": "directory", "disk": {"filesystem": "xfs", "size": 5}}, "limits": True}
    none = {"storage": {"kind": "directory", "disk": None}, "limits": True}
    memory = {"storage": {"kind": "tmpfs", "size": 7}, "limits": True}
    assert differing(ext4, xfs) == (StepChange("storage disk filesystem", "ext4", "xfs"),)
    assert differing(ext4, memory) == (StepChange("storage", "directory", "tmpfs"),)
    assert [each.setting for each in differing(none, xfs)] == ["storage disk"]
    assert differing(xfs, xfs) == ()
