"""Requirements as they are written, the comparisons that they are about, and one sentence for what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.made_up_runs import LOSS, REQUESTS, TCP, THROUGHPUT, Recipe, Workload, make_run
from sentences import raises_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.requirement import (
    BUDGET,
    LIMIT,
    MARGIN,
    RequirementError,
    bound_in_unit,
    parse_requirement,
    targets,
)
from weighbridge.model.measurement import Metric, Outcome

UDP = Workload("udp", [(LOSS, 4.0, 0.02), (THROUGHPUT, 1e9, 0.01)])
REDIS = [f"redis[clients={each},depth=1.5].requests" for each in ("10", "50")]


def levels(*clients):
    return [Workload("redis", [(REQUESTS, 5e4, 0.01)], (("clients", each), ("depth", "1.5"))) for each in clients]


@pytest.fixture(scope="module")
def analysis(tmp_path_factory):
    recipe = Recipe(costs={"bridge": 1.25, "host": 1.0}, workloads=[TCP, UDP, *levels("10", "50")], blocks=6)
    with make_run(tmp_path_factory.mktemp("required") / "run", recipe) as store:
        yield analyse(store)


def found(analysis, text):
    """The comparisons of a limit, where it is one, else of a budget."""
    return targets(parse_requirement(text, LIMIT if ">" in text else BUDGET), analysis)


def named(analysis, text):
    return {target.name for target in found(analysis, text)}


def refused(analysis, text):
    with pytest.raises(RequirementError) as caught:
        for target in found(analysis, text):
            bound_in_unit(parse_requirement(text, LIMIT), target.report)
    assert text in str(caught.value) and len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_what_a_pattern_of_a_budget_means(analysis):
    assert named(analysis, "bridge.tcp.throughput<=35%") == {"bridge.tcp.throughput"}
    assert named(analysis, "bridge.redis.requests<=35%") == {f"bridge.{each}" for each in REDIS}
    assert named(analysis, "*.throughput < 35%") == {
        f"{name}.{workload}.throughput" for name in ("bridge", "host") for workload in ("tcp", "udp")
    }
    assert named(analysis, "*.redis[clients=10].requests<=1%") == {
        f"{name}.{REDIS[0]}" for name in ("bridge", "host")
    }
    assert named(analysis, "*.redis[clients=50, depth=1.5].*<=1%") == {
        f"{name}.{REDIS[1]}" for name in ("bridge", "host")
    }
    assert named(analysis, "host.*.requests<=1%") == {f"host.{each}" for each in REDIS}
    assert named(analysis, "*.p99*<=1%") == {"bridge.tcp.p99 latency", "host.tcp.p99 latency"}
    assert named(analysis, "br*.t*.thr*<=1%") == {"bridge.tcp.throughput"}


def test_what_the_names_of_a_limit_mean(analysis):
    assert named(analysis, "bridge.redis[clients=50].requests > 1%") == {f"bridge.{REDIS[1]}"}
    assert named(analysis, "bridge.redis[depth=1.5, clients=50].requests > 1%") == {f"bridge.{REDIS[1]}"}
    assert named(analysis, "bridge.redis.requests > 1%") == {f"bridge.{each}" for each in REDIS}
    assert named(analysis, "*.redis[clients=10].requests > 1%") == {
        f"{name}.{REDIS[0]}" for name in ("bridge", "host")
    }
    assert named(analysis, "bridge.*.requests > 1%") == {f"bridge.{each}" for each in REDIS}
    assert named(analysis, f"bridge.{REDIS[0]} > 1%") == {f"bridge.{REDIS[0]}"}


def test_an_environment_that_is_not_measured_on_a_workload_is_in_no_wildcard(run):
    store = run(costs={"bridge": 1.25, "host": 1.0}, workloads=[*levels("10"), TCP], absent={("tcp", "host")})
    analysis = analyse(store)
    assert named(analysis, "*.*.throughput > 1%") == {"bridge.tcp.throughput"}
    for text in ("host.tcp.throughput > 1%", "host.*.throughput > 1%"):
        (target,) = found(analysis, text)
        assert (target.environment, target.metric) == ("host", "throughput") and not (target.row and target.row.cost)


def test_a_pattern_means_the_metrics_whose_costs_are_in_its_unit(analysis):
    assert "bridge.udp.loss" not in named(analysis, "bridge.*<=10%")
    assert named(analysis, "bridge.*<=10points") == {"bridge.udp.loss"}
    with raises_sentence(RequirementError):
        named(analysis, "*.loss<=10%")


@pytest.mark.parametrize("every", ["*<=10%", "*.tcp.throughput > 10%"])
def test_no_pattern_means_the_aa_arm_unless_it_is_named(analysis, every):
    assert {target.environment for target in found(analysis, every)} == {"bridge", "host"}
    assert named(analysis, "native-again.*.throughput<=10%") == {
        "native-again.tcp.throughput", "native-again.udp.throughput",
    }  # fmt: skip
    assert named(analysis, "native-again.tcp.throughput > 10%") == {"native-again.tcp.throughput"}


def test_a_workload_without_any_measurement_is_not_passed_over(run):
    failing = {(block, name): Outcome.DEADLINE for block in (1, 2) for name in ("native", "bridge", "native-again")}
    none = analyse(run(costs={"bridge": 1.2}, blocks=2, failing=failing))
    (target,) = found(none, "*.throughput<=35%")
    assert (target.name, target.report, target.arm) == ("bridge.tcp.throughput", None, None)


def test_names_with_dots(run):
    analysis = analyse(run(costs={"v1.2": 1.25, "v1": 1.0}, workloads=[Workload("tcp.a", [(REQUESTS, 1e4, 0.01)])]))
    (target,) = found(analysis, "v1.2.tcp.a.requests > 5%")
    assert (target.environment, target.label) == ("v1.2", "tcp.a")
    twice = [Workload(name, [(REQUESTS, 1e4, 0.01)]) for name in ("tcp", "2.tcp")]
    analysis = analyse(run(costs={"v1.2": 1.25, "v1": 1.0}, workloads=twice))
    assert "is ambiguous" in refused(analysis, "v1.2.tcp.requests > 5%")


def test_a_bound_is_read_in_any_unit_of_the_kind_of_the_cost(run):
    metrics = [(Metric("memory_usage", "MiB", "lower"), 64.0, 0.01), (Metric("lost", "count", "lower"), 100.0, 0.02),
               (LOSS, 4.0, 0.02), (Metric("memory", "MiB", "lower"), 64.0, 0.01)]  # fmt: skip
    analysis = analyse(run(costs={"bridge": 3.0}, workloads=[Workload("udp", metrics)]))

    def bound(text):
        (target,) = found(analysis, f"bridge.udp.{text}")
        return bound_in_unit(parse_requirement(f"bridge.udp.{text}", LIMIT), target.report)

    assert bound("memory_usage > 100MiB") == 100 and bound("memory_usage > 1GiB") == 1024
    assert bound("memory_usage > 1GB") == pytest.approx(1e9 / 2**20)
    assert bound("lost > 50") == bound("lost > 50count") == 50
    assert bound("loss > 5points") == bound("loss > 5 points") == 5
    assert "points" in refused(analysis, "bridge.udp.loss > 5%")
    assert bound("memory > 5MiB") == bound("memory > 5%") == 5, "of a difference, and of a ratio"
    assert "in % or MiB" in refused(analysis, "bridge.udp.memory > 5ms")
    assert "without a unit" in refused(analysis, "bridge.udp.memory > 5")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("*.p99<=10%", "Did you mean '*.p99 latency<=10%'?"),
        ("*.trougput<=10%", "Did you mean '*.throughput<=10%'?"),
        ("brigde.*<=10%", "Did you mean 'bridge.*<=10%'?"),
        ("brigde.*.troughput<=10%", "Did you mean 'bridge.*.throughput<=10%'?"),
        ("*.tpc.throughput<=10%", "Did you mean '*.tcp.throughput<=10%'?"),
        ("brigde.tcp.throughput<=10%", "Did you mean 'bridge'?"),
        ("*zzz*<=10%", "known: bridge.tcp.throughput"),
        ("brigde.tcp.throughput > 5%", "Did you mean 'bridge'?"),
        ("bridge.tpc.throughput > 5%", "Did you mean 'tcp'?"),
        ("bridge.tcp.troughput > 5%", "Did you mean 'throughput'?"),
        ("*.*.troughput > 5%", "Did you mean 'throughput'?"),
        ("zzz.tcp.throughput > 5%", "known: bridge, host"),
        ("native.tcp.throughput > 5%", "'native' is the baseline"),
        ("bridge.tcp.throughput > 5", "like '> 5%'"),
        ("bridge.tcp.throughput > 5ms", "like '> 5%'"),
        ("bridge.redis[clients=60].requests > 1%", "Did you mean 'redis[clients="),
    ],
)
def test_what_the_run_does_not_have_is_told_with_the_nearest_that_it_has(analysis, text, says):
    assert says in refused(analysis, text)


NO_EXPRESSION = ["", "35%", "bridge.tcp.throughput", "bridge.tcp{}35%", "bridge..x{}5%", ".tcp.throughput{}5%",
                 "{}5%", "bridge.tcp.throughput{}five", "bridge.tcp.throughput{}1e999%", "*.*.x{}{}5%",
                 "*.*.x=5%", "*.*.x{}5% or so"]  # fmt: skip


@pytest.mark.parametrize(
    ("spelling", "text"),
    [
        *((BUDGET, text.replace("{}", "<=")) for text in (*NO_EXPRESSION, "bridge.tcp.throughput>35%")),
        *((LIMIT, text.replace("{}", ">")) for text in (*NO_EXPRESSION, "bridge.tcp.throughput < 5%", "*.x > 5%")),
        *((MARGIN, text) for text in ("", "3", "-3%", "three%", "3ms", "3%%", "nan%", "9" * 400 + "%", "٣%")),
    ],
)
def test_what_is_no_requirement_is_told_with_how_one_is_written(spelling, text):
    with pytest.raises(RequirementError) as caught:
        parse_requirement(text, spelling)
    assert str(caught.value) == f"'{text}' is not a {spelling.word}: write {spelling.form}"
    assert len(spelling.form.splitlines()) == 1 and "%'" in spelling.form


def test_a_limit_is_a_budget_written_from_its_other_side():
    bounds = {text: parse_requirement(text, LIMIT if ">" in text else BUDGET) for text in
              ("a.b.c<=5%", "a.b.c > 5%", "a.b.c<5%", "a.b.c >= 5%")}  # fmt: skip
    assert [(each.names, each.bound, each.unit, each.operand) for each in bounds.values()] == [
        (("a", "b", "c"), 5.0, "%", "cost")
    ] * 4
    assert [each.strict for each in bounds.values()] == [False, False, True, True]


def test_a_margin_is_a_bound_of_changes():
    margin = parse_requirement(" 3.5% ", MARGIN)
    assert (margin.text, margin.operand, margin.strict, margin.bound) == ("change<=3.5%", "change", False, 3.5)
    assert parse_requirement("3%", MARGIN).bound == parse_requirement(" 3.0% ", MARGIN).bound == 3.0


@given(st.text(max_size=40), st.sampled_from([BUDGET, LIMIT, MARGIN]))
def test_whatever_is_written_is_a_requirement_or_one_sentence(text, spelling):
    try:
        assert parse_requirement(text, spelling).text
    except RequirementError as error:
        assert f"is not a {spelling.word}" in str(error)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    with make_run(tmp_path_factory.mktemp("gate") / "run", Recipe(costs={"bridge": 1.25}, blocks=1)) as store:
        yield analyse(store)


@given(
    pattern=st.text(alphabet="bridgetcp.*[]=,x", min_size=1, max_size=30), spelling=st.sampled_from([BUDGET, LIMIT])
)
def test_whatever_is_matched_is_right_or_told_with_what_there_is(small, pattern, spelling):
    try:
        requirement = parse_requirement(f"{pattern}{next(iter(spelling.strict))}5%", spelling)
    except RequirementError:
        return
    try:
        matches = targets(requirement, small)
    except RequirementError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert matches and all(target.environment in ("bridge", "*") for target in matches)
