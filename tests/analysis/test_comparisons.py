"""Contrasts of a run's environments, of the blocks that have them all, and the ladder of a study."""

import json
import math
from itertools import pairwise

import pytest

from report.made_up_runs import LATENCY, LOSS, REQUESTS, TCP, Workload
from report.test_html import check_links, page_of
from report.test_terminal import shown
from report.vega_lite import definition_of
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.comparisons import contrast_cost, values_by_metric
from weighbridge.analysis.plan import StepChange, changes, differing, plan_of
from weighbridge.model.measurement import Outcome
from weighbridge.report import charts
from weighbridge.report.export.json import report_json
from weighbridge.report.text.remarks import remark_text
from weighbridge.report.text.steps import change_text, ladder_sentences
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
    assert [(s.previous, s.row.environment) for s in throughput.steps] == list(pairwise(LADDER))
    host, bridge, overlay = throughput.steps
    assert host.row.verdict == "equivalent" and bridge.row.verdict == overlay.row.verdict == "different"
    assert overlay.row.cost.low < 1.12 / 1.6 < overlay.row.cost.high
    against_native = analysis.metrics[0].comparisons[1].cost
    assert bridge.start == pytest.approx(analysis.metrics[0].comparisons[0].cost.typical)
    assert overlay.start == against_native.typical and host.start == 1.0
    medians = {row.environment: row.value for row in analysis.metrics[0].comparisons}
    assert overlay.row.baseline_value == medians["bridge"]


def pairs_of(ladder):
    return [(step.previous, step.row.environment) for step in ladder.steps]


def test_a_ladder_may_branch(run):
    analysis = analyse(run(costs=BRANCHES, ladder=BRANCHING, blocks=12))
    for ladder in analysis.ladder:
        assert pairs_of(ladder) == [(base, name) for name, base in BRANCHING[1:]]
    published, overlay = analysis.ladder[0].steps[2:]
    assert published.start == overlay.start == analysis.metrics[0].comparisons[1].cost.typical
    assert overlay.row.cost.low < 1.2 / 1.5 < overlay.row.cost.high
    assert [row["against"] for row in report_json(run(costs=BRANCHES, ladder=BRANCHING))["ladder"]][:4] == [
        "native", "native", "bridge", "bridge"
    ]  # fmt: skip


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
    page_of(store)


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
    assert change_text(changes(store, "native", "host")) == "native → docker"
    assert change_text(changes(store, "host", "bridge")) == "network: host → bridge, publish: none → yes"
    assert change_text(changes(store, "bridge", "overlay")) == "network: bridge → overlay"
    assert changes(store, "native", "native-again") == ()


def test_the_sentences_of_the_page_and_the_terminal(run):
    store = climbed(run)
    lines = [text.replace("\u00a0", " ") for _, text in ladder_sentences(analyse(store))]
    assert lines[2].startswith("step 3, overlay (network bridge → overlay): ")
    assert "lower TCP throughput than bridge (12 rounds) - significant" in lines[2]
    text, page = shown(store, width=240), page_of(store)
    assert "step by step" in text and lines[2] in text and "as one family" in " ".join(text.split())
    assert lines[1] in page.text.replace("\u00a0", " ") and "the steps of 1 more metric" in page.text
    check_links(page, store.directory)


def test_of_many_steps_the_differences_are_told_and_the_others_counted(run, monkeypatch: pytest.MonkeyPatch):
    analysis = analyse(climbed(run))
    everything = ladder_sentences(analysis)
    different = [each for each in everything if each[0] == "different"]
    assert 0 < len(different) < len(everything)
    monkeypatch.setattr("weighbridge.report.text.steps.MOST_SENTENCES", len(everything) - 1)
    assert len(everything) - len(different) == 1
    assert ladder_sentences(analysis) == [
        *different,
        ("", "the tables show 1 more step with a verdict other than significant"),
    ]


def test_of_too_few_blocks_no_step_is_told(run):
    assert ladder_sentences(analyse(climbed(run, blocks=2))) == []


def test_without_a_ladder_nothing_is_said_of_it(run):
    store = run(costs=COSTS)
    assert "step by step" not in shown(store) and "Step by step" not in page_of(store).text
    assert report_json(store)["ladder"] == []


def test_the_document_has_the_ladder(run):
    rows = report_json(climbed(run))["ladder"]
    json.dumps(rows, allow_nan=False)
    assert len(rows) == 6 and rows[1]["against"] == "host" and rows[1]["environment"] == "bridge"
    assert (
        rows[1]["change"].startswith("network") and rows[1]["verdict"] == "significant" and rows[1]["low"] < 1 / 1.12
    )
    assert {"metric", "typical", "high", "rounds", "remarks", "baseline_value"} <= set(rows[1])


def rows_of(chart, layer):
    spec = definition_of(chart)
    return spec["datasets"][spec["layer"][layer]["data"]["name"]]


def test_the_waterfall_stands_on_the_steps(run):
    analysis = analyse(climbed(run))
    ladder = analysis.ladder[0]
    bars = rows_of(charts.waterfall(analysis, ladder), BARS)
    assert [each["environment"] for each in bars] == LADDER[1:]
    for bar, step in zip(bars, ladder.steps, strict=True):
        assert bar["start"] == pytest.approx(100 * step.start)
        assert bar["end"] == pytest.approx(100 * step.start * step.row.cost.typical)
        assert bar["low"] <= bar["end"] <= bar["high"] and bar["quiet"] < bar["start"] < bar["loud"]
    assert bars[0]["strength"] < bars[2]["strength"]
    assert "noise floor" in charts.ladder_caption(analysis, ladder)


def test_branches_start_side_by_side(run):
    analysis = analyse(run(costs=BRANCHES, ladder=BRANCHING, blocks=12))
    chart = charts.waterfall(analysis, analysis.ladder[0])
    bars, joints = rows_of(chart, BARS), rows_of(chart, JOINTS)
    labels = chart.axes[1].labels
    assert [*labels.values()] == ["host", "bridge\non native", "published", "overlay\non bridge"]
    assert [bar["environment"] for bar in bars] == [*labels]
    assert bars[2]["start"] == bars[3]["start"] and bars[0]["start"] == bars[1]["start"] == 100
    assert [(each["environment"], each["against"], each["start"]) for each in joints] == [
        (bar["environment"], "bridge", bar["start"]) for bar in bars[2:]
    ]
    definition_of(chart)


def test_a_ladder_of_differences(run):
    lossy = Workload("udp", [(LOSS, 0.5, 2.0), (LATENCY, 1.0, 0.01)])
    analysis = analyse(climbed(run, workloads=[lossy]))
    loss = analysis.ladder[0]
    assert all(step.row.cost.scale == "difference" for step in loss.steps) and loss.steps[0].start == 0
    definition_of(charts.waterfall(analysis, loss))


@pytest.mark.parametrize("blocks", [0, 1, 2])
def test_few_blocks_and_lost_arms(run, blocks):
    failing = {(block, "bridge"): Outcome.DEADLINE for block in range(1, 3)}
    store = climbed(run, blocks=blocks, failing=failing)
    analysis = analyse(store)
    for ladder in analysis.ladder:
        chart = charts.waterfall(analysis, ladder)
        assert (chart is None) or definition_of(chart)
        assert "not drawn: host, bridge, overlay" in charts.ladder_caption(analysis, ladder)
        assert ladder.steps[1].row.cost is None and ladder.steps[1].row.verdict == "inconclusive"
    page_of(store)


def test_a_failing_arm_is_said_of_its_step(run):
    failing = {(block, "bridge"): Outcome.DEADLINE for block in (1, 2, 3)}
    ladder = analyse(climbed(run, failing=failing)).ladder[0]
    texts = {remark_text(remark) for remark in ladder.steps[2].row.remarks}
    assert any(text.startswith("bridge: 3 of 12 trials failed") for text in texts)
    assert math.isfinite(ladder.steps[2].row.cost.typical) and ladder.steps[2].row.blocks == 9


def test_many_levels_are_told_by_tables(run):
    cells = [Workload("redis", [(REQUESTS, 5e4, 0.01)], (("clients", str(n)),)) for n in range(10)]
    store = climbed(run, workloads=[*cells, TCP])
    text, page = shown(store, width=240), page_of(store)
    assert "lower redis requests/s than native at 10 of 10 levels (12 rounds) - significant" in text
    assert "host is within ±3% of native in TCP throughput and redis requests/s at 10 of 10" in text
    assert "redis: requests/s over 10 levels" in page.text
    assert sum(attrs.get("class") == "more cell" for attrs in page.all("details")) == 11
    assert all(step[1].count("redis") == 0 for step in ladder_sentences(analyse(store)))
    check_links(page, store.directory)


def test_what_a_step_changes_inside_of_a_setting():
    ext4 = {"storage": {"kind": "directory", "disk": {"filesystem": "ext4", "size": 5}}, "limits": True}
    xfs = {"storage": {"kind": "directory", "disk": {"filesystem": "xfs", "size": 5}}, "limits": True}
    none = {"storage": {"kind": "directory", "disk": None}, "limits": True}
    memory = {"storage": {"kind": "tmpfs", "size": 7}, "limits": True}
    assert change_text(differing(ext4, xfs)) == "storage disk filesystem: ext4 → xfs"
    assert change_text(differing(ext4, memory)) == "storage: directory → tmpfs"
    assert change_text(differing(none, xfs)) == "storage disk: none → filesystem xfs, size 5"
    assert differing(xfs, xfs) == ()
