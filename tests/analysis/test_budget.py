"""Budgets as they are written, what they match, and the nearest right spelling of what matches nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.made_up_runs import LOSS, REQUESTS, TCP, THROUGHPUT, Workload
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.budget import budget_targets, parse_budget, parse_margin
from weighbridge.analysis.limit import LimitError

UDP = Workload("udp", [(LOSS, 4.0, 0.02), (THROUGHPUT, 1e9, 0.01)])


def levels(*clients):
    return [Workload("redis", [(REQUESTS, 5e4, 0.01)], (("clients", each), ("depth", "1.5"))) for each in clients]


@pytest.fixture
def analysis(run):
    return analyse(run(costs={"bridge": 1.25, "host": 1.0}, workloads=[TCP, UDP, *levels("10", "50")], blocks=6))


def named(analysis, text):
    return {target.name for target in budget_targets(parse_budget(text), analysis)}


def test_what_a_pattern_means(analysis):
    redis = [f"redis[clients={each},depth=1.5].requests" for each in ("10", "50")]
    assert named(analysis, "bridge.tcp.throughput<=35%") == {"bridge.tcp.throughput"}
    assert named(analysis, "bridge.redis.requests<=35%") == {f"bridge.{each}" for each in redis}
    assert named(analysis, "*.throughput < 35%") == {
        f"{name}.{workload}.throughput" for name in ("bridge", "host") for workload in ("tcp", "udp")
    }
    assert named(analysis, "*.redis[clients=10].requests<=1%") == {
        f"{name}.{redis[0]}" for name in ("bridge", "host")
    }
    assert named(analysis, "*.redis[clients=50, depth=1.5].*<=1%") == {
        f"{name}.{redis[1]}" for name in ("bridge", "host")
    }
    assert named(analysis, "host.*.requests<=1%") == {f"host.{each}" for each in redis}
    assert named(analysis, "*.p99*<=1%") == {"bridge.tcp.p99 latency", "host.tcp.p99 latency"}
    assert named(analysis, "br*.t*.thr*<=1%") == {"bridge.tcp.throughput"}


def test_a_pattern_means_the_metrics_whose_costs_are_in_its_unit(analysis):
    assert "bridge.udp.loss" not in named(analysis, "bridge.*<=10%")
    assert named(analysis, "bridge.*<=10points") == {"bridge.udp.loss"}
    with pytest.raises(LimitError, match="is in points, like '<= 10points'"):
        named(analysis, "*.loss<=10%")


def test_no_pattern_means_the_aa_arm_unless_it_is_named(analysis):
    assert not [name for name in named(analysis, "*<=10%") if name.startswith("native")]
    assert named(analysis, "native-again.*.throughput<=10%") == {
        "native-again.tcp.throughput", "native-again.udp.throughput",
    }  # fmt: skip


def test_a_workload_without_any_measurement_is_not_passed_over(run):
    from weighbridge.model.measurement import Outcome

    failing = {(block, name): Outcome.DEADLINE for block in (1, 2) for name in ("native", "bridge", "native-again")}
    none = analyse(run(costs={"bridge": 1.2}, blocks=2, failing=failing))
    (target,) = budget_targets(parse_budget("*.throughput<=35%"), none)
    assert (target.name, target.report) == ("bridge.tcp.throughput", None)


@pytest.mark.parametrize(
    ("budget", "meant"),
    [
        ("*.p99<=10%", "did you mean '*.p99 latency<=10%'?"),
        ("*.trougput<=10%", "did you mean '*.throughput<=10%'?"),
        ("brigde.*<=10%", "did you mean 'bridge.*<=10%'?"),
        ("brigde.*.troughput<=10%", "did you mean 'bridge.*.throughput<=10%'?"),
        ("*.tpc.throughput<=10%", "did you mean '*.tcp.throughput<=10%'?"),
        ("brigde.tcp.throughput<=10%", "did you mean 'bridge'?"),
        ("*zzz*<=10%", "there are: bridge.tcp.throughput"),
    ],
)
def test_the_nearest_right_spelling(analysis, budget, meant):
    with pytest.raises(LimitError) as caught:
        named(analysis, budget)
    assert meant in str(caught.value) and budget in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    ["", "35%", "bridge.tcp<=35%", "bridge.tcp.throughput", "bridge.tcp.throughput>35%", "bridge..x<=5%", "<=5%",
     "bridge.tcp.throughput<=five", "bridge.tcp.throughput<=1e999%", "*.x<<5%", "*.x=5%", "*.x<=5% or so"],
)  # fmt: skip
def test_what_is_no_budget(text):
    with pytest.raises(LimitError) as caught:
        parse_budget(text)
    assert "bridge.tcp.throughput<=35%" in str(caught.value) and len(str(caught.value).splitlines()) == 1


def test_what_a_budget_may_be_is_what_a_limit_must_not():
    assert (parse_budget("*.x<=5%").operator, parse_budget("*.x<5%").operator) == (">", ">=")
    assert parse_margin(" 3.5 % ").text == "change<=3.5%"
    assert parse_margin("3%").amount == parse_margin(" 3.0 % ").amount == 3.0


@pytest.mark.parametrize("text", ["", "3", "-3%", "three%", "3ms", "3%%", "nan%", "9" * 400 + "%", "٣%"])
def test_what_is_no_margin(text):
    with pytest.raises(LimitError, match="is no margin"):
        parse_margin(text)


@given(st.text(max_size=40))
def test_whatever_is_written_is_a_budget_or_one_sentence(text):
    try:
        assert parse_budget(text).names
    except LimitError as error:
        assert "is no budget" in str(error)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    from report.made_up_runs import Recipe, make_run

    with make_run(tmp_path_factory.mktemp("gate") / "run", Recipe(costs={"bridge": 1.25}, blocks=1)) as store:
        yield analyse(store)


@given(pattern=st.text(alphabet="bridgetcp.*[]=,x", min_size=1, max_size=30))
def test_whatever_is_matched_is_right_or_told_with_what_there_is(small, pattern):
    try:
        limit = parse_budget(f"{pattern}<=5%")
    except LimitError:
        return
    try:
        found = budget_targets(limit, small)
    except LimitError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert found and all(target.environment == "bridge" for target in found)
