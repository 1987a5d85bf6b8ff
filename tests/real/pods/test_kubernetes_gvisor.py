"""Pods under gVisor (a RuntimeClass): what is said of them is so, and nothing of their sandboxes stays."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge.errors import EnvironmentLost
from weighbridge.linux import process
from weighbridge.model.command import Command
from weighbridge.model.site import Site
from weighbridge.model.userland import Userland

from ..cluster import GVISOR, Cluster
from ..conftest import open_run
from ..kubernetes import NEEDS_CLUSTER, host_options, opened_host, opened_pod
from ..weighing import facts, killed_after_a_trial, run_id, trials, weighbridge
from .test_kubernetes import must_stop
from .test_kubernetes_storage import with_storage

LACKING = [program for program in GVISOR if process.which(program) is None]
pytestmark = [
    NEEDS_CLUSTER,
    pytest.mark.skipif(bool(LACKING), reason=f"needs {', '.join(LACKING)}: make gvisor"),
    pytest.mark.promise("a pod under gVisor is stopped, limited and told as what it is, and leaves nothing"),
    pytest.mark.long,
]
RUN = "90d590d590da"
BUSY = Command(("sh", "-c", "for n in 1 2; do timeout 2 sh -c 'while :; do :; done' & done; wait"))
STUDY = """study: sandbox
question: What does gVisor cost in a pod?
hosts: {a: %s}
resources: {cpus: 0.4, memory: 256MiB}
baseline: pod
aa: false
environments:
  pod: {kind: pod}
  sandbox: {kind: pod, runtime_class: gvisor}
workloads:
  cpu: {kind: sysbench-cpu, duration: 1s}
  tcp: {kind: iperf3, duration: 1s}
repetitions: {blocks: 1}
"""


@pytest.fixture(scope="module", autouse=True)
def runtime_class(cluster: Cluster) -> Iterator[None]:
    about = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gvisor"}}
    cluster.apply({**about, "handler": "runsc"})
    yield
    cluster.must("delete", "runtimeclass", "gvisor")


@pytest.fixture(autouse=True)
def no_sandbox_is_left(cluster: Cluster, unchanged: None) -> Iterator[None]:
    yield
    cluster.eventually("no sandbox is left", lambda: all(not sandboxes(cluster, number) for number in (0, 1)))


def sandboxes(cluster: Cluster, node: int) -> list[str]:
    return cluster.nodes[node].run("pgrep", "-f", "runsc").text.split()


def cpu_s_on(cluster: Cluster, node: int) -> float:
    """What all pods of a node used, as the node's kernel counts it."""
    [file] = Path("/sys/fs/cgroup").glob(f"cpuacct{cluster.nodes[node].group}/cpuacct.usage")
    return int(file.read_text()) / 1e9


def test_a_sandbox_is_limited_and_stopped_and_its_own_counters_are_not_believed(
    cluster: Cluster, small_userland: Userland
):
    with (
        open_run(RUN) as run,
        opened_host(cluster, run) as host,
        opened_pod(host, run, small_userland, runtime_class="gvisor") as site,
    ):
        told = site.facts()
        assert told["version: kernel"].endswith("gvisor") != host.facts()["kernel"].endswith("gvisor")
        assert [key for key in told if key.startswith(("not honoured", "not metered"))] == [
            "not metered: CPU time, memory and time held back"
        ]
        assert site.meters() == {} and [*site.scope()] == ["net"]
        before, began = cpu_s_on(cluster, 1), time.monotonic()
        busy = site.run(BUSY)
        used_s, took_s = cpu_s_on(cluster, 1) - before, time.monotonic() - began
        assert busy.usage is None
        assert 0.1 * took_s < used_s < 0.65 * took_s, "half a CPU"
        must_stop(site)
        with pytest.raises(EnvironmentLost, match="OOMKilled"):
            site.run(Command(("sh", "-c", "head -c 400000000 /dev/zero | tail -c 390000000 | wc -c")))


def holding(cluster: Cluster, site: Site, name: str) -> str:
    """Write a file to its data and sync it; return what is where a node's disk has it."""
    done = site.run(Command(("sh", "-c", f"echo weighed > /srv/{name} && sync /srv/{name} && stat -fc %T /srv")))
    assert done.returncode == 0, done
    return process.run(Command(("find", str(cluster.nodes[1].data), "-name", name, "-exec", "cat", "{}", "+"))).text


def test_what_a_sandbox_syncs_is_on_the_node_but_for_its_layer(cluster: Cluster, small_userland: Userland):
    gvisor = {"runtime_class": "gvisor"}
    with open_run(RUN) as run, opened_host(cluster, run) as host:
        with with_storage(host, run, small_userland, 0, gvisor, kind="empty-dir", size="64MiB") as site:
            assert holding(cluster, site, "weighed-volume") == "weighed\n"
        with with_storage(host, run, small_userland, 1, gvisor, kind="layer") as site:
            assert holding(cluster, site, "weighed-layer") == ""


def test_a_sandbox_is_measured_beside_a_usual_pod(cluster: Cluster, tmp_path: Path):
    path, run, killed = tmp_path / "study.yaml", tmp_path / "run", tmp_path / "killed"
    path.write_text(STUDY % json.dumps(host_options(cluster, 0)))
    ended = weighbridge("run", path, "--rehearsal", "--out", run, "--yes")
    assert ended.code == 0, ended
    rows = trials(run)
    assert len(rows) == 4 and {row["outcome"] for row in rows} == {"ok"}, rows
    assert facts(run)["sandbox/server", "runtime class"] == "gvisor"
    assert "not metered: CPU time, memory" in weighbridge("report", run, "--all").stdout.replace("\n", " ")
    print(*((row["environment"], row["workload"], row["flags"]) for row in rows), sep="\n")
    print(weighbridge("report", run, "--all").stdout)
    killed_after_a_trial(path, killed, tmp_path)
    cleaned = weighbridge("clean", "--run", run_id(killed))
    assert cleaned.code == 0, cleaned
