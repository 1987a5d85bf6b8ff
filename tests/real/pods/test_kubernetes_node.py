"""What is known of nodes and pods of a real cluster: readings over time, resources, facts, rights."""

import json
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.facts.site import about_site
from weighbridge.features.kubernetes import cleanup, survey
from weighbridge.features.kubernetes.kubectl import Kubectl
from weighbridge.meters import host as machine_counters
from weighbridge.meters.opened import meters
from weighbridge.model.command import Command
from weighbridge.model.facts import ASKED_CONFINEMENT, CONFINEMENT, NAMESPACES
from weighbridge.model.host import Limits
from weighbridge.model.site import Site, SiteRequest
from weighbridge.model.study import Meters
from weighbridge.model.userland import Userland
from weighbridge.runner import clean

from ..cluster import NAMES, Cluster
from ..conftest import open_run
from ..kubernetes import (
    NEEDS_CLUSTER,
    STRICT,
    documented_role_given,
    host_options,
    opened_host,
    opened_pod,
)
from ..weighing import facts, killed_after_a_trial, run_id, trials, weighbridge

pytestmark = [
    NEEDS_CLUSTER,
    pytest.mark.promise("pods of a cluster are measured, and nothing stays in it"),
]
RUN = "90d690d690d6"
SPIN = "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done"


@pytest.mark.usefixtures("unchanged")
def test_a_pod_and_its_node_are_read_over_time(cluster: Cluster, small_userland: Userland):
    with (
        open_run(RUN) as run,
        opened_host(cluster, run) as host,
        opened_pod(host, run, small_userland) as site,
        meters(Meters(), 10.0) as opened,
    ):
        meter = opened.of([host])[host.name]
        since, before = time.monotonic(), site.meters()
        assert site.sampler is not None
        meter.begin({"solo": site.scope()}, {"solo": site.sampler})
        busy = site.run(Command(("sh", "-c", SPIN)))
        taken, after = meter.end(since), site.meters()
    assert busy.usage is not None and taken.own_cpu_s is not None
    found = {each.name: each for each in taken.series if each.place == "solo"}
    cpu = found["cpu_share"]
    lasted = cpu.at_s[-1]
    area = sum(value * (at - start) for value, at, start in zip(cpu.values, cpu.at_s, (0.0, *cpu.at_s), strict=False))
    assert area == pytest.approx(after["cpu_s"] - before["cpu_s"], rel=0.1, abs=0.05)
    assert len(cpu.values) >= 7 * lasted and max(found["throttled_share"].values) > 0.01, "half a CPU"
    assert {"memory_anonymous_bytes", "pids_count"} <= found.keys()
    nodes = {each.name for each in taken.series if each.place == f"host {host.name}"}
    assert {"cpu_idle_share", "memory_available_bytes", "load1"} <= nodes
    print(f"readings took {taken.own_cpu_s:.4f} s of CPU time in {lasted:.1f} s, of a pod and its node")
    assert taken.own_cpu_s < 0.01 * lasted


@pytest.mark.usefixtures("unchanged")
def test_what_is_known_of_a_node_and_a_pod_is_told(cluster: Cluster, small_userland: Userland):
    with (
        open_run(RUN) as run,
        opened_host(cluster, run) as host,
        opened_pod(host, run, small_userland) as pod,
        opened_pod(host, run, small_userland, "1-host-solo", network="host") as on_node,
    ):
        facts = host.facts()
        namespaces = [about_site(site)[NAMESPACES] for site in (pod, on_node)]
    assert facts["kube-proxy mode"] == "iptables" and facts["CNI"] == "bridge" and facts["MTU"] == "1500", facts
    assert facts["Kubernetes"] == facts["kubelet"] and facts["Kubernetes"].startswith("v1.")
    assert facts["CPU manager"] == "none" and facts["clock source"] and facts["CPU"]
    own = {"ipc", "mnt", "pid"}
    assert [{*each.split()} & {*own, "net", "uts", "user"} for each in namespaces] == [{*own, "net", "uts"}, own]


@pytest.mark.usefixtures("unchanged")
def test_a_node_that_cannot_be_had_is_not_taken_or_told(cluster: Cluster):
    cluster.must("taint", "node", NAMES[0], "tests=x:NoSchedule")
    try:
        assert survey.usable_nodes(Kubectl()) == [NAMES[1]]
        assert survey.nodes(Kubectl()).detail.endswith("tainted: node-a")
        kind = registry.hosts()["kubernetes"]
        images = host_options(cluster, 1)["images"]
        options = kind.options.model_validate({"kind": "kubernetes", "images": images})
        with open_run(RUN) as run, kind.open("a", options, run, (options,)) as host:
            assert host.node_name == NAMES[1]  # type: ignore[attr-defined]
            read = machine_counters.read(file=host.read)
            assert 0 <= read["connection_table_share"] < 1
    finally:
        cluster.must("taint", "node", NAMES[0], "tests-")
    assert survey.node(Kubectl(), "node-c").detail == "the cluster has no node node-c: it has node-a, node-b"
    rows = survey.survey(Kubectl(namespace="nosuch"))
    assert [*rows] == ["API server", "namespace"] and 'namespaces "nosuch" not found' in rows["namespace"].detail


@pytest.mark.usefixtures("unchanged")
def test_pods_of_a_run_fit_on_a_small_node_and_into_a_quota(cluster: Cluster, small_userland: Userland):
    """Both want limits of every pod: those of this namespace are three CPUs in all."""
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "small"}},
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small", "namespace": "small"},
         "spec": {"hard": {"limits.cpu": 3, "limits.memory": "1Gi", "requests.cpu": 2, "requests.memory": "1Gi"}}},
    )  # fmt: skip
    environment = registry.environments()["pod"]
    with ExitStack() as stack:
        stack.callback(cluster.must, "delete", "namespace", "small")
        run = stack.enter_context(open_run(RUN))
        host = stack.enter_context(opened_host(cluster, run, namespace="small"))

        def opened(name: str, **options: str) -> Site:
            request = SiteRequest(
                run, host, name, "solo", small_userland, Limits(1, 64 << 20, "0"), separate_hosts=True
            )
            return stack.enter_context(environment.open(environment.options(**options), request))

        first, second = opened("0-a-solo"), opened("1-b-solo", quality="guaranteed")
        facts = first.facts()
        assert (facts["quality of service"], second.facts()["quality of service"]) == ("Burstable", "Guaranteed")
        assert facts["requests"] == f"50m cpu, {64 << 20} memory"
        assert facts["not honoured: pin"] == "kubelet chooses a pod's CPUs, according to its CPU manager policy none"
        assert "not honoured: cpus" not in facts
        with pytest.raises(Unavailable, match=r"exceeded quota.*limits.cpu=1,.*resources: cpus, memory"):
            opened("2-c-solo")


def own_state(cluster: Cluster) -> dict[str, Any]:
    """What each node has of its own beside its pods: processes but kernel's, mounts, control groups, folders."""
    look = (
        'for each in /proc/[0-9]*; do read -r comm < $each/comm && echo "process $comm"; done; '
        "cut -d' ' -f2 /proc/mounts; find /sys/fs/cgroup -mindepth 1 -type d -name '*weighbridge*'; "
        "ls -d /tmp/* /run/* /var/cache/* /var/lib/*"
    )
    return {node.name: sorted(node.run("sh", "-c", look).text.splitlines()) for node in cluster.nodes}


AS_ITS_PODS = (
    "nice; cat /proc/self/oom_score_adj /proc/self/limits; grep _allowed_list /proc/self/status; cd /sys/fs/cgroup; "
    "cat cpu/cpu.shares cpu/cpu.cfs_* memory/memory.limit_in_bytes memory/memory.swappiness pids/pids.max; "
    "readlink /proc/self/ns/net; find /proc/sys/net /proc/sys/vm -type f ! -name '*_count' -exec grep -H . {} +"
)
"""What of a program on a node (control groups of version 1) is to be as in a pod with its network."""


@pytest.mark.usefixtures("unchanged")
def test_native_on_a_node_is_the_node_itself_under_the_limits_of_pods(cluster: Cluster, small_userland: Userland):
    native = registry.environments()["native"]
    with open_run(RUN) as run, opened_host(cluster, run, privileged=True) as host, ExitStack() as stack:
        request = SiteRequest(
            run, host, "2-native-solo", "solo", small_userland, Limits(0.5, 128 << 20), separate_hosts=True
        )
        site = stack.enter_context(native.open(native.options(), request))
        pod = stack.enter_context(opened_pod(host, run, small_userland))
        on_node = stack.enter_context(opened_pod(host, run, small_userland, "1-host-solo", network="host"))
        seen = [each.run(Command(("sh", "-c", AS_ITS_PODS), 60)).text.splitlines() for each in (site, on_node)]
        assert len(seen[0]) > 500 and [*dict.fromkeys(seen[0])] == [*dict.fromkeys(seen[1])]
        assert host.read("/proc/1/comm") == site.read("/proc/1/comm") != pod.read("/proc/1/comm")
        about = about_site(site)
        assert {*about[NAMESPACES].split()} - {"cgroup"} == {"ipc", "mnt"}, "as native elsewhere"
        assert about["seccomp"] == "off" and about["capabilities"] != about_site(pod)["capabilities"]
        assert host.run(Command(("iptables-save", "-c"))).text.startswith("# Generated"), "the node's own rules"
        before = site.meters()
        busy = site.run(Command(("sh", "-c", SPIN)))
        after = site.meters()
        assert busy.usage is not None and "not honoured: cpus" not in site.facts()
        assert after["cpu_s"] - before["cpu_s"] >= 0.9 * (busy.usage.cpu_user_s + busy.usage.cpu_system_s)
        assert after["throttled_s"] > before["throttled_s"], "half a CPU"
        assert site.facts()["version: kernel"] == pod.facts()["version: kernel"] != ""
        assert "or more" in pod.facts()["not metered: time held back by the CPU limit, in full"]
        program = site.start(Command(("sh", "-c", "(sleep 60 & sleep 60) & wait"), deadline_s=60))
        program.wait(0.3)
        site.freeze()
        stopped = Command(("sh", "-c", "grep -l '^State:.T' /proc/[0-9]*/status | wc -l"))
        assert host.run(stopped).text == "3\n", "those of the site and no others of the node"
        site.thaw()
        assert host.run(stopped).text == "0\n" and program.stop().returncode < 0


@pytest.mark.long
@pytest.mark.usefixtures("unchanged")
def test_native_on_two_nodes_takes_the_path_of_pods_with_their_network(cluster: Cluster, tmp_path: Path):
    hosts = {name: host_options(cluster, node, privileged=True) for name, node in (("a", 0), ("b", 1))}
    path, run = tmp_path / "study.yaml", tmp_path / "run"
    path.write_text(
        "study: native\nquestion: Does it run?\nplacement: {client: a, server: b}\ninside: [server, client]\n"
        f"hosts: {json.dumps(hosts)}\nresources: {{cpus: 0.4, memory: 256MiB}}\nbaseline: native\naa: false\n"
        "environments: {native: {kind: native}, host: {kind: pod, network: host}, pod: {kind: pod}, "
        "service: {kind: pod, reach: service}}\n"
        "workloads: {rr: {kind: netperf, test: TCP_RR, duration: 1s}}\nrepetitions: {blocks: 1}\n"
    )
    ended = weighbridge("run", path, "--rehearsal", "--out", run, "--yes")
    assert ended.code == 0 and {row["outcome"] for row in trials(run)} == {"ok"}, ended
    told = facts(run)
    paths = {name: json.loads(told["path", f"{name}@a"]) for name in ("native", "host", "pod", "service")}
    assert paths["native"] == paths["host"] and paths["native"]["rules"] > 0
    assert [each["name"] for each in paths["native"]["interfaces"]] == ["eth0", "eth0"], "one of each node"
    assert paths["pod"]["routers"] == 2 and paths["service"]["translation"] == "destination"
    by_isolation = {*CONFINEMENT, ASKED_CONFINEMENT, "pod"}
    for role in ("client", "server"):
        native, host = (
            {(key, value) for (at, key), value in told.items() if at == f"{name}/{role}"}
            for name in ("native", "host")
        )
        assert {key for key, _ in native ^ host} <= by_isolation, native ^ host


@pytest.mark.usefixtures("unchanged")
def test_nothing_of_a_killed_run_with_native_sites_stays_on_the_node(cluster: Cluster, tmp_path: Path):
    before = own_state(cluster)
    path = pods_study(cluster, tmp_path, privileged=True)
    path.write_text(path.read_text().replace("environments: {", "environments: {native: {kind: native}, "))
    run = tmp_path / "run"
    killed_after_a_trial(path, run, tmp_path)
    cleaned = weighbridge("clean", "--run", run_id(run))
    assert cleaned.code == 0, cleaned
    cluster.eventually("the nodes are as before", lambda: own_state(cluster) == before)


@pytest.mark.usefixtures("unchanged")
def test_a_namespace_without_root_is_measured_without_it(cluster: Cluster, small_userland: Userland, tmp_path: Path):
    told = json.loads(weighbridge("doctor", "--cluster", "--namespace", STRICT, "--json").stdout)["cluster"]
    refused = {each["name"]: each["remedy"] for each in told if not each["ready"]}
    assert refused.keys() == {"pods", "pods with the node's network", "privileged pods"}
    assert "pod_security: restricted" in refused["pods"]
    planned = weighbridge("plan", pods_study(cluster, tmp_path, namespace=STRICT, pod_security="restricted"))
    assert planned.code != 0 and "no pod can use the node's network" in planned.stderr, planned
    with (
        open_run(RUN) as run,
        opened_host(cluster, run, namespace=STRICT, pod_security="restricted") as host,
        opened_pod(host, run, small_userland) as site,
    ):
        assert site.run(Command(("id", "-u"))).text == "65532\n" and site.facts()["user"] == "65532"
        site.put("/tmp/mine", b"1")
        about = about_site(site)
        assert about["seccomp"] != "off" and about["new privileges"] == "never" and site.meters()["cpu_s"] > 0
        assert "kubelet" in host.facts() and "network interface" not in host.facts()
    study = pods_study(cluster, tmp_path, namespace=STRICT, pod_security="baseline")
    study.write_text(study.read_text().replace("kind: pod, network: host", "kind: pod"))
    planned = weighbridge("plan", study, "--yes")
    told = " ".join((planned.stdout + planned.stderr).split())
    assert "host, pod: pods is forbidden: violates PodSecurity" in told, planned


@pytest.mark.usefixtures("unchanged")
def test_the_documented_role_is_enough(
    cluster: Cluster, small_userland: Userland, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    for name, value in cluster.variables("tester").items():
        monkeypatch.setenv(name, value)
    refused = weighbridge("doctor", "--cluster")
    assert "resources: [pods/exec], verbs: [create]" in " ".join(refused.stdout.split()), refused
    with documented_role_given(cluster):
        told = weighbridge("doctor", "--cluster", "--json")
        lacking = [each["name"] for each in json.loads(told.stdout)["cluster"] if not each["ready"]]
        assert lacking == [
            "Services", "NetworkPolicies", "volumes of a StorageClass", "Jobs that reserve nodes for a fleet",
        ]  # fmt: skip
        assert "a study must name its nodes" in told.stdout, told
        with open_run(RUN) as run, opened_host(cluster, run) as host, opened_pod(host, run, small_userland) as site:
            assert site.run(Command(("true",))).returncode == 0
            assert {"kernel", "node", "address"} <= host.facts().keys() and "kubelet" not in host.facts()
        study = pods_study(cluster, tmp_path, node=None)
        refused = weighbridge("run", study, "--out", tmp_path / "run", "--yes")
        assert "cluster: context tests (198.19.200.1:6443, user tester), namespace default" in refused.stderr
        assert (
            "this user is not allowed to list nodes" in refused.stderr
            and "a ClusterRole with rules" in refused.stderr
        )


def pods_study(cluster: Cluster, folder: Path, **more: Any) -> Path:
    host = {**host_options(cluster, 1), **more}
    path = folder / "study.yaml"
    path.write_text(
        "study: pods\nquestion: Does it run?\nbaseline: host\naa: false\nrepetitions: {blocks: 2}\n"
        f"hosts: {{a: {json.dumps({key: value for key, value in host.items() if value is not None})}}}\n"
        "environments: {host: {kind: pod, network: host}, pod: {kind: pod}}\n"
        "workloads: {cpu: {kind: sysbench-cpu, duration: 1s}}\n"
    )
    return path


@pytest.mark.usefixtures("unchanged")
def test_what_a_run_of_another_machine_left_is_removed(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    about = {"name": "left", "namespace": "default", "labels": {"weighbridge.run": "0a0b0c0d0e0f"}}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": about})
    kept = weighbridge("clean", "--cluster")
    assert kept.code == 0 and "less than 15 minutes ago" in kept.stderr, kept
    monkeypatch.setattr(cleanup, "STARTING_S", 0.0)
    assert abs((Kubectl().clock() - datetime.now(UTC)).total_seconds()) < 5
    inventory = clean.clean_cluster("", "default")
    assert [each.name for each in inventory.removed] == ["left"] and not inventory.left and not inventory.failures
