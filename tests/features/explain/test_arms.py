"""The arms that explain costs, and the study that explains a cost of another."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge import registry
from weighbridge.errors import StudyError
from weighbridge.features.explain.study import why_study
from weighbridge.model.explained import (
    PLACEBO,
    all_off,
    cost_together,
    pair_costs,
    placebo_cost,
    single_cost,
)
from weighbridge.model.stored_study import StoredStudy, study_json
from weighbridge.runner.precision import comparisons_of
from weighbridge.study.explained import not_switched, unexplained
from weighbridge.study.frozen import thaw
from weighbridge.study.loader import check
from weighbridge.study.source import parse, read

STUDY = """study: why
question: Why does it cost that?
baseline: native
explain: {explain}
resources: {{cpus: 1}}
environments:
  native: {{kind: native}}
  published: {{kind: docker, network: bridge, publish: true}}
  loopback: {{kind: docker, network: bridge, publish: true, publish_on: loopback}}
  sandbox: {{kind: docker, network: host, runtime: runsc}}
  limited: {{kind: docker, network: host, seccomp: unconfined, apparmor: unconfined, resources: {{cpus: 0.5}}}}
workloads:
  rr: {{kind: netperf, test: TCP_RR, duration: 1s}}
  tcp: {{kind: iperf3, duration: 1s}}
"""


def checked(explain: str = "true"):
    return check(parse(STUDY.format(explain=explain), "why.yaml"))


def parts(study) -> dict[str, tuple[str, ...]]:
    return {arm.name: arm.explains.off for arm in study.arms if arm.explains is not None}


def test_each_mechanism_is_off_in_an_arm_and_all_are_in_another():
    found = parts(checked("[published]"))
    assert found == {
        "published-without-address-translation": ("address-translation",),
        "published-without-apparmor": ("apparmor",),
        "published-without-seccomp": ("seccomp",),
        "published-without-own-network": ("address-translation", "own-network"),
        "published-bare": ("apparmor", "seccomp", "address-translation", "own-network"),
    }


def test_a_placebo_is_the_environment_under_another_name():
    text = STUDY.format(explain="[published, limited]").replace("explain:", "placebo: true\nexplain:")
    study = check(parse(text, "why.yaml"))
    arms = {arm.name: arm for arm in study.arms}
    mine, placebo = arms["published"], arms["published-placebo"]
    assert placebo.explains is not None and placebo.explains.off == (PLACEBO,)
    assert placebo.model_copy(update={"name": mine.name, "explains": None, "optional": False}) == mine
    by_off = study.arms_by_off("published")
    mechanisms = [each for each in study.mechanisms if each.environment == "published"]
    assert {by_off[off]: at for off, at in placebo_cost(by_off).items()} == {"published": 1, "published-placebo": -1}
    assert (
        PLACEBO not in {each.kind for each in mechanisms} and by_off[all_off(mechanisms, by_off)] == "published-bare"
    )
    assert not any(PLACEBO in off for off in cost_together(mechanisms, by_off))
    assert "published-placebo" in {each.name for each in comparisons_of(study, study.cells[0])}, (
        "it stays in the rounds"
    )


def test_without_a_mechanism_to_switch_there_is_no_placebo():
    study = check(
        parse(STUDY.format(explain="[published]").replace("explain:", "placebo: true\nexplain:"), "why.yaml")
    )
    switched = [each.kind for each in study.mechanisms if not each.refused]
    assert unexplained(not_switched(study, dict.fromkeys(switched, "this kernel has none"))) == ["published"]
    with pytest.raises(StudyError, match="only explained environments have one"):
        check(parse(STUDY.format(explain="false").replace("explain:", "placebo: true\nexplain:"), "why.yaml"))


def test_what_cannot_be_off_alone_is_off_with_others():
    """docker-proxy gives way to address translation, and that to the container's own address."""
    study = checked("[loopback]")
    options = {arm.name: arm.options for arm in study.arms}
    proxied, translated = options["loopback-without-docker-proxy"], options["loopback-without-address-translation"]
    assert (proxied.publish, proxied.publish_on) == (True, "gateway") and not translated.publish
    by_off, mechanisms = study.arms_by_off("loopback"), {each.kind: each for each in study.mechanisms}
    against = {
        kind: {by_off[off]: at for off, at in single_cost(each, by_off).items()} for kind, each in mechanisms.items()
    }
    assert against["address-translation"] == {
        "loopback-without-docker-proxy": 1, "loopback-without-address-translation": -1,
    }  # fmt: skip
    assert against["docker-proxy"] == {"loopback": 1, "loopback-without-docker-proxy": -1}
    assert against["seccomp"] == {"loopback": 1, "loopback-without-seccomp": -1}


def test_named_mechanisms_are_crossed():
    """Every combination that there can be: a network of its own is off only without what is published on it."""
    study = checked("{published: [own-network, seccomp]}")
    a, n, s = "address-translation", "own-network", "seccomp"
    assert {frozenset(off) for off in parts(study).values()} == {
        frozenset(off) for off in ((a,), (s,), (a, n), (a, s), (a, n, s))
    }
    assert "published-without-seccomp-own-network" in parts(study)
    assert {each.kind for each in study.mechanisms} == {a, n, s} and all(each.crossed for each in study.mechanisms)
    again = thaw(StoredStudy.model_validate_json(study_json(study)), study.text, Path("run"))
    assert again == study


def test_one_that_is_named_is_off_in_a_single_arm():
    study = checked("{published: [seccomp]}")
    assert {*parts(study)} == {"published-without-seccomp"}
    assert [each.kind for each in study.mechanisms] == ["seccomp"]


def test_an_environment_that_is_wrong_is_there_all_the_same():
    with pytest.raises(StudyError) as wrong:
        check(parse(STUDY.format(explain="[limited]").replace("{cpus: 0.5}", "{cpus: many}"), "why.yaml"))
    assert "many" in str(wrong.value) and "no environment" not in str(wrong.value)


def test_parts_of_crossed_mechanisms_are_made_of_all_arms_that_tell_of_them():
    study = checked("{published: [own-network, seccomp]}")
    by_off = study.arms_by_off("published")
    mechanisms = {each.kind: each for each in study.mechanisms}
    network, seccomp = mechanisms["own-network"], mechanisms["seccomp"]
    assert sorted(single_cost(network, by_off).values()) == [-0.5, -0.5, 0.5, 0.5]
    assert sorted(single_cost(seccomp, by_off).values()) == pytest.approx([-1 / 3] * 3 + [1 / 3] * 3)
    told_apart = {(one.kind, other.kind) for one, other, _ in pair_costs(study.mechanisms, by_off)}
    assert told_apart == {("seccomp", "address-translation"), ("seccomp", "own-network")}
    sums = dict.fromkeys(by_off, 0.0)
    singles = [single_cost(each, by_off) for each in study.mechanisms]
    for weights in (*singles, cost_together(study.mechanisms, by_off)):
        for off, weight in weights.items():
            sums[off] += weight
    everything = frozenset(mechanisms)
    assert {off: round(each, 9) for off, each in sums.items() if abs(each) > 1e-9} == {
        frozenset(): 1, everything: -1,
    }, "they add up to what all of them cost"  # fmt: skip


def test_of_two_that_are_crossed_nothing_is_left_beyond_them():
    study = checked("{published: [address-translation, seccomp]}")
    by_off = study.arms_by_off("published")
    assert len(by_off) == 4 and cost_together(study.mechanisms, by_off) == {}


def test_a_crossed_mechanism_that_is_not_there_has_a_reason():
    study = checked("{published: [address-translation, seccomp, encryption]}")
    (refused,) = [each for each in study.mechanisms if each.refused]
    assert refused.kind == "encryption" and "has none of it" in refused.refused and len(parts(study)) == 3


def test_a_filter_that_gvisor_never_pays_for_is_no_part_of_its_cost():
    study = checked("[sandbox]")
    assert parts(study) == {"sandbox-without-user-space-kernel": ("user-space-kernel",)}
    assert {arm.name: arm.options for arm in study.arms}["sandbox-without-user-space-kernel"].seccomp == "unconfined"


def test_what_a_kernel_has_nothing_of_is_off_in_no_arm_and_a_row_with_the_reason():
    """The arm with all of the others off stays, and tells what is unexplained."""
    study = not_switched(checked("[published]"), {"apparmor": "this kernel has no AppArmor"})
    found = parts(study)
    assert found["published-bare"] == ("seccomp", "address-translation", "own-network")
    assert "published-without-apparmor" not in found
    mine = [each for each in study.mechanisms if each.environment == "published"]
    assert {each.kind: each.refused for each in mine if each.refused} == {"apparmor": "this kernel has no AppArmor"}
    assert all_off(mine, study.arms_by_off("published")) == {*found["published-bare"]}
    assert not_switched(study, {}) is study


@pytest.mark.parametrize(
    ("written", "off"),
    [
        ("capabilities: none", {"capabilities": "all"}),
        ("capabilities: all", {}),
        ("no_new_privileges: true", {"no-new-privileges": False}),
        ("pids_limit: 100", {"pids-limit": None}),
        ("init: true", {"init": False}),
        ("cgroup_namespace: private", {"cgroup-namespace": "host"}),
        ("cgroup_namespace: host", {}),
    ],
)
@pytest.mark.parametrize("kind", ["docker", "podman"])
def test_what_is_set_of_a_container_is_switched_where_a_study_sets_it(
    kind: str, written: str, off: dict[str, object]
):
    text = STUDY.format(explain="[set]").replace(
        "  sandbox:",
        f"  set: {{kind: {kind}, network: host, seccomp: unconfined, apparmor: unconfined, {written}}}\n  sandbox:",
    )
    study = check(parse(text, "why.yaml"))
    (key,) = (part.partition(":")[0] for part in (written,))
    assert {arm.explains.off[0]: getattr(arm.options, key) for arm in study.arms if arm.explains is not None} == off


def test_an_engines_own_capabilities_are_switched_where_a_study_names_them():
    assert "published-without-capabilities" not in parts(checked("[published]"))
    study = checked("{published: [capabilities, seccomp]}")
    options = {arm.name: arm.options.capabilities for arm in study.arms if arm.explains is not None}
    assert options == {
        "published-without-capabilities": "all",
        "published-without-seccomp": "default",
    }


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"/sys/module/apparmor/parameters/enabled": b"Y\n"}, ""),
        ({"/sys/module/apparmor/parameters/enabled": b"N\n"}, "this kernel has no AppArmor"),
        ({}, "this kernel has no AppArmor"),
        (
            {"/sys/fs/selinux/enforce": b"1"},
            "this kernel has no AppArmor, and Weighbridge does not switch off SELinux",
        ),
    ],
)
def test_whether_a_kernel_has_apparmor(files: dict[str, bytes], why: str):
    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    assert registry.mechanisms()["apparmor"].absent(read) == why
    assert registry.mechanisms()["seccomp"].absent(read) == ""


APART = """study: why
question: Why does it cost that?
baseline: native
explain: true
hosts: {a: {kind: testbed}, b: {kind: testbed}}
placement: {client: a, server: b}
environments:
  native: {kind: native}
  published: {kind: docker, network: bridge, publish: true, bridge_netfilter: true, filter_rules: 9}
workloads:
  rr: {kind: netperf, test: TCP_RR, duration: 1s}
"""


def test_both_sides_of_a_mechanism_are_measured_whatever_has_to_be_off_with_it():
    text = APART.replace("filter_rules: 9", "no_offloads: [gro]").replace("publish: true", "attach: interface")
    found = parts(check(parse(text, "why.yaml")))
    others = found["published-before-own-network"]
    assert {*others} == {"bridge-netfilter", "offloads"}
    assert found["published-without-own-network"] == (*others, "own-network")


def test_what_the_baseline_has_in_another_measure_is_a_row_with_the_reason():
    text = STUDY.format(explain="[limited]")
    text = text.replace("native: {kind: native}", "native: {kind: native, resources: {cpus: 2}}")
    study = check(parse(text, "why.yaml"))
    assert {each.kind: bool(each.refused) for each in study.mechanisms} == {"cpu-limit": True}
    same = check(parse(text.replace("cpus: 2", "cpus: 0.5"), "why.yaml"))
    assert not same.mechanisms


def test_what_carries_a_users_packets_gives_way_to_a_bridge_of_roots():
    text = STUDY.format(explain="[rootless]").replace(
        "  sandbox:", "  rootless: {kind: podman, rootless: true, publish: true}\n  sandbox:"
    )
    arms = {arm.name: arm for arm in check(parse(text, "why.yaml")).arms}
    bridge = arms["rootless-without-user-mode-network"].options
    assert (bridge.rootless, bridge.joined, bridge.publish) == (False, "bridge", False)
    assert "rootless-without-address-translation" not in arms


def files_of(arm) -> object:
    return arm.options.open_files


@pytest.mark.parametrize(
    ("native", "limited", "value_of", "expected"),
    [
        ("", "shm_size: 1GiB", lambda arm: arm.shm_size, {("shm-size",): None}),
        ("", "variables: {MALLOC_ARENA_MAX: '1'}", lambda arm: arm.options.variables, {("variables",): {}}),
        ("", "resources: {cpus: 0.5}", lambda arm: arm.resources, {("cpu-limit",): None}),
        (
            "", "resources: {cpus: 0.5, cpu_period: 50ms}",
            lambda arm: arm.resources and (arm.resources.cpus, arm.resources.cpu_period),
            {("cpu-period",): (0.5, 0.01), ("cpu-period", "cpu-limit"): None},
        ),
        (", open_files: 64", "open_files: 4096", files_of, {("open-files",): 64}),
        (", open_files: 64", "publish: false", files_of, {("open-files",): 64}),
        ("", "open_files: 4096", files_of, {("open-files",): None}),
    ],
)  # fmt: skip
def test_what_an_environment_has_of_its_own_gives_way_to_what_the_others_have(
    native: str, limited: str, value_of: Callable[[Any], object], expected: dict[tuple[str, ...], object]
):
    text = STUDY.format(explain="[limited]").replace("resources: {cpus: 0.5}", limited)
    text = text.replace("native: {kind: native}", f"native: {{kind: native{native}}}")
    arms = check(parse(text, "why.yaml")).arms
    assert {arm.explains.off: value_of(arm) for arm in arms if arm.explains is not None} == expected


@pytest.mark.parametrize(
    "explain",
    [
        "[nothing]", "[native]", "[publised]", "{published: [secomp, own-network]}",
        "{published: [seccomp, seccomp]}", "{published: []}", "{published: seccomp}", "published",
        "{native: [seccomp, own-network]}",
    ],
)  # fmt: skip
def test_what_is_not_there_is_not_explained(explain):
    with raises_sentence(StudyError):
        checked(explain)


@pytest.mark.parametrize(
    ("client", "why"), [("here", ""), ("elsewhere", "takes over the address of the host's interface")]
)
def test_the_cost_of_some_clients_is_explained_with_these_alone(client: str, why: str):
    """Clients on another host reach a published port alone, where the machine keeps its interface."""
    text = why_study(read("first-look"), "native", "docker-published", "latency", client=client)
    study = check(parse(text, "why"))
    assert study.file.placement.clients == (client,) and {*study.file.hosts} == {"here", client}
    (refused,) = (each.refused for each in study.mechanisms if each.kind == "address-translation")
    assert why in refused if why else refused == ""


def test_a_tracer_needs_what_is_explained():
    traced = STUDY.replace("baseline: native\n", "baseline: native\ntrace: perf\n")
    assert check(parse(traced.format(explain="true"), "why.yaml")).file.trace == "perf"
    with pytest.raises(
        StudyError, match=r"trace: a tracer watches only environments that are explained\. Add 'explain: true'"
    ):
        check(parse(traced.format(explain="false"), "why.yaml"))
    with pytest.raises(StudyError, match="trace"):
        check(parse(traced.format(explain="true").replace("perf", "strace"), "why.yaml"))


def test_a_study_of_why_has_the_tracer_that_was_asked_for():
    source = parse(STUDY.format(explain="false"), "why.yaml")
    assert (
        check(parse(why_study(source, "native", "published", "rr", trace="bpftrace"), "w")).file.trace == "bpftrace"
    )
    assert check(parse(why_study(source, "native", "published", "rr"), "w")).file.trace is None
