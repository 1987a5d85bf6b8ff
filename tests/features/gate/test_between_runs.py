"""Two runs of one question: facts and settings that changed, the change of each cost, its verdict."""

import json
import math

import pytest

from report.made_up_runs import JITTER, LOSS, TCP, THROUGHPUT, Workload
from sentences import raises_sentence
from weighbridge.features.gate.between_runs import NoChange, WhyNot, compare_runs
from weighbridge.features.gate.compared_run import (
    FactChange,
    FactKind,
    FactNotChangedError,
    OnlyIn,
    OtherQuestionError,
    Part,
    SettingChange,
    read_run,
)
from weighbridge.model.address import CellId, MetricId
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.level import Level
from weighbridge.model.measurement import Outcome
from weighbridge.store.run import RunStore

HOST = {"host": {"kernel": "Linux 6.1", "CPU": "Imaginary 3000", "idle CPUs": "halt"}}
KEY = MetricId(CellId("tcp", Level()), "throughput"), "bridge"


def pair_of(run, one, other, **more):
    base = {"costs": {"bridge": 1.2}, "blocks": 15, "facts": HOST}
    stores = [run(**{**base, "seed": 7, **one}), run(**{**base, "seed": 8, **other})]
    (found,) = compare_runs(*(read_run(each, f"run{i}") for i, each in enumerate(stores)), **more).pairs
    return found


def test_no_change_is_not_called_one(run):
    pair = pair_of(run, {}, {})
    row = pair.row(*KEY)
    assert row.verdict in ("equivalent", "inconclusive") and row.change.blocks == (15, 15)
    assert row.change.low < 1 < row.change.high
    assert (row.before.environment, row.aa, row.unknown) == ("bridge", False, None)
    assert pair.facts == pair.settings == pair.only == ()


def test_a_change_is_found_with_its_size(run):
    row = pair_of(run, {}, {"costs": {"bridge": 1.32}}).row(*KEY)
    assert row.verdict == "different" and row.adjusted_p < 0.001
    assert row.change.penalty.low < 100 * (1 - 1 / 1.1) < row.change.penalty.high
    assert row.change.penalty.estimate == pytest.approx(9.1, abs=2)


def test_the_aa_arm_has_no_part_in_holm(run):
    pair = pair_of(run, {}, {})
    (metric,) = [each for each in pair.metrics if each.before.metric == "throughput"]
    assert [row.aa for row in metric.rows] == [False, True]
    assert metric.rows[1].adjusted_p is None and metric.rows[1].change.floor is None
    assert metric.rows[0].change.floor > 0


def test_a_change_within_both_noise_floors_is_inconclusive(run):
    noisy = [Workload("tcp", [(THROUGHPUT, 8.66e9, 0.001)])]
    loud = {"workloads": noisy, "slowed": {(block, "native-again"): 1.2 for block in range(1, 5)}}
    row = pair_of(run, loud, {**loud, "costs": {"bridge": 1.25}}).row(*KEY)
    assert row.change.within_noise and row.change.excludes_no_change and row.verdict == "inconclusive"
    assert not row.untrusted


def test_facts_that_changed_come_in_the_order_in_which_they_are_looked_for(run):
    one = {"host": {**HOST["host"], "microcode": "0x1", "version of dockerd": "Docker 20.10", "load": "1"},
           "bridge/server@here": {"docker": "20.10", "runtime": "runc", "address": "172.17.0.2"},
           "before": {"interface eth0": "mtu 1500", "load": "0.1"},
           "programs": {"./own": "1" * 64, "python3": "2" * 64, "gone": "3"},
           "userland packages": {"iperf3": "3.12"}}  # fmt: skip
    other = {"host": {**one["host"], "kernel": "Linux 6.2", "microcode": "0x2", "version of dockerd": "Docker 29.1",
                      "idle CPUs": "poll (programs of SCHED_IDLE)", "load": "2"},
             "bridge/server@here": {"docker": "29.1", "runtime": "runc", "address": "172.17.0.9"},
             "before": {"interface eth0": "mtu 9000", "load": "7"},
             "programs": {"./own": "7" * 64, "python3": "2" * 64, "new": "3"},
             "userland packages": {"iperf3": "3.13"}}  # fmt: skip
    pair = pair_of(run, {"facts": one}, {"facts": other})
    assert pair.facts == (
        FactChange(FactKind.KERNEL, "kernel", "Linux 6.1", "Linux 6.2"),
        FactChange(FactKind.ENGINE, "version of dockerd", "Docker 20.10", "Docker 29.1"),
        FactChange(FactKind.ENGINE, "docker", "20.10", "29.1", environments=("bridge",)),
        FactChange(FactKind.PATH, "interface eth0", "mtu 1500", "mtu 9000"),
        FactChange(FactKind.PACKAGES, "iperf3", "3.12", "3.13"),
        FactChange(FactKind.PROGRAM, "./own", "1" * 12, "7" * 12),
        FactChange(FactKind.CPU, "microcode", "0x1", "0x2"),
        FactChange(FactKind.IDLE, "idle CPUs", "halt", "poll"),
    )
    assert [each.reason for each in pair.no_own_values] == [WhyNot.MACHINE]
    assert pair.no_own_values[0].about == ("kernel", "microcode", "idle CPUs")
    assert all(each.own_values == () for each in pair.metrics)


def test_own_values_are_compared_on_the_same_machine(run):
    pair = pair_of(run, {}, {"workloads": [Workload("tcp", [(THROUGHPUT, 4.33e9, 0.01)])]})
    assert pair.no_own_values == ()
    (metric,) = [each for each in pair.metrics if each.before.metric == "throughput"]
    native, bridge = metric.own_values
    assert (native.environment, bridge.environment) == ("native", "bridge")
    assert native.penalty.low < 50 < native.penalty.high, "the machine is half as fast"
    assert bridge.before / bridge.after == pytest.approx(2, rel=0.05)
    assert pair.row(*KEY).verdict != "different", "the cost is not touched by it"


def test_own_values_are_not_compared_where_a_run_is_not_trusted(run):
    pair = pair_of(run, {"aa": False}, {"aa_factor": 1.3})
    assert [(each.reason, each.about) for each in pair.no_own_values] == [
        (WhyNot.UNTRUSTED, ("run1",)), (WhyNot.NOT_KNOWN, ("run0",)),
    ]  # fmt: skip
    assert pair.row(*KEY).change.floor is None, "one run has no A/A arm"


def test_a_run_that_is_not_trusted_proves_nothing(run):
    row = pair_of(run, {}, {"costs": {"bridge": 1.9}, "aa_factor": 1.3}).row(*KEY)
    assert row.change.excludes_no_change and row.adjusted_p < 0.001
    assert (row.untrusted, row.verdict) == (True, "inconclusive")


def test_settings_that_differ_are_listed_and_compared_all_the_same(run):
    one, other = ({"options": {"bridge": {"userland_proxy": each}}} for each in (True, False))
    pair = pair_of(run, one, {**other, "study": "second-look"})
    assert pair.settings == (
        SettingChange(Part.STUDY, "", "study", "first-look", "second-look"),
        SettingChange(Part.ENVIRONMENT, "bridge", "userland_proxy", True, False),
    )
    assert pair.row(*KEY).change is not None


def test_values_that_older_versions_stored_are_compared_and_not_shown(run):
    found = []
    for number, value in enumerate(("canary one", "canary two")):
        with RunStore(run(costs={"bridge": 1.2}).directory, writable=True) as store:
            options = json.dumps({"server_env": {"PW": value, "SAME": "canary three"}})
            store._db.execute("UPDATE cell SET options = ?", (options,))
            store._db.execute("DELETE FROM study")
            store._db.execute("DELETE FROM run WHERE key = 'secrets'")
            found.append(read_run(store, f"run{number}"))
    (pair,) = compare_runs(*found).pairs
    assert [each.setting for each in pair.settings] == ["server_env PW"]
    assert "canary" not in repr(pair)


def test_what_only_one_run_has_is_named(run):
    further = Workload("ping", [(JITTER, 1e-4, 0.02)])
    pair = pair_of(run, {"costs": {"bridge": 1.2, "host": 1.0}}, {"workloads": [TCP, further], "aa": False})
    assert pair.only == (
        OnlyIn(Part.ENVIRONMENT, "host", second=False),
        OnlyIn(Part.ENVIRONMENT, "native-again", second=False),
        OnlyIn(Part.WORKLOAD, "ping", second=True),
    )
    assert {row.environment for each in pair.metrics for row in each.rows} == {"bridge"}
    assert {each.before.label for each in pair.metrics} == {"tcp"}


def test_a_metric_that_only_one_run_has_is_named(run):
    more = Workload("tcp", [*TCP.metrics, (JITTER, 1e-4, 0.02)])
    pair = pair_of(run, {}, {"workloads": [more]})
    assert pair.only == (OnlyIn(Part.METRIC, "tcp jitter", second=True),)


def test_another_unit_is_no_change(run):
    from weighbridge.model.measurement import Metric

    other = Workload("tcp", [(Metric("throughput", "B/s", "higher"), 1e9, 0.01)])
    row = pair_of(run, {}, {"workloads": [other]}).row(*KEY)
    assert (row.change, row.unknown, row.verdict) == (None, NoChange.UNIT, "inconclusive")


def test_counts_are_compared_by_difference(run):
    lossy = {"workloads": [Workload("udp", [(LOSS, 4.0, 0.05)])]}
    pair = pair_of(run, lossy, {**lossy, "costs": {"bridge": 1.7}})
    row = pair.row(MetricId(CellId("udp", Level()), "loss"), "bridge")
    assert row.change.scale == "difference" and row.change.penalty.estimate == pytest.approx(2, abs=0.3)
    assert row.verdict == "different"


def test_failing_in_one_run_proves_no_equivalence(run):
    quiet = [Workload("tcp", [(THROUGHPUT, 8e9, 0.001)])]
    row = pair_of(run, {"workloads": quiet}, {"workloads": quiet}).row(*KEY)
    assert row.verdict == "equivalent"
    failing = {(block, "bridge"): Outcome.PROGRAM_FAILED for block in (1, 2, 3)}
    row = pair_of(run, {"workloads": quiet}, {"workloads": quiet, "failing": failing}).row(*KEY)
    assert row.verdict == "inconclusive" and row.change.blocks == (15, 12)


def test_no_complete_block_is_said(run):
    failing = {(block, "bridge"): Outcome.PROGRAM_FAILED for block in range(1, 16)}
    row = pair_of(run, {}, {"failing": failing}).row(*KEY)
    assert row is None or (row.change, row.unknown) == (None, NoChange.NO_COST)
    assert pair_of(run, {}, {"blocks": 1}).row(*KEY).unknown is NoChange.FEW


def test_hidden_in_one_run_is_hidden(run):
    cable = Flag(FlagCode.CABLE, "host a", {"share": 0.99, "rate": 1e8})
    flags = {(block, arm): (cable,) for block in range(1, 16) for arm in ("native", "bridge", "native-again")}
    pair = pair_of(run, {"costs": {"bridge": 1.0}, "flags": flags}, {"costs": {"bridge": 1.3}})
    row = pair.row(*KEY)
    if row.before.verdict == "hidden":
        assert row.verdict == "hidden"
    else:
        pytest.fail(f"the first run is {row.before.verdict}")


def test_another_baseline_is_refused(run):
    first = read_run(run(costs={"bridge": 1.2}), "a")
    from dataclasses import replace

    other = replace(first, name="b", analysis=replace(first.analysis, baseline="bridge"))
    with raises_sentence(OtherQuestionError):
        compare_runs(first, other)


def test_nothing_in_common_is_refused(run):
    first = read_run(run(costs={"bridge": 1.2}), "a")
    with raises_sentence(OtherQuestionError):
        compare_runs(first, read_run(run(costs={"host": 1.2}), "b"))
    with raises_sentence(OtherQuestionError):
        compare_runs(first, read_run(run(costs={"bridge": 1.2}, workloads=[Workload("x", TCP.metrics)]), "b"))


def test_more_runs_are_each_compared_with_the_first(run):
    runs = [read_run(run(costs={"bridge": each}, seed=i), str(i)) for i, each in enumerate((1.2, 1.2, 1.4))]
    found = compare_runs(*runs)
    assert [(pair.first.name, pair.second.name) for pair in found.pairs] == [("0", "1"), ("0", "2")]
    assert [pair.row(*KEY).verdict == "different" for pair in found.pairs] == [False, True]
    assert found.runs == tuple(runs)


def test_margin_and_allowance_can_be_asked_for(run):
    pair = pair_of(run, {}, {}, allowance=0.0, margin=0.5)
    assert pair.row(*KEY).verdict == "equivalent"
    assert (pair.row(*KEY).change.margin, pair.row(*KEY).change.allowance) == (0.5, 0.0)
    assert math.isclose(pair_of(run, {}, {}).row(*KEY).change.margin, 0.03), "the studies'"


# -- others on the machine -------------------------------------------------------------------------

OTHERS = (Flag(FlagCode.OTHER_WORK, figures={"cpus": 1.4}),)


def disturbed(flags=OTHERS, blocks=15):
    return {(block, name): flags for block in range(1, blocks + 1) for name in ("native", "native-again", "bridge")}


def test_what_differs_with_the_disturbance_is_not_called_different(run):
    """Two trusted runs seemed to differ by 99.7% [57, 145] when the neighbours had gone meanwhile."""
    worse = {"costs": {"bridge": 2.0}}
    assert pair_of(run, {}, worse).row(*KEY).verdict == "different"
    for one, other in (({"flags": disturbed()}, worse), ({}, {**worse, "flags": disturbed()})):
        pair = pair_of(run, one, other)
        row = pair.row(*KEY)
        assert row.disturbed and row.verdict == "inconclusive" and row.change.excludes_no_change
        assert [each.reason for each in pair.no_own_values] == [WhyNot.DISTURBED]


def test_what_was_disturbed_in_an_environments_trials_alone_is_not_called_different(run):
    """`compare` had looked at the baseline's trials, and called the run undisturbed."""
    flags = {(block, "bridge"): OTHERS for block in range(1, 16)}
    changed = {"costs": {"bridge": 2.0, "host": 2.0}, "flags": flags}
    pair = pair_of(run, {"costs": {"bridge": 1.2, "host": 1.2}}, changed)
    row = pair.row(*KEY)
    assert row.disturbed and row.verdict == "inconclusive"
    assert pair.row(KEY[0], "host").verdict == "different", "nobody disturbed these"
    assert [each.reason for each in pair.no_own_values] == [WhyNot.DISTURBED]


def test_runs_that_are_disturbed_alike_are_compared(run):
    pair = pair_of(run, {"flags": disturbed()}, {"costs": {"bridge": 2.0}, "flags": disturbed()})
    assert pair.row(*KEY).verdict == "different" and pair.no_own_values == ()


# -- what was changed on purpose -------------------------------------------------------------------

SWAPPED = [
    {"facts": {"host": {**HOST["host"], "sysctl vm.swappiness": value, "load": value}}} for value in ("60", "10")
]


def test_absolute_rates_are_compared_where_the_fact_that_changed_was_changed_on_purpose(run):
    assert [each.about for each in pair_of(run, *SWAPPED).no_own_values] == [("sysctl vm.swappiness",)]
    for name in ("sysctl:vm.swappiness", "sysctl vm.swappiness"):
        pair = pair_of(run, *SWAPPED, on_purpose=[name])
        assert pair.no_own_values == () and all(each.own_values for each in pair.metrics)
        assert pair.on_purpose == (FactChange(FactKind.MACHINE, "sysctl vm.swappiness", "60", "10"),) == pair.facts


def test_another_fact_that_changed_keeps_absolute_rates_from_being_compared(run):
    other = {"facts": {"host": {**SWAPPED[1]["facts"]["host"], "kernel": "Linux 6.2"}}}
    pair = pair_of(run, SWAPPED[0], other, on_purpose=["sysctl:vm.swappiness"])
    assert [each.about for each in pair.no_own_values] == [("kernel",)]


@pytest.mark.parametrize("name", ["sysctl:vm.swapiness", "kernel", "load", "firmware"])
def test_a_fact_that_did_not_change_was_not_changed_on_purpose(run, name):
    with raises_sentence(FactNotChangedError):
        pair_of(run, *SWAPPED, on_purpose=[name])


def test_few_of_many_facts_that_changed_are_listed_and_little_of_a_long_value(run):
    many = [
        {"facts": {"host": {f"fact {n}": f"{side} {n}" for n in range(500)} | {"same": "x" * 2**16}}} for side in "ab"
    ]
    for name in ("none of these", "same"):
        with pytest.raises(FactNotChangedError) as error:
            pair_of(run, *many, on_purpose=[name])
        assert len(str(error.value)) < 500


def test_no_fact_at_all_changed(run):
    with raises_sentence(FactNotChangedError):
        pair_of(run, {}, {}, on_purpose=["sysctl:vm.swappiness"])
