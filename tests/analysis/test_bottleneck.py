"""A limit that both sides met hides a difference: never equivalent, in every output."""

import pytest

from report.made_up_runs import LATENCY, REQUESTS, TCP, THROUGHPUT, Workload
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.bottleneck import shared_limit
from weighbridge.analysis.remarks import Capped
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Metric

CABLE = Flag(FlagCode.CABLE, "host a", {"share": 0.99, "rate": 100e6})
ASKED = Flag(FlagCode.ASKED_RATE, figures={"share": 1.0, "rate": 10.0}, text="Mbit/s")
GENERATOR = Flag(FlagCode.GENERATOR, "client", {"share": 0.98})
CPUS = Flag(FlagCode.CPUS, "server", {"share": 0.99})
NONE = Flag(FlagCode.NO_BOTTLENECK)
ARMS = ("native", "bridge", "native-again")
CPU_COST = Metric("cpu_server_per_gbit", "s/Gbit", "lower")


def flags(flag: Flag, blocks: int = 10, arms: tuple[str, ...] = ARMS) -> dict[tuple[int, str], tuple[Flag, ...]]:
    return {(block, arm): (flag,) for block in range(1, blocks + 1) for arm in arms}


def verdicts(store) -> dict[str, str]:
    """The bridge's verdict by metric."""
    return {
        report.metric: row.verdict
        for report in analyse(store).metrics
        for row in report.comparisons
        if row.environment == "bridge"
    }


def test_more_than_half_of_both_sides_have_to_have_met_it():
    six, five = [CABLE] * 6 + [NONE] * 4, [CABLE] * 5 + [NONE] * 5
    found = shared_limit(six, six, "ms")
    assert found is not None and (found.kind, found.share, found.rate, found.unit) == ("cable", 0.99, 100e6, "bit/s")
    assert (found.trials, found.total) == (12, 20)
    assert shared_limit(six, five, "ms") is None and shared_limit(five, six, "ms") is None
    assert shared_limit([], six, "ms") is None and shared_limit([None] * 3, [None] * 3, "ms") is None


def test_only_the_same_limit_on_both_sides_hides_a_difference():
    assert shared_limit([CABLE] * 10, [GENERATOR] * 9 + [CABLE], "requests/s") is None
    half = [CABLE, GENERATOR] * 5
    assert shared_limit(half, half, "requests/s") is None
    most = [CABLE] * 6 + [GENERATOR] * 4
    found = shared_limit(most, [CABLE] * 10, "requests/s")
    assert found is not None and (found.code, found.trials, found.total) == (CABLE.code, 16, 20)


def test_two_limits_are_each_said_beside_the_cost(run):
    held = flags(CABLE, arms=("native", "native-again")) | flags(GENERATOR, arms=("bridge",))
    (row,) = [each for each in analyse(run(costs={"bridge": 1.0}, flags=held)).metrics[0].comparisons if not each.aa]
    assert (row.verdict, row.hidden) == ("equivalent", None)
    capped = [each for each in row.remarks if isinstance(each, Capped)]
    assert [(each.environment, each.limit) for each in capped] == [
        ("native", CABLE.code),
        ("bridge", GENERATOR.code),
    ]


@pytest.mark.parametrize("unit", ["Mbit/s", "ms", "%", "count"])
def test_what_shows_a_cost_hides_none(unit: str):
    for code in (FlagCode.CPUS, FlagCode.CPU_QUOTA, FlagCode.DISK, FlagCode.NO_BOTTLENECK):
        assert shared_limit([Flag(code)] * 10, [Flag(code)] * 10, unit) is None


def test_a_rate_that_was_asked_for_hides_rates_only():
    assert shared_limit([ASKED] * 10, [ASKED] * 10, "requests/s") is not None
    for unit in ("ms", "us", "%", "count"):
        assert shared_limit([ASKED] * 10, [ASKED] * 10, unit) is None


@pytest.mark.parametrize("flag", [CABLE, GENERATOR])
def test_what_would_be_equivalent_is_hidden(run, flag: Flag):
    assert verdicts(run(costs={"bridge": 1.0}))["throughput"] == "equivalent"
    assert verdicts(run(costs={"bridge": 1.0}, flags=flags(flag))) == {
        "throughput": "hidden",
        "p99 latency": "hidden",
    }
    one_side = flags(flag, arms=("native", "native-again"))
    assert verdicts(run(costs={"bridge": 1.0}, flags=one_side))["throughput"] == "equivalent"
    assert verdicts(run(costs={"bridge": 1.0}, flags=flags(CPUS)))["throughput"] == "equivalent"


def test_what_would_be_inconclusive_is_hidden_and_a_difference_stays_one(run):
    assert set(verdicts(run(costs={"bridge": 1.0}, blocks=2, flags=flags(CABLE, 2))).values()) == {"hidden"}
    assert verdicts(run(costs={"bridge": 1.25}, flags=flags(CABLE)))["throughput"] == "different"


@pytest.mark.parametrize("held", ["native", "bridge"])
def test_a_limit_that_one_side_alone_met_is_said_beside_its_cost(run, held: str):
    metered = Workload("tcp", [*TCP.metrics, (CPU_COST, 0.5, 0.001)])
    store = run(costs={"bridge": 1.25}, workloads=[metered], flags=flags(CABLE, arms=(held,)))
    told = {
        (report.metric, row.environment): [each for each in row.remarks if each.code == "capped"]
        for report in analyse(store).metrics
        for row in report.comparisons
    }
    assert told["throughput", "bridge"] == [Capped(held, FlagCode.CABLE, 10, 10, of_baseline=held == "native")]
    assert told["cpu_server_per_gbit", "bridge"] == []
    both = analyse(run(costs={"bridge": 1.25}, flags=flags(CABLE))).metrics[0].comparisons
    assert not [each for row in both if row.environment == "bridge" for each in row.remarks if each.code == "capped"]


def test_an_asked_rate_leaves_latency_alone(run):
    web = Workload("web", [(REQUESTS, 500.0, 0.001), (LATENCY, 0.4, 0.001)])
    found = verdicts(run(costs={"bridge": 1.0}, workloads=[web], flags=flags(ASKED)))
    assert found == {"requests": "hidden", "p99 latency": "equivalent"}


def test_resource_use_is_never_hidden(run):
    metered = Workload("tcp", [*TCP.metrics, (CPU_COST, 0.5, 0.001)])
    found = verdicts(run(costs={"bridge": 1.0}, workloads=[metered], flags=flags(CABLE)))
    assert found["throughput"] == "hidden" and found["cpu_server_per_gbit"] == "equivalent"


def test_noise_is_not_seen_behind_a_limit(run):
    free = Workload("free", [(LATENCY, 1.0, 0.05)])
    both = [free, Workload("full", [(THROUGHPUT, 95e6, 1e-6)])]
    store = run(costs={"bridge": 1.0}, workloads=both, flags=flags(CABLE))
    assert analyse(store).trust.noise_floor is None and analyse(store).trust.visible_shift is None
    assert analyse(run(costs={"bridge": 1.0}, workloads=both)).trust.noise_floor is not None
