"""Limits on costs: three answers, and one sentence for whatever is no limit."""

import json
from dataclasses import replace

import pytest

from report.made_up_runs import LOSS, REQUESTS, TCP, Workload
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.gate import judge
from weighbridge.analysis.limit import LimitError, parse_limit
from weighbridge.model.measurement import Metric, Outcome
from weighbridge.report.export.json import limits_json
from weighbridge.report.text.limits import finding_sentence
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT

TOO_MANY = "too many connections"


def answers(store_or_analysis, *expressions):
    analysis = store_or_analysis if hasattr(store_or_analysis, "metrics") else analyse(store_or_analysis)
    return judge([parse_limit(each) for each in expressions], analysis)


def answer(store, expression):
    analysis = store if hasattr(store, "metrics") else analyse(store)
    (finding,) = answers(analysis, expression)
    sentence = finding_sentence(finding, analysis)
    assert len(sentence.splitlines()) == 1 and finding.target.name in sentence
    return finding.outcome, finding.reason


def refused(store, expression):
    with pytest.raises(LimitError) as caught:
        answers(store, expression)
    assert expression in str(caught.value) and len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.fixture
def analysis(run):
    """A bridge that costs a fifth of the throughput and a quarter more latency."""
    return analyse(run(costs={"bridge": 1.25, "host": 1.0}))


def test_the_whole_interval_decides(analysis):
    (row,) = (each for each in analysis.metrics[0].comparisons if each.environment == "bridge")
    cost = row.cost.worsening
    assert 15 < cost.low < cost.high < 25
    for operator in (">", ">="):
        limit = f"bridge.tcp.throughput {operator}"
        assert answer(analysis, f"{limit} 15%") == ("exceeded", "above")
        assert answer(analysis, f"{limit} 25%") == ("kept", "within")
        assert answer(analysis, f"{limit} {cost.estimate}%") == ("undecided", "interval")


@pytest.mark.parametrize("end", ["low", "high"])
def test_a_limit_at_the_end_of_an_interval(analysis, end):
    row = next(each for each in analysis.metrics[0].comparisons if each.environment == "bridge")
    at = getattr(row.cost.worsening, end)
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


def test_a_cost_within_the_noise_and_an_untrusted_session(run, analysis):
    noisy = replace(analysis.metrics[0], comparisons=tuple(
        replace(row, cost=replace(row.cost, low=0.5, high=1.5)) if row.aa else row
        for row in analysis.metrics[0].comparisons
    ))  # fmt: skip
    assert answer(replace(analysis, metrics=(noisy,)), "bridge.tcp.throughput > 10%") == ("undecided", "noise")
    assert answer(replace(analysis, metrics=(noisy,)), "bridge.tcp.throughput > -10%") == ("exceeded", "above")
    shifted = run(costs={"bridge": 3.0}, aa_factor=1.5)
    assert analyse(shifted).trust.trusted is False
    assert answer(shifted, "bridge.tcp.throughput > 10%") == ("undecided", "untrusted")


def test_differences_have_limits_in_their_unit(run):
    used = Metric("memory", "MiB", "lower")
    store = run(costs={"bridge": 3.0}, workloads=[Workload("udp", [(LOSS, 4.0, 0.02), (used, 64.0, 0.01)])])
    assert answer(store, "bridge.udp.loss > 5points") == ("exceeded", "above")
    assert answer(store, "bridge.udp.loss > 20 points") == ("kept", "within")
    assert "points" in refused(store, "bridge.udp.loss > 5%")
    assert "in %" in refused(store, "bridge.udp.memory > 5MiB")
    assert "without a unit" in refused(store, "bridge.udp.memory > 5")


def test_a_limit_in_percent_of_what_was_zero(run):
    sometimes = Metric("rate", "1/s", "higher")
    store = run(costs={"bridge": 1.2}, workloads=[Workload("udp", [(sometimes, 0.1, 1.5)])])
    assert answer(store, "bridge.udp.rate > 5%") == ("undecided", "no-ratio")


def test_a_limit_is_read_in_any_unit_of_the_same_kind(run):
    used = Metric("memory_usage", "MiB", "lower")
    store = run(costs={"bridge": 3.0}, workloads=[Workload("udp", [(used, 64.0, 0.01)])])
    findings = answers(store, *(f"bridge.udp.memory_usage > {each}" for each in ("100MiB", "0.1GiB", "1GB", "1GiB")))
    assert [each.outcome for each in findings] == ["exceeded", "exceeded", "kept", "kept"]


def test_a_count_needs_no_unit(run):
    store = run(costs={"bridge": 3.0}, workloads=[Workload("udp", [(Metric("lost", "count", "lower"), 100.0, 0.02)])])
    assert answer(store, "bridge.udp.lost > 50")[0] == answer(store, "bridge.udp.lost > 50count")[0] == "exceeded"


def levels(*clients):
    return [Workload("redis", [(REQUESTS, 5e4, 0.01)], (("clients", each), ("depth", "1.5"))) for each in clients]


def test_levels_and_wildcards(run):
    store = run(costs={"bridge": 1.25, "host": 1.0}, workloads=[*levels("10", "50"), TCP], absent={("tcp", "host")})

    def named(expression):
        return [finding.target.name for finding in answers(store, expression)]

    redis = [f"bridge.redis[clients={each},depth=1.5].requests" for each in ("10", "50")]
    assert named("bridge.redis[clients=50].requests > 1%") == redis[1:]
    assert named("bridge.redis[depth=1.5, clients=50].requests > 1%") == redis[1:]
    assert named("bridge.redis.requests > 1%") == redis
    assert named("*.redis[clients=10].requests > 1%") == [
        redis[0].replace("bridge", each) for each in ("bridge", "host")
    ]
    assert named("*.*.throughput > 1%") == ["bridge.tcp.throughput"]
    assert named("bridge.*.requests > 1%") == redis
    assert named(f"{redis[0]} > 1%") == redis[:1]
    assert answer(store, "host.tcp.throughput > 1%") == ("undecided", "no-cost")
    assert answer(store, "host.*.throughput > 1%") == ("undecided", "no-cost")
    text = refused(store, "bridge.redis[clients=60].requests > 1%")
    assert "did you mean 'redis[clients=" in text


def test_names_with_dots(run):
    store = run(costs={"v1.2": 1.25, "v1": 1.0}, workloads=[Workload("tcp.a", [(REQUESTS, 1e4, 0.01)])])
    (finding,) = answers(store, "v1.2.tcp.a.requests > 5%")
    assert (finding.target.environment, finding.target.label) == ("v1.2", "tcp.a") and finding.outcome == "exceeded"
    twice = [Workload(name, [(REQUESTS, 1e4, 0.01)]) for name in ("tcp", "2.tcp")]
    assert "2 ways" in refused(run(costs={"v1.2": 1.25, "v1": 1.0}, workloads=twice), "v1.2.tcp.requests > 5%")


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("brigde.tcp.throughput > 5%", "did you mean 'bridge'?"),
        ("bridge.tpc.throughput > 5%", "did you mean 'tcp'?"),
        ("bridge.tcp.troughput > 5%", "did you mean 'throughput'?"),
        ("*.*.troughput > 5%", "did you mean 'throughput'?"),
        ("zzz.tcp.throughput > 5%", "there are: bridge, host"),
        ("native.tcp.throughput > 5%", "'native' is the baseline"),
        ("bridge.tcp.throughput > 5", "like '> 5%'"),
        ("bridge.tcp.throughput > 5ms", "like '> 5%'"),
    ],
)
def test_what_the_run_does_not_have(analysis, expression, says):
    assert says in refused(analysis, expression)


@pytest.mark.parametrize(
    "expression",
    ["", "5%", "bridge.tcp > 5%", "bridge.tcp.throughput", "bridge.tcp.throughput < 5%", "bridge..tcp.x > 5%",
     "bridge.tcp.throughput > five", "bridge.tcp.throughput > 1e999%", "bridge.tcp.throughput > 5% or so",
     "bridge.tcp.throughput >> 5%", ".tcp.throughput > 5%", "bridge.tcp.throughput = 5%", "> 5%"],
)  # fmt: skip
def test_what_is_no_limit(expression):
    with pytest.raises(LimitError) as caught:
        parse_limit(expression)
    assert len(str(caught.value).splitlines()) == 1 and "bridge.tcp.throughput > 35%" in str(caught.value)


def test_an_aa_arm_can_be_asked_and_is_in_no_wildcard(analysis):
    assert answer(analysis, "native-again.tcp.throughput > 20%")[0] == "kept"
    names = {finding.target.environment for finding in answers(analysis, "*.tcp.throughput > 20%")}
    assert names == {"bridge", "host"}


def test_findings_for_machines(run, analysis):
    findings = answers(analysis, "bridge.tcp.throughput > 5%", "host.tcp.throughput > 5%")
    worse, same = limits_json(analysis, findings)
    json.dumps([worse, same], allow_nan=False)
    assert (worse["limit"], worse["outcome"], worse["reason"]) == ("bridge.tcp.throughput > 5%", "exceeded", "above")
    assert (worse["environment"], worse["workload"], worse["metric"]) == ("bridge", "tcp", "throughput")
    assert worse["cost_low"] < worse["cost"] < worse["cost_high"] and worse["cost_unit"] == "%"
    assert same["outcome"] == "kept" and same["blocks"] == 10
    analysis = analyse(run(costs={"bridge": 1.2}, blocks=0))
    (none,) = limits_json(analysis, answers(analysis, "bridge.tcp.throughput > 5%"))
    assert none["cost"] is None and none["outcome"] == "undecided" and none["blocks"] == 0
