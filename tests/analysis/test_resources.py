import pytest

from report.made_up_runs import REQUESTS, TCP, THROUGHPUT, Workload
from sentences import raises_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.comparisons import comparison, values_by_metric
from weighbridge.analysis.judgement import Family, family_of
from weighbridge.analysis.latency import PERCENTS
from weighbridge.analysis.plan import plan_of
from weighbridge.analysis.remarks.confounders import confounders
from weighbridge.analysis.remarks.network import Fragments
from weighbridge.analysis.resources import negligible
from weighbridge.errors import RunDirectoryError
from weighbridge.model.facts import Interface, NetworkPath
from weighbridge.model.measurement import Metric, is_resource_use
from weighbridge.statistics import merge_histograms, percentile
from weighbridge.statistics.verdicts import adjusted

NATIVE = {"native": "native"}
CPU = Metric("cpu_client_per_gbit", "s/Gbit", "lower")
MEMORY = Metric("memory_server_beyond_baseline", "MiB", "lower")
METERED = Workload("tcp", [(CPU, 0.4, 0.02), *TCP.metrics, (MEMORY, 3.0, 0.1)])


@pytest.mark.parametrize(
    "name",
    ["cpu_all_per_gbit", "context_switches_per_1000_transactions", "tcp_retransmits_per_gbit", "softirq_share",
     "cpu_client_per_gbit", "cpu_server_per_1000_transactions", "cpu_client_per_1000_objects",
     "memory_client_beyond_baseline", "cpu_usage", "memory_usage"],
)  # fmt: skip
def test_resource_use_is_told_by_its_name(name):
    assert is_resource_use(name)


@pytest.mark.parametrize(
    "name", ["throughput", "sender_cpu", "memory_bandwidth", "cpus", "latency_p99", "cpu_events", "retransmits"]
)
def test_what_workloads_measure_is_not_resource_use(name):
    assert not is_resource_use(name)


def test_headlines_further_metrics_and_resource_use_are_families_of_their_own(run):
    noisy = [(REQUESTS, 1000.0, 0.02)]
    further = [(Metric(f"latency_p{n}", "ms", "lower"), 1.0, 0.02) for n in range(5)]
    many = [(Metric(f"cpu_client_per_{n}", "s", "lower"), 1.0, 0.02) for n in range(20)]
    both = [Workload("w", [*noisy, *further, *many]), Workload("v", [*noisy, *further])]
    store = run(costs={"a": 1.02, "b": 1.0}, workloads=both)
    values, plan, analysis = values_by_metric(store.values()), plan_of(store), analyse(store)
    for family, size in {Family.HEADLINES: 4, Family.FURTHER: 20, Family.RESOURCE_USE: 40}.items():
        reports = [each for each in analysis.metrics if family_of(each) is family]
        keys = [each.metric_id for each in reports]
        raw = [comparison(values[key], plan, arm, "native")[1] for key in keys for arm in ("a", "b")]
        got = [row.adjusted_p for each in reports for row in each.comparisons if not row.aa]
        assert len(got) == size and got == pytest.approx(adjusted(raw))


ALL = Metric("cpu_all_per_gbit", "s/Gbit", "lower")


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"host": {"interrupt time": "accounted apart"}}, True),
        ({"host": {"interrupt time": "unknown"}}, True),
        ({"host": {"interrupt time": "charged to the interrupted task"}}, False),
        ({"host": {"interrupt time": "charged to the interrupted task"},
          "host b": {"interrupt time": "accounted apart"}}, True),
        ({"host": {"kernel": "of an older run"}, "idle": {"interrupt time": "accounted apart"}}, False),
    ],
)  # fmt: skip
def test_a_sites_own_cpu_time_may_leave_out_the_network_stack(run, facts, told):
    workload = Workload("tcp", [*TCP.metrics, (ALL, 0.9, 0.02), (CPU, 0.4, 0.02), (MEMORY, 3.0, 0.1)])
    analysis = analyse(run(costs={"bridge": 1.25}, workloads=[workload], facts=facts))
    with_remark = {
        report.metric
        for report in analysis.metrics
        if any(remark.code == "interrupt-time" for row in report.comparisons for remark in row.remarks)
    }
    assert with_remark == ({CPU.name} if told else set())


def test_it_comes_last_and_is_never_the_headline(run):
    analysis = analyse(run(costs={"bridge": 1.25}, workloads=[METERED]))
    assert [m.metric for m in analysis.metrics] == [
        "throughput", "p99 latency", "cpu_client_per_gbit", "memory_server_beyond_baseline"
    ]  # fmt: skip
    assert [m.headline for m in analysis.metrics] == [True, False, False, False]
    assert analysis.metrics[3].comparisons[0].cost.scale == "difference"
    assert analysis.metrics[2].comparisons[0].verdict == "different"


@pytest.mark.parametrize(("factor", "verdict"), [(1.0002, "inconclusive"), (1.02, "different")])
@pytest.mark.parametrize("name", ["memory_usage", "memory_server_beyond_baseline"])
def test_less_than_one_mebibyte_is_no_difference(run, name, factor, verdict):
    memory = Workload("w", [(Metric(name, "MiB", "lower"), 116.0, 1e-5)])
    analysis = analyse(run(costs={"host": factor}, workloads=[memory]))
    row = next(each for each in analysis.metrics[0].comparisons if each.environment == "host")
    assert row.cost.low > 0 and row.verdict == verdict


@pytest.mark.parametrize(("factor", "trusted"), [(1.0002, True), (1.02, False)])
def test_nor_does_it_make_a_session_untrusted(run, factor, trusted):
    memory = Workload("w", [(Metric("memory_usage", "MiB", "lower"), 116.0, 1e-5)])
    assert analyse(run(costs={}, workloads=[memory], aa_factor=factor)).trust.trusted is trusted


def test_only_memory_has_such_a_margin():
    assert negligible("memory_usage", -0.9) and not negligible("memory_usage", 1.0)
    assert not negligible("cpu_usage", 0.01) and not negligible("memory_bandwidth", 0.01)


def test_a_bad_aa_arm_in_resource_use_alone_is_seen(run):
    store = run(costs={}, workloads=[Workload("w", [(CPU, 1.0, 0.001)])], aa_factor=1.2)
    assert analyse(store).trust.trusted is False


# -- packet sizes and hosts ------------------------------------------------------------------------


def test_other_packet_sizes_are_said_beside_the_comparison(run):
    sizes = {"native/tcp": "1468 B", "host/tcp": "1468 B (probed)", "overlay/tcp": "1418 B"}
    analysis = analyse(run(costs={"host": 1.0, "overlay": 1.3}, facts={"packet sizes": sizes}))
    for report in analysis.metrics:
        told = {
            row.environment: [r.code for r in row.remarks if r.code == "packet-size"] for row in report.comparisons
        }
        assert told == {
            "host": [], "native-again": [], "overlay": ["packet-size"]
        }  # fmt: skip


def test_datagrams_that_only_one_path_carries_whole_are_said_beside_the_comparison(run):
    def path(mtu: int) -> str:
        port = Interface(place="server", name="eth0", kind="veth", mtu=mtu)
        return NetworkPath(transport="udp", interfaces=(port,)).model_dump_json()

    sizes = {f"{name}/tcp": f"{size} B" for name, size in (("native", 1468), ("overlay", 1468), ("less", 1418))}
    mtus = {"native": 1500, "overlay": 1450, "less": 1446}
    facts = {"packet sizes": sizes, "path": {f"{name}@here": path(mtu) for name, mtu in mtus.items()}}
    for report in analyse(run(costs={"overlay": 1.3, "less": 1.1}, facts=facts)).metrics:
        told = {row.environment: [r for r in row.remarks if r.code == "fragments"] for row in report.comparisons}
        assert told["overlay"] == [Fragments("overlay", 1468, 1422)]
        assert told["less"] == [] == told["native-again"]


def test_hosts_and_what_differs_between_them(run):
    facts = {
        "host a": {"kind": "testbed: on this machine", "kernel": "6.1"},
        "host b": {"kind": "testbed: on this machine", "kernel": "6.6", "note": "x"},
        "host differences": {"clock": "the clock of b is 3.2 ms ahead of that of a", "kernel": "6.1 on a, 6.6 on b"},
    }
    analysis = analyse(run(costs={"host": 1.0}, facts=facts))
    assert len(analysis.confounders) == 2
    assert not [r for m in analysis.metrics for row in m.comparisons for r in row.remarks if r.code == "confounder"]


def test_the_latest_difference_counts():
    facts = [("host differences", "clock", "1 ms", 1.0), ("host differences", "clock", "2 ms", 2.0)]
    assert confounders(facts, NATIVE) == confounders(facts[1:], NATIVE) != ()


# -- merged percentiles ----------------------------------------------------------------------------


def test_percentiles_are_those_of_all_requests_and_never_averages(run):
    from weighbridge.statistics.histogram import Histogram

    store = run(costs={"bridge": 1.5}, histograms={"put_latency": 3e-4}, blocks=10)
    (report,) = analyse(store).latencies
    arms = {trial.id: trial.environment for trial in store.trials()}
    mine = [Histogram.decode(encoded) for trial, _, encoded in store.histograms() if arms[trial] == "bridge"]
    whole = merge_histograms(mine)
    bridge = next(row for row in report.rows if row.environment == "bridge")
    assert bridge.percentiles == tuple(1e-9 * percentile(whole, percent) for percent in PERCENTS)
    assert bridge.runs == 10 and bridge.requests == 20_000
    median = bridge.costs[0].percent
    assert median.low < 50 < median.high and bridge.costs[3] is None  # 2 of 2000 requests beyond p99.9
    assert report.rows[0].environment == "native" and report.rows[0].costs == (None,) * 4
    values = [seconds for _, seconds in bridge.curve]
    assert values == sorted(values) and bridge.curve[-1][0] < 100


def test_a_histogram_that_cannot_be_read_is_one_sentence(run, monkeypatch):
    store = run(costs={"bridge": 1.5}, blocks=1)
    for broken in ("", "garbage", "HISTFAAAACF4nJNpmSzMwMDAxAABzFCaEUzOmNZg"):
        monkeypatch.setattr(store, "histograms", lambda broken=broken: [(1, "put_latency", broken)])
        with raises_sentence(RunDirectoryError):
            analyse(store)


def test_throughput_has_no_percentiles(run):
    assert analyse(run(costs={}, workloads=[Workload("w", [(THROUGHPUT, 1e9, 0.01)])])).latencies == ()
