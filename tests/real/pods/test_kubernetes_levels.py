"""Whole studies in namespaces that enforce a level of Pod Security: what is measured there, and what is refused."""

import json
from pathlib import Path

import pytest

from weighbridge.registry import workloads

from ..cluster import Cluster
from ..conftest import kept_userland
from ..kubernetes import NEEDS_CLUSTER, host_options
from ..weighing import IN_STORAGE_TESTS, facts, trials, weighbridge
from .test_kubernetes_network import namespace
from .test_kubernetes_storage import link_userland

pytestmark = [
    NEEDS_CLUSTER,
    pytest.mark.long,  # two studies at each level
    pytest.mark.promise("studies are measured under Pod Security's levels, and what these refuse is told"),
]
STUDY = """study: level
question: What is measured here?
hosts: {a: %s}
inside: [server, client]
resources: {cpus: 0.5, memory: 512MiB}
baseline: pod
aa: false
environments:
  pod: {kind: pod}
%s
workloads:
%s
repetitions: {blocks: 1}
"""
NETWORK = (
    "  service: {kind: pod, reach: service}",
    "  rr: {kind: netperf, test: TCP_RR, duration: 1s}\n  redis: {kind: redis-benchmark, requests: 2000, clients: 5}",
)
STORAGE = (
    "  layer: {kind: pod, storage: layer, optional: true}\n"
    "  path: {kind: pod, storage: {kind: host-path, path: /var/tmp}, optional: true}",
    "  file: {kind: fio, file_size: 8MiB, fsync: 4, cold: false, duration: 1s}\n"
    "  sql: {kind: pgbench, scale: 1, clients: 2, duration: 1s, warm_up: 0s}",
)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_a_study_is_measured_at_a_level_of_pod_security(cluster: Cluster, cache: Path, tmp_path: Path, level: str):
    link_userland(cache, ("fio", "pgbench"), kept_userland(workloads()[kind] for kind in IN_STORAGE_TESTS))
    with namespace(cluster, level):
        cluster.must("label", "namespace", level, f"pod-security.kubernetes.io/enforce={level}")
        host = json.dumps(host_options(cluster, 0, namespace=level, pod_security=level))
        outcomes: dict[tuple[str, str], str] = {}
        for name, (environments, measured) in {"network": NETWORK, "storage": STORAGE}.items():
            study, run = tmp_path / f"{name}.yaml", tmp_path / name
            study.write_text(STUDY % (host, environments, measured))
            ended = weighbridge("run", study, "--rehearsal", "--out", run, "--yes")
            if (name, level) == ("storage", "restricted"):
                assert ended.code == 4 and "'storage: layer' belongs to root" in ended.stderr, ended
            else:
                assert ended.code == 0 and facts(run)["host a", "pods"] == f"of level {level}", ended
            outcomes |= {(row["environment"], row["workload"]): row["outcome"] for row in trials(run)}
        [note] = [line for line in ended.stderr.splitlines() if line.startswith("note: path is skipped")]
        assert "hostPath" in note and "pod_security" not in note
    measured = {("pod", "rr"), ("service", "rr"), ("pod", "redis"), ("service", "redis")}
    if level == "baseline":
        measured |= {("pod", "file"), ("pod", "sql"), ("layer", "file"), ("layer", "sql")}
    assert outcomes == dict.fromkeys(measured, "ok")
