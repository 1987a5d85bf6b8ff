"""Under which conditions a run was measured, what differs besides the isolation, and what is said of it."""

import json
from dataclasses import replace

import pytest

from report.made_up_runs import LATENCY, TCP, Workload
from report.test_html import page_of
from report.test_terminal import shown
from usual_options import usual_options
from weighbridge import registry
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.conditions import Calibration, by_label, calibration_of, power_cuts
from weighbridge.analysis.readings import ReadingRate
from weighbridge.analysis.remarks import confounders, few_readings, figure_ranges, kind_of, on_top
from weighbridge.meters import host
from weighbridge.model.choices import Promise
from weighbridge.model.facts import HALT, IDLE_CPUS, POLL
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Metric
from weighbridge.model.power_cut import SCOPE, PowerCut, power_cut_facts
from weighbridge.model.stored_study import StoredFile
from weighbridge.report.export.json import report_json
from weighbridge.report.html import write_html
from weighbridge.report.text import trial_flags
from weighbridge.report.text.conditions import (
    MEANING,
    NOT_POLLED,
    NOT_THIS_PATH,
    POLLED,
    condition_lines,
    durability_words,
    power_cut_lines,
    power_cut_verdict,
)
from weighbridge.report.text.metric_names import metric_words, titled
from weighbridge.report.text.remarks import coded_text, remark_text
from weighbridge.store.run import RunStore
from weighbridge.store.study_text import file_of_text

SIZES = {"native/udp": "1468 B", "overlay/udp": "1418 B", "native/rr": "1468 B", "overlay/rr": "1468 B (probed)"}


def sizes(found=None):
    return [("packet sizes", key, value, 0.0) for key, value in (found or SIZES).items()]


def test_other_packet_sizes_are_a_confounder(run):
    (only,) = confounders(sizes(), "native", ["native", "overlay"])
    assert coded_text(only) == "packet-size: overlay: packets of 1418 B, but 1468 B in native (udp)"
    store = run(costs={"overlay": 1.3}, facts={"packet sizes": {"native/tcp": "1468 B", "overlay/tcp": "1418 B"}})
    page = page_of(store)
    assert "No known differences" not in page.text and "packets of 1418 B, but 1468 B in native" in page.text


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
    trials = [replace(each, values={"time": seconds * (1 + spread * (each.order % 2))}) for each in context.trials]
    study = StoredFile(**{"workloads": {"w": options}})
    found = on_top.remarks(replace(context, trials=trials, study=study, results={}))
    assert [remark_text(each) for each in found] == told * [
        f"w took {seconds:#.3g}\u00a0s in most trials. It seems to run for a fixed time, so its run time cannot "
        "show a cost. Give it a fixed amount of work, or use --metric."
    ]


@pytest.mark.parametrize(
    ("fact", "host", "pod"),
    [("quality of service", "Burstable", "Guaranteed"), ("containers added", "none", "istio-init, istio-proxy")],
)
def test_what_a_cluster_does_otherwise_to_a_pod_is_a_confounder(fact: str, host: str, pod: str):
    told = {"host/solo": host, "pod/solo": pod}
    found = confounders([(at, fact, each, 0.0) for at, each in told.items()], "host", ["host", "pod"])
    assert [remark_text(each) for each in found] == [f"{fact}: {pod} in pod, {host} in host"]


def test_other_limits_are_a_confounder():
    told = {"native/server": "none", "bare/server": "none", "chroot/server": "1 CPUs, 512 MiB"}
    found = confounders(
        [(at, "limits", value, 0.0) for at, value in told.items()], "native", ["native", "bare", "chroot"]
    )
    assert [remark_text(remark) for remark in found] == ["limits: 1 CPUs, 512 MiB in chroot, none in native"]


def test_another_kernel_and_other_open_files_are_confounders_told_once():
    qemu = {"version: kernel": "6.1.0-44-amd64", "open files of a process": "1048576"}
    native = {"version: kernel": "6.18.5", "open files of a process": "65536"}
    places = {"native/server": native, "native/client": native, "qemu/server": qemu, "qemu/client": qemu,
              "docker/server": native}  # fmt: skip
    facts = [(at, key, value, 0.0) for at, known in places.items() for key, value in known.items()]
    assert [remark_text(each) for each in confounders(facts, "native", ["native", "docker", "qemu"])] == [
        "kernel: 6.1.0-44-amd64 in qemu, 6.18.5 in native",
        "open files of a process: 1048576 in qemu, 65536 in native",
    ]
    before = [fact for fact in facts if fact[0].startswith("qemu") or fact[1] != "version: kernel"]
    assert not any("kernel" in remark_text(each) for each in confounders(before, "native", ["native", "qemu"]))


def test_options_of_its_own_are_a_confounder():
    text = """
environments:
  native: {kind: native}
  overlay: {kind: docker, workloads: {udp: {packet_size: 1418B}, web: {threads: 2}}}
"""
    found = [remark_text(each) for each in confounders(sizes(), "native", ["native", "overlay"], file_of_text(text))]
    assert found[0] == "overlay: own options in web (threads: 2)" and len(found) == 2
    weighed = file_of_text(f"study: weigh-gzip{text}")
    found = [remark_text(each) for each in confounders(sizes(), "native", ["native", "overlay"], weighed)]
    assert not any("own options" in each for each in found), "they were given with --against"
    for broken in (
        "workloads: [",
        "workloads",
        "environments: 3 # workloads",
        "environments: {overlay: {workloads: 3}}",
    ):
        assert confounders([], "native", ["native", "overlay"], file_of_text(broken)) == ()


def test_the_calibration_is_said_once_and_only_of_one_host():
    again = [("calibration", "smallest detectable cost, tcp", value, 0.0) for value in ("1%", "2%")]
    whole = Calibration("this-run", {"smallest detectable cost, tcp": "2%"})
    assert calibration_of(again) == whole
    for kind in ("testbed: on this machine", "ssh: user@b"):
        assert calibration_of([*again, ("host a", "kind", kind, 0.0)]).about == "another-path"
        assert calibration_of([("host a", "kind", kind, 0.0)]) is None
    polled = ("host", IDLE_CPUS, POLL, 0.0)
    assert calibration_of([*again, polled]).about == "halting-cpus" and calibration_of([polled]) is None
    assert calibration_of([*again, ("host", IDLE_CPUS, HALT, 0.0)]) == whole
    assert calibration_of([*again, ("host", "kind", "x", 0.0)]) == whole


def test_the_conditions_have_words(run):
    analysis = analyse(run(costs={"bridge": 1.0}, blocks=2))
    known = replace(analysis, calibration=Calibration("this-run", {"smallest detectable cost, tcp": "2%"}))
    assert condition_lines(analysis) == [] and condition_lines(known) == ["smallest detectable cost, tcp 2%"]
    path = replace(known, calibration=replace(known.calibration, about="another-path"))
    halting = replace(known, polled=True, calibration=replace(known.calibration, about="halting-cpus"))
    assert condition_lines(path) == [NOT_THIS_PATH] and condition_lines(halting) == [POLLED, NOT_POLLED]


def test_flags_are_said_plainly_and_once(run):
    assert trial_flags.FOREIGN == host.FOREIGN
    flags = {(block, name): (Flag(FlagCode.OTHER_WORK, figures={"cpus": 0.8 + block / 100}),) for block in (1, 2)
             for name in ("native", "bridge", "host", "native-again")}  # fmt: skip
    store = run(costs={"bridge": 1.25, "host": 1.0}, flags=flags, blocks=2)
    sentence = "8 of 8 trials: other programs, the engine or the kernel used 0.81 to 0.82 CPUs (flagged above 0.75)"
    assert shown(store, width=300).count(sentence) == 1
    assert shown(store, width=300).count("0.82 CPUs") == 2, "once among the flags, once beside trust"
    assert page_of(store).text.count("0.82 CPUs (flagged") == 1 and "What the remarks mean" in page_of(store).text
    some = run(costs={"bridge": 1.25, "host": 1.0}, flags={(1, "bridge"): (
        Flag(FlagCode.GENERATOR_SATURATED), Flag(FlagCode.STEAL, figures={"share": 0.02}),
    )})  # fmt: skip
    text = shown(some, width=300)
    assert "bridge: limited by the load generator (CPU saturated or throttled) in 1 of 10 trials" in text
    assert "bridge: the hypervisor took 2.0% of the CPU time" in text


def test_filters_work_by_code(run, monkeypatch):
    """Another wording changes no behaviour."""
    monkeypatch.setitem(
        trial_flags.WORDS, FlagCode.OTHER_WORK, replace(trial_flags.WORDS[FlagCode.OTHER_WORK], long="much: {}")
    )
    flags = {(block, name): (Flag(FlagCode.OTHER_WORK, figures={"cpus": 0.9}),) for block in (1, 2)
             for name in ("native", "bridge", "host", "native-again")}  # fmt: skip
    store = run(costs={"bridge": 1.25, "host": 1.0}, flags=flags, blocks=2)
    assert shown(store, width=300).count("much: 0.90") == 1


def test_every_flag_of_the_meters_has_words():
    busy = {"steal_s": 3.0, "load1": 90.0, "busy_s": 60.0, "psi_memory_s": 5.0, "psi_io_s": 5.0}
    told = [*host.host_flags(busy, [{"cpu_s": 1.0}], 10.0, 2)]
    told += host.site_flags("client", {"throttled_s": 5.0, "cpu_s": 10.0}, 10.0)
    told += host.site_flags("server", {"throttled_s": 5.0}, 10.0)
    told += host.shared_flags({"client": {"cpu_s": 19.0}, "server": {"cpu_s": 1.0}}, 10.0, 2)
    assert {each.code for each in told} < set(trial_flags.WORDS)
    assert all("?" not in trial_flags.flag_kind_text(kind_of(each), figure_ranges([each])) for each in told)


def test_every_code_has_words():
    assert set(trial_flags.WORDS) == set(FlagCode) - {FlagCode.OTHER}


def test_a_flag_beside_its_trial_and_for_machines():
    far = Flag(FlagCode.STEAL, "host b", {"share": 0.031})
    own = Flag("mine", figures={"x": 2.0}, text="as it said")
    assert trial_flags.flags_text([far, own]) == "host b: steal 3.1%; mine x=2 text=as it said"
    assert trial_flags.stable_text([far, own]) == "steal where=host b share=0.031; mine x=2 text=as it said"
    assert trial_flags.flag_text(Flag(FlagCode.THROTTLED, "server", {"share": 0.2})) == "server throttled 20%"
    assert trial_flags.flag_text(Flag(FlagCode.OTHER, text="errors")) == "errors"
    assert trial_flags.flag_kind_text(kind_of(own), figure_ranges([own])) == "mine"


def test_too_few_readings_say_what_to_change():
    def advice(hz, seconds):
        return remark_text(few_readings(ReadingRate(hz, {1: seconds}), [1]))

    assert advice(1.0, 2.0).endswith("1 Hz (about 2 readings each): raise meters: {hz: 3}")
    assert few_readings(ReadingRate(1.0, {1: 5.0}), [1]) is None and few_readings(ReadingRate(1.0, {}), []) is None
    assert advice(10.0, 0.2).endswith(": a peak can be missed") and "hardly one reading" in advice(1.0, 0.0)


def test_short_trials_are_remarked_on_host_wide_metrics(run):
    metered = Workload("tcp", [*TCP.metrics, (Metric("cpu_usage", "%", "lower"), 40.0, 0.1)])
    store = run(costs={"bridge": 1.2}, workloads=[metered], series=True, blocks=2)
    coded = {
        m.metric for m in analyse(store).metrics for row in m.comparisons for r in row.remarks if r.code == "readings"
    }
    assert coded == {"cpu_usage"} and "raise meters: {hz: 5}" in shown(store, width=200)


def test_host_wide_metrics_are_compared_by_difference_alone(run):
    metrics = [
        (Metric(name, "MiB", "lower"), 40.0, 0.1) for name in ("memory_usage", "memory_client_beyond_baseline")
    ]
    metrics += [(Metric("cpu_usage", "%", "lower"), 40.0, 0.1)]
    analysis = analyse(run(costs={"bridge": 1.2, "host": 1.0}, workloads=[Workload("tcp", [*TCP.metrics, *metrics])]))
    used = [m for m in analysis.metrics if m.resource_use]
    assert len(used) == 3 and {row.cost.scale for m in used for row in m.comparisons} == {"difference"}


def test_one_block_is_one_story(run):
    store = run(costs={"bridge": 1.0}, workloads=[Workload("tcp", [(LATENCY, 1.0, 0.0)])], blocks=1)
    row = report_json(store)["costs"][0]
    assert row["low"] is row["high"] is None and row["verdict"] == "undecided"
    assert "too few rounds" in shown(store)


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


def test_names():
    assert metric_words("one_way_latency") == "one way latency (derived: half of 1/rate)"
    assert titled("latency (size=1)", "latency", "latency_mean", "us") == "latency (size=1) · mean"
    assert titled("jitter", "jitter", "jitter", "ms") == "jitter"
    assert titled("tcp", "tcp", "throughput", "bit/s") == "TCP throughput"
    assert titled("redis-set", "redis-set", "set_throughput", "requests/s") == "redis-set · requests/s"
    assert titled("redis-set", "redis-set", "set_p99", "ms") == "redis-set · p99"
    assert titled("memory", "memory", "memory_usage", "MiB") == "memory · memory usage (committed, used or not)"


# -- durability ------------------------------------------------------------------------------------


@pytest.fixture
def page(run, tmp_path):
    """The analysis and the page of a run with two equal environments that keep what they are given like this."""

    def made(native: str, host: str):
        places = {"native/tcp": native, "native-again/tcp": native, "host/tcp": host}
        facts = {"durability": {place: kind for place, kind in places.items() if kind}}
        store = run(costs={"host": 1.0}, facts=facts)
        analysis = analyse(store)
        return analysis, write_html(store, tmp_path / "report.html", analysis).read_text()

    return made


@pytest.mark.parametrize("kind", ["synchronous", "asynchronous", "none", ""])
def test_two_that_keep_alike_are_equivalent_and_labelled(page, kind: str):
    analysis, html = page(kind, kind)
    row = analysis.metrics[0].comparisons[0]
    assert row.verdict == "equivalent" and not any(remark.code == "durability" for remark in row.remarks)
    assert (MEANING.get(kind, "acknowledged") in html.split("How to read this")[0]) is bool(kind)
    assert set(analysis.durability) == ({"tcp"} if kind else set())


@pytest.mark.parametrize(
    ("native", "host"), [("synchronous", "asynchronous"), ("none", "asynchronous"), ("", "asynchronous")]
)
def test_two_that_do_not_keep_alike_are_never_equivalent(page, native: str, host: str):
    analysis, html = page(native, host)
    row, aa = analysis.metrics[0].comparisons
    told = f"durability {host}, but {native or 'unknown'} in native"
    assert row.cost.equivalent and row.verdict == "inconclusive"
    assert aa.verdict == "equivalent" and [remark_text(r) for r in row.remarks if r.code == "durability"] == [told]
    assert [remark_text(remark) for remark in analysis.confounders] == [f"host: {told} (tcp)"] and told in html


def test_a_line_names_the_environments_where_they_differ():
    kinds = by_label({"a/kv": "none", "b/kv": "none", "a/db": "synchronous", "b/db": "asynchronous"})
    assert {label: durability_words(each) for label, each in kinds.items()} == {
        "kv": "acknowledged writes are in memory only",
        "db": "acknowledged writes are on the disk in a; a power cut loses the last acknowledged writes in b",
    }


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


def test_what_a_check_by_power_cut_found_is_in_the_report(run, tmp_path):
    checked = [cut(Promise.FSYNC, "synchronous", 3, torn=1), cut(Promise.WRITE, "synchronous", 10)]
    store = run(costs={"host": 1.0}, facts={SCOPE: {**power_cut_facts(checked), "host/new": "{}"}})
    analysis = analyse(store)
    assert list(analysis.power_cuts) == checked
    told = report_json(store, analysis)["power_cuts"]
    assert [(each["promise"], each["lost"], each["verdict"]) for each in told] == [
        ("fsync", 3, "claims more than it keeps"), ("write", 10, "lost"),
    ]  # fmt: skip
    lines = power_cut_lines(analysis)
    assert [line.partition("): ")[2] for line in lines] == [
        "claims synchronous, lost 3 of 10 (first: 7; 1 torn)",
        "lost 10 of 10 (first: 0); nothing was synced",
    ]
    assert all(line in write_html(store, tmp_path / "report.html", analysis).read_text() for line in lines)


def test_the_latest_check_of_a_promise_holds():
    facts = [
        (SCOPE, key, value, when)
        for when, lost in ((1.0, 3), (2.0, 0))
        for key, value in power_cut_facts([cut(Promise.FSYNC, "synchronous", lost)]).items()
    ]
    assert [(each.lost, power_cut_verdict(each)) for each in power_cuts(facts, ["host"])] == [(0, "kept all 10")]
    assert power_cut_verdict(cut(Promise.FSYNC, "asynchronous", 2)).endswith("(first: 8), as claimed (asynchronous)")


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
