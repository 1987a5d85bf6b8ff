"""Pods of a real cluster: what is measured, what is told where it cannot be, and that nothing is left."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.model.command import Command
from weighbridge.model.host import Limits
from weighbridge.model.site import Site, SiteRequest
from weighbridge.model.userland import Userland

from ..cluster import NAMES, Cluster
from ..conftest import open_run
from ..kubernetes import (
    NEEDS_CLUSTER,
    STRICT,
    host_options,
    made,
    onto_both_nodes,
    opened_host,
    opened_pod,
)
from ..weighing import facts, going, killed_after_a_trial, run_id, trials, weighbridge

pytestmark = [
    NEEDS_CLUSTER,
    pytest.mark.promise("pods of a cluster are measured, and nothing stays in it"),
]
RUN = "90d590d590d6"
STUDY = """study: pods
question: What does the pods' network cost?
hosts:
%s
placement: {client: a, server: %s}
inside: [server, client]
resources: {cpus: 0.4, memory: 256MiB}
baseline: host
aa: false
environments:
  host: {kind: pod, network: host}
  pod:  {kind: pod}
workloads:
  tcp: {kind: iperf3, duration: 1s}
  rr:  {kind: netperf, test: TCP_RR, duration: 1s}
repetitions: {blocks: 2}
"""

ON_DISK = """study: disk
question: What does the pods' disk cost?
hosts: {a: %s}
resources: {cpus: 0.4, memory: 256MiB}
baseline: path
aa: false
environments:
  path: {kind: pod, storage: {kind: host-path, path: %s}}
workloads:
  write: {kind: dd, file_size: 1MiB}
repetitions: {blocks: 8}
"""

COMMANDS = """study: commands
question: What does a command in a pod cost?
hosts: {a: %s}
resources: {cpus: 0.4, memory: 256MiB}
baseline: native
aa: false
environments:
  native: {kind: native}
  pod:    {kind: pod}
workloads:
  exec: {kind: exec, commands: 3}
repetitions: {blocks: 2}
"""


def study(cluster: Cluster, folder: Path, *nodes: int, **more: Any) -> Path:
    """Client and server on these nodes, on one where there is one."""
    hosts = {name: host_options(cluster, node, **more) for name, node in zip("ab", nodes, strict=False)}
    path = folder / "study.yaml"
    lines = "\n".join(f"  {name}: {json.dumps(options)}" for name, options in hosts.items())
    path.write_text(STUDY % (lines, [*hosts][-1]))
    return path


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("nodes", [(0, 1), pytest.param((1,), marks=pytest.mark.long)], ids=["two nodes", "one node"])
def test_the_network_of_pods_is_measured_against_the_nodes_own(
    cluster: Cluster, tmp_path: Path, nodes: tuple[int, ...]
):
    run = tmp_path / "run"
    ended = weighbridge("run", study(cluster, tmp_path, *nodes), "--rehearsal", "--out", run, "--yes")
    assert ended.code == 0, ended
    rows = trials(run)
    assert len(rows) == 8 and {row["outcome"] for row in rows} == {"ok"}, rows
    assert "no-readings" not in str([row["flags"] for row in rows])
    told = facts(run)
    assert told["host a", "node"] == NAMES[nodes[0]] and told["host a", "kubelet"].startswith("v1.")
    assert told["pod/server", "node"] == NAMES[nodes[-1]] and told["pod/server", "quality of service"] == "Burstable"
    assert (told["host/server", "network"], told["pod/server", "network"]) == ("host", "pod")
    networks = "net" in told["pod/server", "namespaces"].split(), "net" in told["host/server", "namespaces"].split()
    assert networks == (True, False), "by the kernel's own numbers"


@pytest.mark.usefixtures("unchanged")
def test_commands_start_in_an_open_pod(cluster: Cluster, tmp_path: Path):
    run, path = tmp_path / "run", tmp_path / "study.yaml"
    path.write_text(COMMANDS % json.dumps(host_options(cluster, 0, privileged=True)))
    ended = weighbridge("run", path, "--rehearsal", "--out", run, "--yes")
    assert ended.code == 0, ended
    rows = trials(run)
    assert len(rows) == 4 and {row["outcome"] for row in rows} == {"ok"}, rows
    times = {row["environment"]: (run / f"raw/{row['id']:06d}.solo.stdout").read_text() for row in rows}
    first = {name: int(text.split("end ")[1].split()[0]) for name, text in times.items()}
    assert first["native"] < first["pod"], "kubectl sends each command through the API server"


@pytest.mark.long
@pytest.mark.usefixtures("unchanged")
def test_a_server_and_its_client_are_weighed_on_two_nodes(cluster: Cluster, tmp_path: Path):
    run = tmp_path / "run"
    where = ("--cluster", "--in", "pod,service", "--images", onto_both_nodes(cluster, tmp_path))
    server = ("--server", "redis-server --bind {listen} --port {port} --protected-mode no")
    client = ("redis-benchmark", "-h", "{address}", "-p", "{port}", "-n", "1000", "-t", "set", "-q")
    size = ("--rehearsal", "--blocks", "1", "--out", run)
    ended = weighbridge("weigh", *where, *size, *server, "--", *client)
    assert ended.code == 0, ended
    rows = trials(run)
    assert {row["environment"] for row in rows} == {"host", "host-again", "pod", "service"}, rows
    assert {row["outcome"] for row in rows} == {"ok"}, rows
    told = facts(run)
    assert {told["host a", "node"], told["host b", "node"]} == {*NAMES}
    assert (told["host/server", "network"], told["service/server", "reach"]) == ("host", "Service")


@pytest.mark.usefixtures("unchanged")
def test_what_a_killed_run_leaves_is_deleted_by_clean(cluster: Cluster, tmp_path: Path):
    """A folder of the node before the ConfigMap, which the pod that removes it needs."""
    run, disk, path = tmp_path / "run", tmp_path / "disk", tmp_path / "study.yaml"
    disk.mkdir()
    path.write_text(ON_DISK % (json.dumps(host_options(cluster, 0)), disk))
    killed_after_a_trial(path, run, tmp_path)
    run_name = run_id(run)
    assert weighbridge("clean", "--check", "--run", run_name).code != 0
    assert [*disk.iterdir()]
    cleaned = weighbridge("clean", "--run", run_name)
    assert cleaned.code == 0 and f"removed: Kubernetes ConfigMap weighbridge-{run_name}" in cleaned.stdout, cleaned
    assert not [*disk.iterdir()]


@pytest.mark.long
@pytest.mark.usefixtures("unchanged")
def test_a_pod_that_is_deleted_ends_the_run_and_keeps_its_trials(cluster: Cluster, tmp_path: Path):
    run = tmp_path / "run"
    path = study(cluster, tmp_path, 0, 1)
    with going("run", path, "--rehearsal", "--out", run, "--yes", files=tmp_path) as run_going:
        run_going.await_that(lambda: trials(run), "a trial is saved")
        [server] = [name for kind, _, name in made(cluster) if kind == "Pod" and name.endswith("pod-server")]
        cluster.must("delete", "pod", server, "--force", "--grace-period=0")
        ended = run_going.end()
    assert trials(run) and "Traceback" not in ended.stderr
    assert ended.code != 0, ended
    again = weighbridge("run", "--out", run, "--rehearsal", "--yes")
    assert again.code == 0, again


def test_doctor_says_what_refuses_pods(cluster: Cluster):
    assert weighbridge("doctor", "--cluster").code == 0
    mine = weighbridge("doctor", "--cluster", "--json")
    assert '"ready": false' not in mine.stdout, mine
    tester = weighbridge("doctor", "--cluster", env=cluster.variables("tester"))
    assert "create pods/exec" in tester.stdout.replace("\n", " "), tester


@pytest.mark.usefixtures("unchanged")
def test_what_the_cluster_refuses_is_told_by_plan_before_anything_is_made(cluster: Cluster, tmp_path: Path):
    refused = weighbridge("run", study(cluster, tmp_path, 0, 1, namespace=STRICT), "--out", tmp_path / "run", "--yes")
    assert refused.code == 4 and "violates PodSecurity" in refused.stderr, refused


@pytest.mark.usefixtures("unchanged")
def test_a_site_is_as_every_other(cluster: Cluster, small_userland: Userland):
    with (
        open_run(RUN) as run,
        opened_host(cluster, run) as host,
        opened_pod(host, run, small_userland) as site,
    ):
        done = site.run(Command(("sh", "-c", "echo out; echo err >&2; exit 3")))
        assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
        assert site.run(Command(("nosuch",))).error
        site.put("/tmp/big", os.urandom(20 << 20))
        assert len(site.read("/tmp/big")) == 20 << 20
        with pytest.raises(OSError, match="Read-only"):
            site.put("/etc/new", b"")
        used = site.meters()
        busy = site.run(Command(("sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")))
        assert busy.usage is not None
        later = site.meters()
        assert later["cpu_s"] - used["cpu_s"] >= 0.9 * (busy.usage.cpu_user_s + busy.usage.cpu_system_s)
        assert later["throttled_s"] > used["throttled_s"], "half a CPU"
        assert later["memory_bytes"] > 20 << 20
        must_stop(site)


def must_stop(site: Site) -> None:
    """A program of a frozen site does nothing, and goes on when it is thawed."""
    program = site.start(Command(("sh", "-c", "while :; do echo x; sleep 0.02; done"), deadline_s=60))
    printing(program)
    site.freeze()
    before = program.printed()[0]
    assert not program.wait(0.5) and program.printed()[0] == before
    site.thaw()
    printing(program)
    site.freeze()
    site.thaw()
    assert program.stop().returncode < 0


def printing(program: Any) -> None:
    before = program.printed()[0]
    for _ in range(100):
        program.wait(0.05)
        if len(program.printed()[0]) > len(before) + 4:
            return
    pytest.fail("it prints nothing")


@pytest.mark.usefixtures("unchanged")
def test_a_deleted_pod_is_a_lost_environment_in_the_clusters_words(cluster: Cluster, small_userland: Userland):
    with open_run(RUN) as run, opened_host(cluster, run) as host, opened_pod(host, run, small_userland) as site:
        cluster.must("delete", "pod", f"weighbridge-{RUN}-0-pod-solo", "--force", "--grace-period=0")
        with pytest.raises(EnvironmentLost, match=r"not found|was deleted"):
            site.run(Command(("sleep", "60")))


@pytest.mark.usefixtures("unchanged")
def test_why_a_pod_cannot_be_had_is_told_at_once(cluster: Cluster, small_userland: Userland):
    with open_run(RUN) as run, opened_host(cluster, run) as host:
        with (
            pytest.raises(Unavailable, match=r"RuntimeClass.*gvisor"),
            opened_pod(host, run, small_userland, runtime_class="gvisor"),
        ):
            pass
        environment = registry.environments()["pod"]
        request = SiteRequest(run, host, "1-big", "solo", small_userland, Limits(cpus=99))
        guaranteed = environment.options(quality="guaranteed")
        with pytest.raises(Unavailable, match="Insufficient cpu"), environment.open(guaranteed, request):
            pass
    other = registry.hosts()["kubernetes"].options.model_validate({"kind": "kubernetes", "node": "node-z"})
    with (
        open_run(RUN) as run,
        pytest.raises(Unavailable, match="has no node node-z: it has node-a, node-b"),
        registry.hosts()["kubernetes"].open("a", other, run, (other,)),
    ):
        pass
