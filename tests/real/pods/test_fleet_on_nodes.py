"""A fleet on nodes of a real cluster that a Job holds: what it waits for is told, and nothing of it stays there."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weighbridge.features.fleets.folder import FleetFolder
from weighbridge.features.fleets.run_commands import fleet_status
from weighbridge.features.kubernetes.held_nodes import HOLDS_LABEL
from weighbridge.linux.detached import parsed

from ..cluster import NAMES, Cluster
from ..kubernetes import NEEDS_CLUSTER, onto_both_nodes
from ..weighing import Ended, facts, trials, weighbridge

pytestmark = [NEEDS_CLUSTER, pytest.mark.long]
PATIENCE_S = 120.0
STUDY = """study: nodes
question: What does the pods' network cost on each node?
hosts: {a: {kind: kubernetes}}
inside: [server, client]
resources: {cpus: 0.4, memory: 256MiB}
baseline: host
aa: false
environments:
  host: {kind: pod, network: host}
  pod:  {kind: pod}
workloads:
  rr:  {kind: netperf, test: TCP_RR, duration: 1s}
repetitions: {blocks: 2}
"""
QUEUE = "localqueues.kueue.x-k8s.io"
KUEUE: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": QUEUE},
    "spec": {
        "group": "kueue.x-k8s.io", "names": {"kind": "LocalQueue", "plural": "localqueues", "singular": "localqueue"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}  # fmt: skip
"""Of Kueue only that there are queues: who admits a Job is the test."""


def _submit(cluster: Cluster, folder: Path, name: str, *more: str) -> Ended:
    study = folder / "study.yaml"
    study.write_text(STUDY)
    where = ("--on", "kubernetes", "--nodes", "2", "--images", onto_both_nodes(cluster, folder))
    return weighbridge("fleet", "submit", study, *where, *more, "--out", folder / name, "--rehearsal", "--yes")


def _await(folder: Path, condition: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not condition(status := fleet_status(FleetFolder(folder))):
        assert time.monotonic() < deadline, (status, (folder / "drive.log").read_text())
        time.sleep(0.3)
    return status


@pytest.mark.usefixtures("unchanged")
def test_every_node_that_a_job_holds_is_measured_whatever_ends_its_driver(cluster: Cluster, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    done = _submit(cluster, tmp_path, "first")
    assert done.code == 0, done
    _await(first, lambda status: {run["state"] for run in status["runs"]} == {"running"})
    pods = cluster.get("pods", f"--selector={HOLDS_LABEL}")["items"]
    assert sorted(each["spec"]["nodeName"] for each in pods) == [*NAMES]
    assert _submit(cluster, tmp_path, "second").code == 0
    _await(second, lambda status: "match pod anti-affinity rules" in status["detail"])
    assert weighbridge("fleet", "cancel", second).code == 0
    assert fleet_status(FleetFolder(second))["driver"] == "ended"
    assert len(cluster.get("jobs")["items"]) == 1
    _await(first, lambda status: any(run["trials"] for run in status["runs"]))
    driver = parsed(json.loads((first / "fleet.json").read_text())["jobs"][-1])
    assert driver is not None
    os.kill(driver.pid, signal.SIGKILL)
    kept = {name: trials(first / "runs" / name) for name in NAMES}
    assert weighbridge("fleet", "continue", first, "--yes").code == 0
    status = _await(first, lambda status: status["driver"] == "ended")
    assert {run["name"]: run["state"] for run in status["runs"]} == dict.fromkeys(NAMES, "finished")
    for name in NAMES:
        rows = trials(first / "runs" / name)
        assert len(rows) == 4 and rows[: len(kept[name])] == kept[name]
        assert facts(first / "runs" / name)["host a", "node"] == name


@pytest.mark.usefixtures("unchanged")
def test_a_fleet_waits_for_a_node_that_is_cordoned_and_for_a_queue(cluster: Cluster, tmp_path: Path) -> None:
    cluster.must("cordon", NAMES[1])
    try:
        assert _submit(cluster, tmp_path, "cordoned").code == 0
        _await(tmp_path / "cordoned", lambda status: "1 of 2 are held" in status["detail"])
        assert "unschedulable" in fleet_status(FleetFolder(tmp_path / "cordoned"))["detail"]
        assert weighbridge("fleet", "cancel", tmp_path / "cordoned").code == 0
    finally:
        cluster.must("uncordon", NAMES[1])
    _submit(cluster, tmp_path, "queued", "--queue", "team").must_fail(4, "no Kueue")
    cluster.apply(KUEUE)
    try:
        cluster.must("wait", "--for=condition=Established", f"crd/{QUEUE}")
        cluster.apply({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", "metadata": {"name": "team"}})
        assert _submit(cluster, tmp_path, "queued", "--queue", "team").code == 0
        _await(tmp_path / "queued", lambda status: "suspended" in status["detail"])
        [job] = cluster.get("jobs")["items"]
        cluster.must(
            "patch", f"job/{job['metadata']['name']}", "--type=merge", '--patch={"spec": {"suspend": false}}'
        )
        _await(tmp_path / "queued", lambda status: status["machines"] == [*NAMES])
        assert weighbridge("fleet", "cancel", tmp_path / "queued").code == 0
    finally:
        cluster.must("delete", f"crd/{QUEUE}")


@pytest.mark.usefixtures("unchanged")
def test_a_quota_of_jobs_refuses_a_fleet_before_it_is_submitted(cluster: Cluster, tmp_path: Path) -> None:
    cluster.must("create", "quota", "few", "--hard=count/jobs.batch=0")
    try:
        cluster.eventually("the quota counts", lambda: "used" in cluster.get("quota/few").get("status", {}))
        _submit(cluster, tmp_path, "fleet").must_fail(4, "exceeded quota", "raise the quota")
    finally:
        cluster.must("delete", "quota/few")
    assert not (tmp_path / "fleet").exists()
