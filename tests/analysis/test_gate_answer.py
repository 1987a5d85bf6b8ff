"""A whole gate: passed, failed, undecided, untrusted; among many; at looks that share the error."""

import pytest

from report.made_up_runs import REQUESTS, TCP, THROUGHPUT, Workload
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.budget import parse_budget
from weighbridge.analysis.gate_answer import judge_gate
from weighbridge.analysis.gate_spending import Spending, spending_of
from weighbridge.model.decisions import GateLook
from weighbridge.model.level import Level
from weighbridge.model.measurement import Outcome

TCP_ALONE = [Workload("tcp", [(THROUGHPUT, 8.66e9, 0.01)])]
BRIDGE = ("tcp", Level(), "bridge")
HOST = ("tcp", "{}", "host")


def gate(store, *budgets, spending=None):
    spending = spending_of(store) if spending is None else spending
    return judge_gate([parse_budget(each) for each in budgets], store, analyse(store), spending)


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
        row.cost.worsening.estimate for row in analyse(store).metrics[0].comparisons if row.environment == "bridge"
    )
    undecided = gate(store, f"bridge.tcp.throughput<={size}%", "host.tcp.throughput<=10%")
    assert undecided.answer == "undecided" and undecided.open == (BRIDGE,)
    failed = gate(store, f"bridge.tcp.throughput<={size}%", "bridge.tcp.throughput<=5%")
    assert failed.answer == "failed" and failed.open == (), "more blocks change no failure"


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
    cost = next(row.cost for row in analyse(store).metrics[0].comparisons if row.environment == "bridge").worsening
    budget = f"bridge.tcp.throughput<={cost.low - 0.01}%"
    alone = gate(store, budget, spending=Spending(now=1.0))
    assert (alone.answer, outcomes(alone)["bridge.tcp.throughput"]) == ("failed", ("exceeded", "above"))
    many = [f"host.tcp.throughput<={50 + number}%" for number in range(40)]
    among = gate(store, budget, *many, spending=Spending(now=1.0))
    assert among.findings[0].reason == "many" and among.answer == "undecided" and among.open == (BRIDGE,)
    assert gate(store, "bridge.tcp.throughput<=5%", *many).answer == "failed", "what is far above, fails"


def test_passing_needs_no_correction(run):
    store = run(costs={"bridge": 1.25, "host": 1.0}, workloads=TCP_ALONE, blocks=10)
    cost = next(row.cost for row in analyse(store).metrics[0].comparisons if row.environment == "bridge").worsening
    budgets = [f"bridge.tcp.throughput<={cost.high + 0.01 + number}%" for number in range(40)]
    assert gate(store, *budgets, spending=Spending(now=1.0)).answer == "passed"


def test_a_look_that_spends_everything_is_as_the_report(store):
    made, analysis = gate(store, "*.throughput<=35%", spending=Spending(now=1.0)), analyse(store)
    rows = {row.environment: row.cost.worsening for row in analysis.metrics[0].comparisons}
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
