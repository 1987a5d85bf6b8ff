"""A fleet on the nodes of a real cluster: each is measured, at the same time, and nothing of it stays there."""

import json
import time
from pathlib import Path

import pytest

from ..cluster import NAMES, Cluster
from ..kubernetes import NEEDS_CLUSTER, onto_both_nodes
from ..weighing import facts, trials, weighbridge

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


@pytest.mark.usefixtures("unchanged")
def test_every_node_is_measured(cluster: Cluster, tmp_path: Path) -> None:
    study, folder = tmp_path / "study.yaml", tmp_path / "fleet"
    study.write_text(STUDY)
    where = ("--on", "kubernetes", "--images", onto_both_nodes(cluster, tmp_path))
    done = weighbridge("fleet", "submit", study, *where, "--out", folder, "--rehearsal", "--yes")
    assert done.code == 0, done
    deadline = time.monotonic() + PATIENCE_S
    while (status := json.loads(weighbridge("fleet", "status", folder, "--json").stdout))["driver"] != "ended":
        assert time.monotonic() < deadline, (status, (folder / "drive.log").read_text())
        time.sleep(0.5)
    assert {run["name"]: run["state"] for run in status["runs"]} == dict.fromkeys(NAMES, "finished")
    for name in NAMES:
        assert len(trials(folder / "runs" / name)) == 4
        assert facts(folder / "runs" / name)["host a", "node"] == name
