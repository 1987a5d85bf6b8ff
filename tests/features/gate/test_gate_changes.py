"""Changes of costs against an earlier run, held against a margin."""

from report.made_up_runs import LOSS, TCP, THROUGHPUT, Workload
from sentences import raises_sentence
from weighbridge.analysis.requirement import MARGIN, parse_requirement
from weighbridge.features.gate.between_runs import compare_runs
from weighbridge.features.gate.compared_run import OtherQuestionError, read_run
from weighbridge.features.gate.gate_analysis import judge_gate
from weighbridge.features.gate.gate_changes import judge_changes
from weighbridge.features.gate.gate_looks import Spending
from weighbridge.model.address import ArmId, CellId, MetricId
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.level import Level
from weighbridge.model.measurement import Outcome

TCP_ALONE = [Workload("tcp", [(THROUGHPUT, 8.66e9, 0.005)])]
BASE = {"costs": {"bridge": 1.2}, "blocks": 15, "workloads": TCP_ALONE}


def changes(run, before, after, margin, share=1.0):
    stores = [run(**{**BASE, "seed": 7, **before}), run(**{**BASE, "seed": 8, **after})]
    old, new = (read_run(each, f"run{number}") for number, each in enumerate(stores))
    found = judge_changes(parse_requirement(margin, MARGIN), new, old, Spending(now=share), 1)
    return judge_gate([], stores[1], new.analysis, Spending(now=share), found)


def outcome(made):
    (finding,) = made.findings
    assert finding.requirement.operand == "change" and finding.target.name == "bridge.tcp.throughput"
    return finding.outcome, finding.reason


def test_a_cost_that_became_much_worse_fails(run):
    made = changes(run, {}, {"costs": {"bridge": 1.4}}, "3%")
    assert outcome(made) == ("exceeded", "above") and made.answer == "failed"
    (finding,) = made.findings
    assert 3 < finding.cost.low < 100 * (1 - 1.2 / 1.4) < finding.cost.high and finding.blocks == 15


def test_the_change_is_that_of_compare(run):
    stores = [run(**{**BASE, "seed": seed, "costs": {"bridge": cost}}) for seed, cost in ((7, 1.2), (8, 1.4))]
    old, new = (read_run(each, f"run{number}") for number, each in enumerate(stores))
    ((finding, _),) = judge_changes(parse_requirement("3%", MARGIN), new, old, Spending(now=1.0), 1)
    row = compare_runs(old, new).pairs[0].row(MetricId(CellId("tcp", Level()), "throughput"), "bridge")
    assert finding.cost == row.change.penalty_with_allowance


def test_a_cost_that_stayed_or_became_better_passes(run):
    assert outcome(changes(run, {}, {}, "5%")) == ("kept", "within")
    assert outcome(changes(run, {}, {"costs": {"bridge": 1.05}}, "0%")) == ("kept", "within")


def test_in_between_it_is_undecided_and_more_blocks_may_help(run):
    made = changes(run, {}, {"costs": {"bridge": 1.24}}, "3.3%")
    assert outcome(made) == ("undecided", "interval") and made.open == (ArmId(CellId("tcp", Level()), "bridge"),)


def test_what_takes_the_answer_from_a_run_takes_it_from_the_change(run):
    worse = {"costs": {"bridge": 1.5}}
    assert changes(run, {"aa_factor": 1.5}, worse, "3%").answer == "untrusted"
    assert changes(run, {}, {**worse, "aa_factor": 1.5}, "3%").answer == "untrusted"
    assert outcome(changes(run, {"blocks": 4}, worse, "3%")) == ("undecided", "blocks")
    lost = {(block, "bridge"): Outcome.DEADLINE for block in range(1, 16)}
    assert outcome(changes(run, {}, {"failing": lost}, "3%")) == ("undecided", "no-cost")
    some = {(block, "bridge"): Outcome.DEADLINE for block in (1, 2, 3)}
    assert outcome(changes(run, {"failing": some}, {}, "9%")) == ("undecided", "failed")


def test_a_change_within_both_noise_floors_does_not_fail(run):
    loud = {"workloads": [Workload("tcp", [(THROUGHPUT, 8.66e9, 0.001)])], "aa_factor": 1.08}
    made = changes(run, loud, {**loud, "costs": {"bridge": 1.25}}, "0%")
    assert outcome(made)[0] == "undecided"


def test_a_margin_in_percent_is_about_ratios(run):
    both = [*TCP_ALONE, Workload("udp", [(LOSS, 4.0, 0.02)])]
    assert outcome(changes(run, {"workloads": both}, {"workloads": both}, "5%")) == ("kept", "within")
    udp = both[1:]
    with raises_sentence(OtherQuestionError):
        changes(run, {"workloads": udp}, {"workloads": udp}, "5%")


def test_runs_of_other_questions_are_refused(run):
    with raises_sentence(OtherQuestionError):
        changes(run, {}, {"costs": {"host": 1.0}}, "3%")


def test_what_the_judged_run_did_not_measure_is_no_reason_to_pass(run):
    made = changes(run, {"workloads": [TCP]}, {"workloads": [TCP], "blocks": 0}, "3%")
    assert made.answer == "undecided" and outcome(made) == ("undecided", "no-cost")


def test_what_became_worse_with_the_disturbance_is_undecided(run):
    others = (Flag(FlagCode.OTHER_WORK, figures={"cpus": 1.4}),)
    flags = {(block, name): others for block in range(1, 16) for name in ("native", "native-again", "bridge")}
    worse = {"costs": {"bridge": 2.0}}
    for old, new in (({}, {**worse, "flags": flags}), ({"flags": flags}, worse)):
        made = changes(run, old, new, "3%")
        assert outcome(made) == ("undecided", "disturbed") and made.answer == "undecided" and not made.open
    assert outcome(changes(run, {"flags": flags}, {**worse, "flags": flags}, "3%")) == ("exceeded", "above")
    assert outcome(changes(run, {"flags": flags}, {}, "5%")) == ("kept", "within"), (
        "it stayed the same in spite of them"
    )
