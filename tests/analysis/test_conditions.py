"""Under which conditions a run was measured, what differs besides the isolation, and what is said of it."""

import json
from dataclasses import replace

import pytest

from report.made_up_runs import LATENCY, TCP, Workload
from usual_options import usual_options
from weighbridge import registry
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.conditions import Calibration, calibration_of, power_cuts
from weighbridge.analysis.readings import ReadingRate
from weighbridge.analysis.remarks.confounders import OwnOptions, confounders
from weighbridge.analysis.remarks.meters import FewReadings, few_readings
from weighbridge.analysis.remarks.rules import on_top
from weighbridge.analysis.remarks.trials import FixedTime
from weighbridge.model.choices import Promise
from weighbridge.model.facts import HALT, IDLE_CPUS, POLL
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Metric
from weighbridge.model.power_cut import SCOPE, PowerCut, power_cut_facts
from weighbridge.model.stored_study import StoredFile
from weighbridge.store.run import RunStore
from weighbridge.store.study_text import file_of_text

COMPARED = {"native": "native", "overlay": "native"}
SIZES = {"native/udp": "1468 B", "overlay/udp": "1418 B", "native/rr": "1468 B", "overlay/rr": "1468 B (probed)"}


def sizes(found=None):
    return [("packet sizes", key, value, 0.0) for key, value in (found or SIZES).items()]


@pytest.mark.parametrize(
    ("seconds", "spread", "options", "told"),
    [
        (10.0, 0.004, {"kind": "command", "run": "sysbench cpu run"}, True),
        (9.7, 0.004, {"kind": "command", "run": "sysbench cpu run"}, True),
        (9.7, 0.006, {"kind": "command", "run": "sysbench cpu run"}, False),
        (10.0, 0.02, {"kind": "command", "run": "sysbench cpu --time=10 run"}, True),
        (10.0, 0.05, {"kind": "command", "run": "sysbench cpu --time=10 run"}, False),
        (0.4, 0.0, {"kind": "command", "run": "sleep 0.4"}, False),
        (10.0, 0.0, {"kind": "command", "run": "sysbench cpu run", "metrics": {"rate": {}}}, False),
        (10.0, 0.0, {"kind": "compress"}, False),
    ],
)
def test_a_program_that_runs_for_a_fixed_time_is_told(
    run, seconds: float, spread: float, options: dict[str, object], told: bool
):
    """ "Every cost is within ±3%" was said of sysbench's ten seconds, whatever they cost."""
    store = run(costs={"pod": 1.0}, workloads=[Workload("w", [(Metric("time", "s", "lower"), 10.0, 0.0)])])
    context = analyse(store).context
    trials = [each._replace(values={"time": seconds * (1 + spread * (each.order % 2))}) for each in context.trials]
    study = StoredFile(**{"workloads": {"w": options}})
    found = on_top.remarks(replace(context, trials=trials, study=study, results={}))
    assert [type(each) for each in found] == told * [FixedTime]


def test_options_of_its_own_are_a_confounder():
    text = """
environments:
  native: {kind: native}
  overlay: {kind: docker, workloads: {udp: {packet_size: 1418B}, web: {threads: 2}}}
"""
    own, size = confounders(sizes(), COMPARED, file_of_text(text))
    assert isinstance(own, OwnOptions) and size.code == "packet-size"
    weighed = file_of_text(f"study: weigh-gzip{text}")
    (only,) = confounders(sizes(), COMPARED, weighed)
    assert only.code == "packet-size", "the options of its own were given with --against"
    for broken in (
        "workloads: [",
        "workloads",
        "environments: 3 # workloads",
        "environments: {overlay: {workloads: 3}}",
    ):
        assert confounders([], COMPARED, file_of_text(broken)) == ()


def test_the_calibration_is_said_once_and_only_of_one_host():
    again = [("calibration", "smallest detectable cost, tcp", value, 0.0) for value in ("1%", "2%")]
    whole = Calibration("this-run", {"smallest detectable cost, tcp": "2%"})
    assert calibration_of(again) == whole
    for kind in ("testbed: on this machine", "ssh: user@b"):
        assert calibration_of([*again, ("host a", "kind", kind, 0.0)]).scope == "another-path"
        assert calibration_of([("host a", "kind", kind, 0.0)]) is None
    polled = ("host", IDLE_CPUS, POLL, 0.0)
    assert calibration_of([*again, polled]).scope == "halting-cpus" and calibration_of([polled]) is None
    assert calibration_of([*again, ("host", IDLE_CPUS, HALT, 0.0)]) == whole
    assert calibration_of([*again, ("host", "kind", "x", 0.0)]) == whole


def test_too_few_readings_say_what_to_change():
    def advised(hz, seconds):
        return few_readings(ReadingRate(hz, {1: seconds}), [1])

    assert advised(1.0, 5.0) is None and few_readings(ReadingRate(1.0, {}), []) is None
    assert [advised(hz, s) for hz, s in ((1.0, 2.0), (10.0, 0.2), (1.0, 0.0))] == [
        FewReadings(1.0, 2, 3), FewReadings(10.0, 2, None), FewReadings(1.0, 0, None)
    ]  # fmt: skip


def test_short_trials_are_remarked_on_host_wide_metrics(run):
    metered = Workload("tcp", [*TCP.metrics, (Metric("cpu_usage", "%", "lower"), 40.0, 0.1)])
    store = run(costs={"bridge": 1.2}, workloads=[metered], series=True, blocks=2)
    coded = {
        m.metric for m in analyse(store).metrics for row in m.comparisons for r in row.remarks if r.code == "readings"
    }
    assert coded == {"cpu_usage"}


def test_host_wide_metrics_are_compared_by_difference_alone(run):
    metrics = [
        (Metric(name, "MiB", "lower"), 40.0, 0.1) for name in ("memory_usage", "memory_client_beyond_baseline")
    ]
    metrics += [(Metric("cpu_usage", "%", "lower"), 40.0, 0.1)]
    analysis = analyse(run(costs={"bridge": 1.2, "host": 1.0}, workloads=[Workload("tcp", [*TCP.metrics, *metrics])]))
    used = [m for m in analysis.metrics if m.resource_use]
    assert len(used) == 3 and {row.cost.scale for m in used for row in m.comparisons} == {"difference"}


def test_the_same_twice_proves_no_equivalence(run):
    """A clock of 1 us reads 9 us twice on both sides."""
    verdicts = {}
    for blocks in (2, 5, 6):
        same = Workload("rr", [(LATENCY, 1.0, 0.0)])
        (row,) = [
            r
            for r in analyse(run(costs={"b": 1.0}, workloads=[same], blocks=blocks)).metrics[0].comparisons
            if not r.aa
        ]
        assert row.cost.low == row.cost.high or row.cost.high - row.cost.low < 1e-9
        verdicts[blocks] = (row.verdict, "identical" in {r.code for r in row.remarks})
    assert verdicts[2] == verdicts[5] == ("inconclusive", True) and verdicts[6] == ("equivalent", False)


# -- durability ------------------------------------------------------------------------------------


@pytest.fixture
def keeping(run):
    """The analysis of a run with two equal environments that keep what they are given like this."""

    def made(native: str, host: str):
        places = {"native/tcp": native, "native-again/tcp": native, "host/tcp": host}
        facts = {"durability": {place: kind for place, kind in places.items() if kind}}
        return analyse(run(costs={"host": 1.0}, facts=facts))

    return made


@pytest.mark.parametrize("kind", ["synchronous", "asynchronous", "none", ""])
def test_two_that_keep_alike_are_equivalent_and_labelled(keeping, kind: str):
    analysis = keeping(kind, kind)
    row = analysis.metrics[0].comparisons[0]
    assert row.verdict == "equivalent" and not any(remark.code == "durability" for remark in row.remarks)
    assert set(analysis.durability) == ({"tcp"} if kind else set())


@pytest.mark.parametrize(
    ("native", "host"), [("synchronous", "asynchronous"), ("none", "asynchronous"), ("", "asynchronous")]
)
def test_two_that_do_not_keep_alike_are_never_equivalent(keeping, native: str, host: str):
    analysis = keeping(native, host)
    row, aa = analysis.metrics[0].comparisons
    assert row.cost.equivalent and row.verdict == "inconclusive"
    assert aa.verdict == "equivalent" and "durability" in {remark.code for remark in row.remarks}
    assert [remark.code for remark in analysis.confounders] == ["durability"]


def test_what_keeps_nothing_has_no_durability():
    kinds = {kind: each.durability(usual_options(each)) for kind, each in registry.workloads().items()}
    assert {kind: found for kind, found in kinds.items() if found} == {
        "bonnie": "asynchronous",
        "dd": "asynchronous",
        "fio": "asynchronous",
        "metadata": "asynchronous",
        "mysql-oltp": "synchronous",
        "pgbench": "synchronous",
        "redis-benchmark": "none",
        "sqlite": "synchronous",
        "sysbench-fileio": "asynchronous",
    }
    redis = registry.workloads()["redis-benchmark"]
    assert redis.durability(redis.options(appendonly="always")) == "synchronous"


def cut(promise: Promise, claimed: str, lost: int, torn: int = 0) -> PowerCut:
    first = 10 - lost if lost else None
    return PowerCut("host", promise, "volume", claimed, "lab", 10, 10 - lost, lost, first, torn, 0)  # type: ignore[arg-type]


def test_what_a_check_by_power_cut_found_is_in_the_analysis(run):
    checked = [cut(Promise.FSYNC, "synchronous", 3, torn=1), cut(Promise.WRITE, "synchronous", 10)]
    facts = {SCOPE: {**power_cut_facts(checked), "host/new": "{}"}}
    assert list(analyse(run(costs={"host": 1.0}, facts=facts)).power_cuts) == checked


def test_the_latest_check_of_a_promise_holds():
    facts = [
        (SCOPE, key, value, when)
        for when, lost in ((1.0, 3), (2.0, 0))
        for key, value in power_cut_facts([cut(Promise.FSYNC, "synchronous", lost)]).items()
    ]
    assert [each.lost for each in power_cuts(facts, ["host"])] == [0]


@pytest.mark.parametrize(
    "changed", [{"lost": -3}, {"found": 9}, {"first_lost": None}, {"torn": 4}, {"environment": "x"}]
)
def test_a_check_that_does_not_add_up_is_not_shown(changed: dict[str, object]):
    ((key, kept),) = power_cut_facts([cut(Promise.FSYNC, "synchronous", 3)]).items()
    assert len(power_cuts([(SCOPE, key, kept, 1.0)], ["host"])) == 1
    assert power_cuts([(SCOPE, key, json.dumps(json.loads(kept) | changed), 1.0)], ["host"]) == ()


@pytest.mark.parametrize(
    ("milliseconds", "networked", "flag", "named"),
    [
        (41.0, '["tcp"]', FlagCode.NO_BOTTLENECK, {"native"}),
        (33.0, '["tcp"]', FlagCode.NO_BOTTLENECK, {"bridge"}),
        (20.0, '["tcp"]', FlagCode.NO_BOTTLENECK, set()),
        (41.0, '["tcp"]', FlagCode.CPUS, set()),
        (41.0, "[]", FlagCode.NO_BOTTLENECK, set()),
    ],
)
def test_a_latency_at_the_time_of_a_delayed_acknowledgement_is_named(run, milliseconds, networked, flag, named):
    slow = Workload("tcp", [(LATENCY, milliseconds, 0.001)])
    flags = {(block, arm): (Flag(flag),) for block in range(1, 11) for arm in ("native", "bridge", "native-again")}
    store = run(costs={"bridge": 1.25}, workloads=[slow], flags=flags, outputs=False)
    with RunStore(store.directory, writable=True) as writable:
        writable.set_info("networked", networked)
    (report,) = [each for each in analyse(RunStore(store.directory)).metrics if each.metric == LATENCY.name]
    (row,) = [each for each in report.comparisons if not each.aa]
    assert {each.environment for each in row.remarks if each.code == "delayed-ack"} == named
