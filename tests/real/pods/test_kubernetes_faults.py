"""What breaks in a cluster during a run: it goes on, or ends in seconds and says why; finished trials are kept."""

import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weighbridge.errors import EnvironmentLost
from weighbridge.features.kubernetes import objects
from weighbridge.features.kubernetes.session import LEASE_S
from weighbridge.launcher.launch import Launcher
from weighbridge.model.command import SITE_ENV, Command
from weighbridge.model.host import Host
from weighbridge.model.site import Site
from weighbridge.model.userland import Userland

from ..cluster import PAUSE, Cluster
from ..conftest import open_run
from ..kubernetes import NEEDS_CLUSTER, documented_role_given, made, opened_host, opened_pod
from ..weighing import Going, going, killed_after_a_trial, run_id, trials, weighbridge
from .test_kubernetes import study
from .test_kubernetes_storage import with_storage

pytestmark = [NEEDS_CLUSTER, pytest.mark.promise("a run goes on where the stream to a pod was cut")]
RUN, OTHER_RUN = "fa17fa17fa17", "fa17fa17fa18"
MIB = 2**20
TOLD_S = 10.0
LINES = "i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); sleep 0.05; done"


@pytest.fixture(scope="module")
def host(cluster: Cluster) -> Iterator[Host]:
    with open_run(RUN) as run, opened_host(cluster, run) as host:
        yield host


@contextlib.contextmanager
def pod(host: Host, userland: Userland, name: str = "0-pod-solo") -> Iterator[Site]:
    run = host.cluster.run  # type: ignore[attr-defined]
    with opened_pod(host, run, userland, name) as site:
        yield site


@pytest.fixture(scope="module")
def site(host: Host, small_userland: Userland) -> Iterator[Site]:
    with pod(host, small_userland) as site:
        yield site


def launcher_of(site: Site) -> Launcher:
    launcher: Launcher = site._launcher  # type: ignore[attr-defined]
    return launcher


def carrier_of(site: Site) -> int:
    pid: int = launcher_of(site)._stream._carrier.pid  # type: ignore[attr-defined]
    return pid


@contextlib.contextmanager
def going_on(site: Site, seconds: float) -> Iterator[None]:
    """A program that prints goes on in the site meanwhile; nothing of it is lost, and its time is its own."""
    lines = round(seconds / 0.05)
    running = site.start(Command(("sh", "-c", LINES % lines), deadline_s=120))
    yield
    assert running.wait(60)
    done = running.stop()
    assert done.returncode == 0 and done.text.splitlines() == [f"line {number}" for number in range(lines)]
    assert seconds < done.duration_s < 1.5 * seconds + 1, done.duration_s


def test_a_cut_in_the_middle_of_a_large_output_loses_nothing(site: Site):
    data = os.urandom(20 * MIB)
    stream = launcher_of(site)._stream
    for cuts in range(2):
        site.put("/tmp/big", data)
        running = site.start(Command(("cat", "/tmp/big"), 60))
        assert running.wait(20)
        os.kill(carrier_of(site), signal.SIGKILL)
        assert running.stop().stdout == data
        assert stream.disconnected_s > 0, cuts  # type: ignore[attr-defined]


def test_silence_is_found_within_seconds(site: Site):
    with going_on(site, 2):
        os.kill(carrier_of(site), signal.SIGSTOP)
        before = time.monotonic()
    assert 5 < time.monotonic() - before < 15


def test_kubelet_may_be_killed_in_a_trial(cluster: Cluster, site: Site):
    node = cluster.nodes[1]
    with going_on(site, 4):
        node.kill("kubelet")
        time.sleep(2)
        cluster.start_kubelets(node)


@contextlib.contextmanager
def api_server_away(cluster: Cluster, away_s: float) -> Iterator[None]:
    """It is killed, and started again after a while, or when the context ends; it answers afterwards."""
    cluster.nodes[0].kill("kube-apiserver")
    starter = threading.Timer(away_s, cluster.start_api_server)
    starter.start()
    try:
        yield
    finally:
        starter.join()
        cluster.eventually("the API server", lambda: cluster.kubectl("get", "--raw", "/readyz").returncode == 0)


@pytest.mark.parametrize("away_s", [3, *(pytest.param(each, marks=pytest.mark.long) for each in (1, 6, 30))])
def test_the_api_server_may_be_away_also_while_a_pod_is_opened(
    cluster: Cluster, small_userland: Userland, monkeypatch: pytest.MonkeyPatch, away_s: float
):
    for name, value in cluster.variables("tester").items():  # whom an API server that starts denies all at first
        monkeypatch.setenv(name, value)
    with (
        documented_role_given(cluster),
        open_run(OTHER_RUN) as run,
        opened_host(cluster, run) as host,
        opened_pod(host, run, small_userland) as site,
        going_on(site, away_s + 2),
        api_server_away(cluster, away_s),
        opened_pod(host, run, small_userland, "1-opened") as other,
    ):
        assert other.run(Command(("echo", "there"))).stdout == b"there\n"


def test_a_container_that_the_cluster_adds_is_told(
    cluster: Cluster, host: Host, small_userland: Userland, monkeypatch: pytest.MonkeyPatch
):
    def with_sidecar(request: objects.PodRequest) -> dict[str, Any]:
        manifest = objects.pod(request)
        sidecar = {"name": "istio-proxy", "image": PAUSE, "imagePullPolicy": "Never"}
        manifest["spec"]["containers"].insert(0, sidecar)
        return manifest

    monkeypatch.setattr("weighbridge.features.kubernetes.cluster.pod", with_sidecar)
    with pod(host, small_userland, "3-mesh") as site:
        assert site.run(Command(("echo", "there"))).stdout == b"there\n"
        facts = site.facts()
        assert (facts["containers added"], facts["images of added containers"]) == ("istio-proxy", PAUSE)
        with told("ended with exit code 137"):
            kill_container(cluster, site, "62")


def test_memory_that_is_out_ends_a_program_and_not_the_site(site: Site):
    done = site.run(Command(("sh", "-c", "head -c 500M /dev/zero | tail"), 60))
    assert done.returncode != 0 and site.meters()["oom_kills"] >= 1
    assert site.run(Command(("true",))).returncode == 0


@contextlib.contextmanager
def told(words: str, within_s: float = TOLD_S) -> Iterator[None]:
    before = time.monotonic()
    with pytest.raises(EnvironmentLost, match=words) as lost:
        yield
    took = time.monotonic() - before
    assert took < within_s and "\n" not in str(lost.value), (took, lost.value)


def kill_container(cluster: Cluster, site: Site, seconds: str) -> None:
    """Kill the first process of a site whose program sleeps for so long, as when the kernel kills all of it."""
    running = site.start(Command(("sleep", seconds), 90))
    first = f"P=$(pgrep --full --oldest '^sleep {seconds}'); ps -o ppid= -p $(ps -o ppid= -p $P)"
    cluster.nodes[1].must("sh", "-c", f"kill -KILL $({first})")
    running.wait(60)
    running.stop()


def test_a_pod_that_ends_is_told_in_the_clusters_words(cluster: Cluster, host: Host, small_userland: Userland):
    with pod(host, small_userland, "1-evicted") as site:
        name = f"weighbridge-{RUN}-1-evicted"
        where = f"/api/v1/namespaces/default/pods/{name}/eviction"
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
        with told("was deleted|not found"):
            running = site.start(Command(("sleep", "60"), 90))
            cluster.must("create", "--raw", where, "--filename", "-", stdin=json.dumps(eviction))
            running.wait(60)
            running.stop()
    with pod(host, small_userland, "2-killed") as site, told(r"ended with exit code 137"):
        kill_container(cluster, site, "61")


def test_two_runs_in_one_namespace_leave_each_other_alone(cluster: Cluster, site: Site, small_userland: Userland):
    with (
        open_run(OTHER_RUN) as run,
        opened_host(cluster, run) as other,
        opened_pod(other, run, small_userland) as its_site,
    ):
        assert its_site.run(Command(("echo", "other"))).stdout == b"other\n"
        assert site.run(Command(("echo", "one"))).stdout == b"one\n"
    assert site.run(Command(("echo", "still"))).stdout == b"still\n"
    cluster.eventually(
        "the other run's have gone", lambda: not [each for each in made(cluster) if OTHER_RUN in each[2]]
    )


@contextlib.contextmanager
def directly(site: Site) -> Iterator[Launcher]:
    """Another launcher in the site's pod, behind a bare ``kubectl exec``."""
    kubectl = site.host.cluster.kubectl  # type: ignore[attr-defined]
    carrier, stream = kubectl.talk(f"weighbridge-{RUN}-0-pod-solo", (objects.LAUNCHER,))
    try:
        with Launcher(stream, "bare", lambda: "it ended", SITE_ENV) as launcher:
            yield launcher
    finally:
        carrier.stop()


def seconds_of(launcher: Launcher) -> tuple[float, float, float]:
    """Of a request and its answer (median of 100), and of 20 MiB there and back (least of three)."""
    took, there, back = [], [], []
    for _ in range(100):
        began = time.monotonic()
        launcher.alone()
        took.append(time.monotonic() - began)
    for _ in range(3):
        began = time.monotonic()
        launcher.put("/tmp/big", bytes(20 * MIB))
        there.append(time.monotonic() - began)
        began = time.monotonic()
        launcher.read("/tmp/big")
        back.append(time.monotonic() - began)
    return statistics.median(took), min(there), min(back)


def test_a_session_costs_little(site: Site):
    with directly(site) as launcher:
        bare = seconds_of(launcher)
    ours = seconds_of(launcher_of(site))
    assert ours[0] < 3 * bare[0] + 0.002 and sum(ours[1:]) < 4 * sum(bare[1:]), (ours, bare)


@pytest.mark.long
@pytest.mark.usefixtures("unchanged")
def test_a_run_goes_on_through_faults(cluster: Cluster, tmp_path: Path):
    run, node = tmp_path / "run", cluster.nodes[1]
    with going(
        "run", study(cluster, tmp_path, 0, 1), "--rehearsal", "--out", run, "--yes", files=tmp_path
    ) as program:
        program.await_that(lambda: trials(run), "a trial is saved")
        node.kill("kubelet")
        time.sleep(1)
        cluster.start_kubelets(node)
        program.await_that(lambda: len(trials(run)) > 2, "another one is saved")
        ended = program.end()
    assert ended.code == 0 and "reconnected after" in ended.stderr, ended
    rows = trials(run)
    assert len(rows) == 8 and {row["outcome"] for row in rows} == {"ok"}, rows


def cut_all_streams(program: Going) -> None:
    """Kill each kubectl that carries a stream of the run."""
    parent = str(program.process.pid)
    found = subprocess.run(["pgrep", "--parent", parent, "--full", "kubectl .*exec"], capture_output=True, check=True)
    for pid in found.stdout.split():
        os.kill(int(pid), signal.SIGKILL)


@pytest.mark.long
@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("withdrawn", ["pods/exec", "all"])
def test_rights_may_be_withdrawn_until_a_stream_is_cut(cluster: Cluster, tmp_path: Path, withdrawn: str):
    run, tester = tmp_path / "run", cluster.variables("tester")
    path = study(cluster, tmp_path, 0, 1)
    with documented_role_given(cluster) as role:
        with going("run", path, "--rehearsal", "--out", run, "--yes", env=tester, files=tmp_path) as program:
            program.await_that(lambda: trials(run), "a trial is saved")
            rules = [each for each in role["rules"] if withdrawn not in each["resources"]]
            cluster.apply({**role, "rules": rules if withdrawn != "all" else []})
            saved = len(trials(run))
            program.await_that(lambda: len(trials(run)) > saved + 1, "it goes on")
            cut_all_streams(program)
            ended = program.end()
        ended.must_fail(8, 'is forbidden: User "tester"', "bind this user to a Role", "Finished trials are kept")
        assert len(trials(run)) > saved + 1
        if withdrawn == "all":
            refused = weighbridge("clean", "--run", run_id(run), env=tester)
            assert refused.code == 1 and 'is forbidden: User "tester"' in refused.stderr, refused
            cluster.apply(role)
        cleaned = weighbridge("clean", "--run", run_id(run), env=tester)
        assert cleaned.code == 0, cleaned


@pytest.mark.long
@pytest.mark.usefixtures("unchanged")
def test_a_node_may_be_drained_during_a_run(cluster: Cluster, tmp_path: Path):
    run, node = tmp_path / "run", cluster.nodes[0].name
    path = study(cluster, tmp_path, 0, 1)
    with going("run", path, "--rehearsal", "--out", run, "--yes", files=tmp_path) as program:
        program.await_that(lambda: trials(run), "a trial is saved")
        try:
            cluster.must("drain", node, "--force", "--delete-emptydir-data", "--timeout=60s")
            program.end().must_fail(8, f"node {node} is cordoned", "Finished trials are kept")
            kept = finished(run)
            assert kept
            again = weighbridge("run", "--out", run, "--rehearsal", "--yes")
            again.must_fail(4, "were unschedulable")
        finally:
            cluster.must("uncordon", node)
    again = weighbridge("run", "--out", run, "--rehearsal", "--yes")
    assert again.code == 0 and finished(run)[: len(kept)] == kept, again
    assert len({row[:3] for row in finished(run)}) == 8, again


def finished(run: Path) -> list[tuple[Any, ...]]:
    rows = [row for row in trials(run) if row["outcome"] == "ok"]
    return [(row["block"], row["workload"], row["environment"], row["started_at"]) for row in rows]


@pytest.mark.long
def test_a_pod_that_kubelet_evicts_is_told_in_its_words(cluster: Cluster, host: Host, small_userland: Userland):
    run = host.cluster.run  # type: ignore[attr-defined]
    with (
        with_storage(host, run, small_userland, 3, kind="empty-dir", size="8MiB") as site,
        told('Evicted: Usage of EmptyDir volume "data" exceeds the limit', 120),  # kubelet looks once a minute
    ):
        running = site.start(Command(("sh", "-c", "head -c 32M /dev/zero > /srv/file; sleep 300"), 300))
        running.wait(240)
        running.stop()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_clean_removes_what_a_run_leaves_that_was_killed_at_any_moment(cluster: Cluster, tmp_path: Path, seed: int):
    before, run = made(cluster), tmp_path / "run"
    path = study(cluster, tmp_path, 0, 1)
    with going("run", path, "--rehearsal", "--out", run, "--yes", files=tmp_path) as program:
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.process.wait(random.Random(seed).uniform(0.5, 25))
        program.end(signal.SIGKILL)
    cleaned = weighbridge("clean")
    assert cleaned.code == 0 and made(cluster) == before, cleaned


@pytest.mark.long
@pytest.mark.usefixtures("unchanged")
def test_a_killed_runs_pods_end_by_themselves(cluster: Cluster, tmp_path: Path):
    run = tmp_path / "run"
    path = study(cluster, tmp_path, 0, 1)
    killed_after_a_trial(path, run, tmp_path)
    mine = f"--selector=weighbridge.run={run_id(run)}"

    def phases() -> set[str]:
        return {each["status"]["phase"] for each in cluster.get("pods", mine)["items"]}

    cluster.eventually("all pods have ended", lambda: phases() == {"Succeeded"}, LEASE_S + 20)
    assert weighbridge("clean", "--run", run_id(run)).code == 0
