"""What requirements come to: each comparison has three answers; a gate has one of many, at looks that share error."""

import math
from dataclasses import replace

import pytest

from report.made_up_runs import LOSS, REQUESTS, TCP, THROUGHPUT, Workload
from sentences import assert_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.limits import judge
from weighbridge.analysis.requirement import BUDGET, LIMIT, parse_requirement
from weighbridge.features.gate.gate_analysis import judge_gate, visible_excess
from weighbridge.features.gate.gate_export import gate_json
from weighbridge.features.gate.gate_looks import Spending, spending_of
from weighbridge.features.gate.gate_text import gate_answer, gate_rows
from weighbridge.model.address import ArmId, CellId
from weighbridge.model.decisions import GateLook
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.level import Level
from weighbridge.model.measurement import Metric, Outcome
from weighbridge.report.export.limits import limits_json
from weighbridge.report.text.limits import limit_sentence
from weighbridge.statistics import error_at, visible_effect
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT

TOO_MANY = "too many connections"
TCP_ALONE = [Workload("tcp", [(THROUGHPUT, 8.66e9, 0.01)])]
BRIDGE = ArmId(CellId("tcp", Level()), "bridge")
HOST = ("tcp", "{}", "host")


def answers(store_or_analysis, *expressions):
    analysis = store_or_analysis if hasattr(store_or_analysis, "metrics") else analyse(store_or_analysis)
    return judge([parse_requirement(each, LIMIT) for each in expressions], analysis)


def answer(store, expression):
    analysis = store if hasattr(store, "metrics") else analyse(store)
    (finding,) = answers(analysis, expression)
    return finding.outcome, finding.reason


@pytest.fixture
def analysis(run):
    """A bridge that costs a fifth of the throughput and a quarter more latency."""
    return analyse(run(costs={"bridge": 1.25, "host": 1.0}))


def test_the_whole_interval_decides(analysis):
    (row,) = (each for each in analysis.metrics[0].comparisons if each.environment == "bridge")
    cost = row.cost.penalty
    assert 15 < cost.low < cost.high < 25
    for operator in (">", ">="):
        limit = f"bridge.tcp.throughput {operator}"
        assert answer(analysis, f"{limit} 15%") == ("exceeded", "above")
        assert answer(analysis, f"{limit} 25%") == ("kept", "within")
        assert answer(analysis, f"{limit} {cost.estimate}%") == ("undecided", "interval")


@pytest.mark.parametrize("end", ["low", "high"])
def test_a_limit_at_the_end_of_an_interval(analysis, end):
    row = next(each for each in analysis.metrics[0].comparisons if each.environment == "bridge")
    at = getattr(row.cost.penalty, end)
    expected = {"low": ("undecided", "exceeded"), "high": ("kept", "undecided")}[end]
    outcomes = [answer(analysis, f"bridge.tcp.throughput {operator} {at!r}%")[0] for operator in (">", ">=")]
    assert tuple(outcomes) == expected


def test_worse_is_above_whichever_direction_is_good(analysis):
    assert answer(analysis, "bridge.tcp.p99 latency > 10%")[0] == "exceeded"
    assert answer(analysis, "bridge.tcp.throughput > -5%")[0] == "exceeded"
    assert answer(analysis, "host.tcp.throughput > 10%")[0] == "kept"


def test_a_gain_is_kept(run):
    assert answer(run(costs={"bridge": 0.7}), "bridge.tcp.throughput > 0%") == ("kept", "within")


@pytest.mark.parametrize("blocks", [0, 1, MIN_BLOCKS_VERDICT - 1])
def test_too_few_blocks_pass_and_fail_nothing(run, blocks):
    store = run(costs={"bridge": 5.0}, blocks=blocks)
    reason = "blocks" if blocks else "no-cost"
    assert answer(store, "bridge.tcp.throughput > 10%") == ("undecided", reason)
    assert answer(store, "bridge.tcp.throughput > 1000%") == ("undecided", reason)


def test_enough_blocks(run):
    assert (
        answer(run(costs={"bridge": 5.0}, blocks=MIN_BLOCKS_VERDICT), "bridge.tcp.throughput > 10%")[0] == "exceeded"
    )


def test_a_hidden_cost_is_no_answer(analysis):
    """Whatever a comparison gives that a bottleneck hides: neither pass nor failure."""
    first = analysis.metrics[0]
    hidden = replace(first, comparisons=tuple(replace(row, verdict="hidden") for row in first.comparisons))
    changed = replace(analysis, metrics=(hidden, *analysis.metrics[1:]))
    for limit in ("10%", "50%"):
        assert answer(changed, f"bridge.tcp.throughput > {limit}") == ("undecided", "hidden")


def test_no_cost_and_broken_servers(run):
    lost = {(block, "bridge"): Outcome.DEADLINE for block in range(1, 11)}
    assert answer(run(costs={"bridge": 1.2}, failing=lost), "bridge.tcp.throughput > 1%") == ("undecided", "no-cost")
    broken = {(block, "bridge", ()): TOO_MANY for block in range(1, 11)}
    store = run(costs={"bridge": 1.2}, breaking=broken)
    assert answer(store, "bridge.tcp.throughput > 1%") == ("undecided", "broke")


def test_a_selection_of_runs_proves_no_small_cost(run):
    lost = {(block, "bridge"): Outcome.DEADLINE for block in (1, 2, 3)}
    store = run(costs={"bridge": 1.25}, blocks=12, failing=lost)
    assert answer(store, "bridge.tcp.throughput > 60%") == ("undecided", "failed")
    assert answer(store, "bridge.tcp.throughput > 5%") == ("exceeded", "above")


def test_an_untrusted_session_exceeds_nothing(run):
    shifted = run(costs={"bridge": 3.0}, aa_factor=1.5)
    assert analyse(shifted).trust.trusted is False
    assert answer(shifted, "bridge.tcp.throughput > 10%") == ("undecided", "untrusted")


def test_differences_have_limits_in_their_unit(run):
    store = run(costs={"bridge": 3.0}, workloads=[Workload("udp", [(LOSS, 4.0, 0.02)])])
    assert answer(store, "bridge.udp.loss > 5points") == ("exceeded", "above")
    assert answer(store, "bridge.udp.loss > 20 points") == ("kept", "within")


def test_a_limit_is_in_any_unit_of_the_same_kind(run):
    store = run(
        costs={"bridge": 3.0}, workloads=[Workload("udp", [(Metric("memory_usage", "MiB", "lower"), 64.0, 0.01)])]
    )
    findings = answers(store, *(f"bridge.udp.memory_usage > {each}" for each in ("100MiB", "0.1GiB", "1GB", "1GiB")))
    assert [each.outcome for each in findings] == ["exceeded", "exceeded", "kept", "kept"]


def test_what_was_not_measured_where_it_is_asked_for_is_undecided(run):
    store = run(costs={"bridge": 1.25, "host": 1.0}, absent={("tcp", "host")})
    for limit in ("host.tcp.throughput > 1%", "host.*.throughput > 1%"):
        assert answer(store, limit) == ("undecided", "no-cost")


def test_a_limit_in_percent_of_what_was_zero(run):
    sometimes = Metric("rate", "1/s", "higher")
    store = run(costs={"bridge": 1.2}, workloads=[Workload("udp", [(sometimes, 0.1, 1.5)])])
    assert answer(store, "bridge.udp.rate > 5%") == ("undecided", "no-ratio")
    (finding,) = answers(store, "bridge.udp.rate > 5%")
    assert_sentence(limit_sentence(finding, analyse(store)))
    assert answer(store, "bridge.udp.rate > 1e3 1/s") == ("kept", "within")


def test_a_bound_in_the_metric_s_own_unit_is_of_a_difference(run):
    """A metric that is sometimes 0 has no ratio then: a bound in its unit holds in any run."""
    wait = Metric("wait", "ms", "lower")
    store = run(costs={"bridge": 1.25}, blocks=12, workloads=[Workload("udp", [(wait, 40.0, 0.01)])])
    analysis = analyse(store)
    for limit, expected in (("5ms", "exceeded"), ("0.005s", "exceeded"), ("15ms", "kept"), ("5%", "exceeded")):
        assert answer(analysis, f"bridge.udp.wait > {limit}")[0] == expected
    (finding,) = answers(analysis, "bridge.udp.wait > 5ms")
    assert finding.unit == "ms" and 9 < finding.cost.estimate < 11
    assert finding.target.report.aa.cost.scale == finding.target.row.cost.scale == "difference"
    budgets = [parse_requirement(each, BUDGET) for each in ("*.wait<=5ms", "*.wait<=30%")]
    gate = judge_gate(budgets, store, analysis, spending_of(store))
    assert [(each.outcome, each.unit) for each in gate.findings] == [("exceeded", "ms"), ("kept", "%")]


def test_a_budget_in_percent_leaves_what_has_no_ratio_to_one_in_its_unit(run):
    """Where lower is better: a zero of a rate is the worst there is, and no worse run passes by it."""
    for better, expected in (("lower", [("1/s", "kept")]), ("higher", [("%", "undecided"), ("1/s", "kept")])):
        sometimes = Metric("rate", "1/s", better)
        store = run(costs={"bridge": 1.2}, workloads=[Workload("udp", [(sometimes, 0.1, 1.5)])])
        budgets = [parse_requirement(each, BUDGET) for each in ("*<=35%", "*.rate<=1e3 1/s")]
        gate = judge_gate(budgets, store, analyse(store), spending_of(store))
        assert [(each.requirement.unit, each.outcome) for each in gate.findings] == expected


def test_findings_for_machines(run, analysis):
    findings = answers(analysis, "bridge.tcp.throughput > 5%", "host.tcp.throughput > 5%")
    worse, same = map(vars, limits_json(analysis, findings))
    assert (worse["limit"], worse["outcome"], worse["reason"]) == ("bridge.tcp.throughput > 5%", "exceeded", "above")
    assert (worse["environment"], worse["workload"], worse["metric"]) == ("bridge", "tcp", "throughput")
    assert worse["cost_low"] < worse["cost"] < worse["cost_high"] and worse["cost_unit"] == "%"
    assert same["outcome"] == "kept" and same["rounds"] == 10
    analysis = analyse(run(costs={"bridge": 1.2}, blocks=0))
    (none,) = map(vars, limits_json(analysis, answers(analysis, "bridge.tcp.throughput > 5%")))
    assert none["cost"] is None and none["outcome"] == "undecided" and none["rounds"] == 0


def gate(store, *budgets, spending=None):
    spending = spending_of(store) if spending is None else spending
    return judge_gate([parse_requirement(each, BUDGET) for each in budgets], store, analyse(store), spending)


def outcomes(made):
    return {finding.target.name: (finding.outcome, finding.reason) for finding in made.findings}


@pytest.fixture
def store(run):
    """A bridge that costs a fifth of the throughput."""
    return run(costs={"bridge": 1.25, "host": 1.0}, blocks=12)


def test_all_within_passes_one_above_fails_and_between_is_undecided(store):
    assert gate(store, "*.throughput<=35%").answer == "passed"
    assert gate(store, "bridge.tcp.throughput<=10%", "host.tcp.throughput<=10%").answer == "failed"
    size = next(
        row.cost.penalty.estimate for row in analyse(store).metrics[0].comparisons if row.environment == "bridge"
    )
    undecided = gate(store, f"bridge.tcp.throughput<={size}%", "host.tcp.throughput<=10%")
    assert undecided.answer == "undecided" and undecided.open == (BRIDGE,)
    failed = gate(store, f"bridge.tcp.throughput<={size}%", "bridge.tcp.throughput<=5%")
    assert failed.answer == "failed" and failed.open == (), "more blocks change no failure"


def test_beside_an_undecided_budget_stands_what_would_have_been_over_it(store):
    analysis = analyse(store)
    (row,) = [each for each in analysis.metrics[0].comparisons if each.environment == "bridge"]
    size = row.cost.penalty.estimate
    made = gate(store, f"bridge.tcp.throughput<={size}%", "host.tcp.throughput<=10%")
    undecided, kept = made.findings
    excess = visible_excess(undecided, made, analysis)
    level = 0.05 * made.share / 2
    effect = visible_effect(error_at(row.effects, level), 12, level)
    assert excess == pytest.approx(100 * (1 - (1 - size / 100) * math.exp(-effect))) and excess > size
    assert visible_excess(kept, made, analysis) is None
    first, second = gate_json(made, analysis)["findings"]
    assert first["visible_cost"] == excess and second["visible_cost"] is None


def test_an_untrusted_session_is_an_answer_of_its_own(run):
    store = run(costs={"bridge": 1.2}, aa_factor=1.5)
    for budget in ("1%", "90%"):
        made = gate(store, f"bridge.tcp.throughput<={budget}")
        assert (made.answer, made.open) == ("untrusted", ())


def test_what_more_blocks_cannot_decide_is_not_open(run):
    lost = {(block, "bridge"): Outcome.DEADLINE for block in (1, 2, 3)}
    store = run(costs={"bridge": 1.25, "host": 1.0}, blocks=12, failing=lost)
    made = gate(store, "*.throughput<=60%")
    assert made.answer == "undecided" and made.open == ()
    assert outcomes(made) == {
        "bridge.tcp.throughput": ("undecided", "failed"),
        "host.tcp.throughput": ("kept", "within"),
    }


def test_without_other_comparisons_the_interval_alone_decides(run):
    """Its lower limit is hardly above the budget: alone it fails, among forty more it may be chance."""
    store = run(costs={"bridge": 1.25, "host": 1.0}, workloads=TCP_ALONE, blocks=10)
    cost = next(row.cost for row in analyse(store).metrics[0].comparisons if row.environment == "bridge").penalty
    budget = f"bridge.tcp.throughput<={cost.low - 0.01}%"
    alone = gate(store, budget, spending=Spending(now=1.0))
    assert (alone.answer, outcomes(alone)["bridge.tcp.throughput"]) == ("failed", ("exceeded", "above"))
    many = [f"host.tcp.throughput<={50 + number}%" for number in range(40)]
    among = gate(store, budget, *many, spending=Spending(now=1.0))
    assert among.findings[0].reason == "many" and among.answer == "undecided" and among.open == (BRIDGE,)
    assert gate(store, "bridge.tcp.throughput<=5%", *many).answer == "failed", "what is far above, fails"


STEADY = [Workload("tcp", [(THROUGHPUT, 8.66e9, 0.0)])]


def test_a_cost_of_few_blocks_within_the_noise_fails_no_gate(run):
    """A report had called it undecided, and a gate failed by it."""
    restless = {(block, "native-again"): 1.06 if block % 2 else 0.95 for block in range(1, 9)}
    store = run(costs={"bridge": 1.04}, workloads=TCP_ALONE, blocks=8, slowed=restless)
    analysis = analyse(store)
    (row,) = [each for each in analysis.metrics[0].comparisons if each.environment == "bridge"]
    assert analysis.trust.trusted and row.cost.penalty.low > 0 and row.verdict == "inconclusive"
    assert answer(store, "bridge.tcp.throughput > 0%") == ("undecided", "noise")
    made = gate(store, "bridge.tcp.throughput<=0%", spending=Spending(now=1.0))
    assert made.answer == "undecided" and outcomes(made)["bridge.tcp.throughput"] == ("undecided", "noise")
    assert made.open == (BRIDGE,)


def test_few_blocks_without_a_control_fail_a_gate_by_the_exact_test_alone(run):
    """Student's interval excludes it; of the 64 flips of signs four are as far out."""
    costs = {(block, "bridge"): 1.10 for block in range(1, 6)} | {(6, "bridge"): 0.999}
    store = run(costs={"bridge": 1.0}, workloads=STEADY, blocks=6, slowed=costs, aa=False)
    (row,) = analyse(store).metrics[0].comparisons
    assert row.cost.penalty.low > 0 and row.adjusted_p == pytest.approx(4 / 64) and row.verdict == "inconclusive"
    made = gate(store, "bridge.tcp.throughput<=0%", spending=Spending(now=1.0))
    assert made.answer == "undecided" and made.open == (BRIDGE,)
    certain = run(costs={"bridge": 1.10}, workloads=STEADY, blocks=6, slowed={(6, "bridge"): 0.95}, aa=False)
    assert gate(certain, "bridge.tcp.throughput<=0%", spending=Spending(now=1.0)).answer == "failed"


def test_passing_needs_no_correction(run):
    store = run(costs={"bridge": 1.25, "host": 1.0}, workloads=TCP_ALONE, blocks=10)
    cost = next(row.cost for row in analyse(store).metrics[0].comparisons if row.environment == "bridge").penalty
    budgets = [f"bridge.tcp.throughput<={cost.high + 0.01 + number}%" for number in range(40)]
    assert gate(store, *budgets, spending=Spending(now=1.0)).answer == "passed"


def test_a_look_that_spends_everything_is_as_the_report(store):
    made, analysis = gate(store, "*.throughput<=35%", spending=Spending(now=1.0)), analyse(store)
    rows = {row.environment: row.cost.penalty for row in analysis.metrics[0].comparisons}
    assert made.looks == 1
    for finding in made.findings:
        assert finding.cost == rows[finding.target.environment]


def test_a_look_that_spends_less_has_a_wider_interval(store):
    widths = [
        finding.cost.high - finding.cost.low
        for share in (1.0, 0.3, 0.1)
        for finding in gate(store, "bridge.tcp.throughput<=35%", spending=Spending(now=share)).findings
    ]
    assert widths == sorted(widths) and widths[0] < widths[-1]
    nothing = gate(store, "bridge.tcp.throughput<=35%", spending=Spending(now=0.0))
    assert outcomes(nothing)["bridge.tcp.throughput"] == ("undecided", "spent") and nothing.open == ()


def test_what_was_decided_at_a_look_is_judged_as_it_was_then():
    first = GateLook(blocks=10, share=0.1, open=(BRIDGE,), until=20)
    last = GateLook(blocks=20, share=0.4, open=(BRIDGE,))
    assert Spending((first,), 0.25).share(HOST) == 0.1
    assert Spending((first,), 0.25).share(BRIDGE) == 0.25
    assert Spending((first, last)).share(BRIDGE) == 0.4
    assert Spending((first, last)).share(HOST) == 0.1
    again = last.model_copy(update={"until": 30, "open": (HOST,)})
    assert Spending((first, again), 0.05).share(HOST) == 0.05, "it has new blocks"
    assert Spending((first, again), 0.05).share(BRIDGE) == 0.4
    assert Spending((first,)).share(BRIDGE) == 0.1, "it was interrupted before a new block"
    assert Spending().share(None) == 1.0 and Spending(now=0.2).share(None) == 0.2
    assert Spending((first, last)).left == pytest.approx(0.5)


def test_a_run_that_others_have_extended_since_is_looked_at_anew(run):
    from weighbridge.model.decisions import gate_looks_text
    from weighbridge.store.reader import GATE_LOOKS
    from weighbridge.store.run import RunStore

    directory = run(costs={"bridge": 1.25}, blocks=12).directory
    looks = (GateLook(blocks=6, share=0.3, open=(BRIDGE,), until=8), GateLook(blocks=8, share=0.5, open=(BRIDGE,)))
    with RunStore(directory, writable=True) as store:
        store.set_info(GATE_LOOKS, gate_looks_text(looks))
        assert spending_of(store).now == pytest.approx(0.2 * 0.8)
        assert spending_of(store).share(BRIDGE) == spending_of(store).share(HOST) == spending_of(store).now
        further = looks[1].model_copy(update={"until": 10})
        store.set_info(GATE_LOOKS, gate_looks_text((looks[0], further)))
        assert spending_of(store).share(HOST) == spending_of(store).now, "beyond what the gate had asked for"
        one_less = replace_blocks(looks[1], 12).model_copy(update={"trials": len(store.trials()) - 1})
        store.set_info(GATE_LOOKS, gate_looks_text((looks[0], one_less)))
        assert spending_of(store).now == pytest.approx(0.2 * 0.8), "its last block was completed later"
        store.set_info(GATE_LOOKS, gate_looks_text((looks[0], replace_blocks(looks[1], 12))))
        assert spending_of(store).now is None and spending_of(store).share(BRIDGE) == 0.5


def replace_blocks(look, blocks):
    return look.model_copy(update={"blocks": blocks})


def test_levels_are_comparisons_of_their_own(run):
    levels = [Workload("redis", [(REQUESTS, 5e4, 0.01)], (("clients", each),)) for each in ("10", "50")]
    store = run(costs={"bridge": 1.25}, workloads=[TCP, *levels])
    names = {finding.target.name for finding in gate(store, "*.requests<=35%").findings}
    assert names == {"bridge.redis[clients=10].requests", "bridge.redis[clients=50].requests"}


FAILED = Metric("failed", "count", "lower")
"""Compared by difference."""


def test_a_headline_in_another_unit_is_not_passed_over(run):
    """`after.*<=300%` passed a program that failed 50 times more often: a count is compared by difference."""
    store = run(costs={"bridge": 2.0}, workloads=[Workload("app", [(FAILED, 50.0, 0.02)]), *TCP_ALONE])
    made = gate(store, "bridge.*<=300%")
    assert made.answer == "undecided" and made.open == () and made.not_judged == 0
    assert outcomes(made) == {
        "bridge.tcp.throughput": ("kept", "within"),
        "bridge.app.failed": ("undecided", "own-budget"),
    }
    (finding,) = [each for each in made.findings if each.reason == "own-budget"]
    assert finding.cost.low < 50 < finding.cost.high and finding.unit == "count" and finding.blocks == 10
    (row,) = [each for each in gate_rows(made, analyse(store)) if each.name == finding.target.name]
    assert row.reason.endswith("give it its own budget, such as 'bridge.app.failed<=5'")
    assert gate(store, "bridge.*<=300%", "bridge.app.failed<=60").answer == "passed"
    assert gate(store, "bridge.*<=300%", "bridge.app.failed<=5").answer == "failed"
    assert gate(store, "bridge.*<=60").answer == "undecided", "nor is one in percent"


def test_a_gain_in_another_unit_needs_no_budget(run):
    store = run(costs={"bridge": 0.5}, workloads=[Workload("app", [(FAILED, 50.0, 0.02)]), *TCP_ALONE])
    made = gate(store, "bridge.*<=300%")
    assert (made.answer, made.not_judged) == ("passed", 1)


def test_further_metrics_in_another_unit_are_counted(run):
    store = run(
        costs={"bridge": 1.25, "host": 1.0}, workloads=[Workload("tcp", [*TCP_ALONE[0].metrics, (LOSS, 4.0, 0.02)])]
    )
    made = gate(store, "*<=60%")
    assert (made.answer, made.not_judged, len(made.findings)) == ("passed", 2, 2)
    assert gate_json(made, analyse(store))["not_judged"] == 2
    assert (
        gate_answer(made) == "Gate passed: 2 comparisons are all within budget. Not judged: 2 costs in other units."
    )
    assert gate(store, "*.throughput<=60%").not_judged == 0


def test_a_disturbed_run_has_no_cost_that_would_have_been_over_its_budget(run):
    """As in the report: there it must lie beyond the noise floor, too."""
    others = (Flag(FlagCode.OTHER_WORK, figures={"cpus": 1.4}),)
    names = ("native", "native-again", "bridge")
    flags = {(block, name): others for block in range(1, 13) for name in names}
    for disturbed in (False, True):
        store = run(costs={"bridge": 1.25}, workloads=TCP_ALONE, blocks=12, flags=flags if disturbed else {})
        analysis = analyse(store)
        (size,) = [each.cost.penalty.estimate for each in analysis.metrics[0].comparisons if not each.aa]
        made = gate(store, f"bridge.tcp.throughput<={size}%")
        assert (made.answer, analysis.disturbance.heavy) == ("undecided", disturbed)
        assert (visible_excess(made.findings[0], made, analysis) is None) == disturbed


def test_a_count_that_stays_zero_needs_no_budget(run):
    store = run(costs={"bridge": 1.0}, workloads=[Workload("app", [(FAILED, 0.0, 0.0)]), *TCP_ALONE])
    made = gate(store, "bridge.*<=300%")
    assert (made.answer, made.not_judged) == ("passed", 1)
