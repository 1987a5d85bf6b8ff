"""How pods reach each other on a real cluster: Services, node ports, policies, and what their paths are made of."""

import json
from pathlib import Path

import pytest

from weighbridge.analysis.paths import SCOPE
from weighbridge.model.facts import NetworkPath

from .cluster import NAMES, Cluster
from .kubernetes import (
    NEEDS_CLUSTER,
    host_options,
    module_cluster,  # noqa: F401 - a fixture
    unchanged_cluster,  # noqa: F401 - a fixture
)
from .weighing import facts, trials, weighbridge

pytestmark = [
    NEEDS_CLUSTER,
    pytest.mark.promise("a Service, a node port and a NetworkPolicy are measured as what they are"),
]
STUDY = """study: ways
question: What does the way to a pod cost?
hosts:
%s
placement: {client: a, server: %s}
inside: [server, client]
baseline: pod
aa: false
environments:
%s
workloads:
%s
repetitions: {blocks: 1}
"""
REACHES = "  pod: {kind: pod}\n  service: {kind: pod, reach: service}\n  nodeport: {kind: pod, reach: nodeport}"
POLICY = "  pod: {kind: pod}\n  policy: {kind: pod, policy: allow}"
WORKLOADS = "\n".join((
    "  tcp: {kind: iperf3, duration: 1s}",
    "  rr: {kind: netperf, test: TCP_RR, duration: 1s}",
    "  udp: {kind: netperf, test: UDP_RR, duration: 1s}",
))  # fmt: skip
RR = "  rr: {kind: netperf, test: TCP_RR, duration: 1s}"


def study(cluster: Cluster, folder: Path, environments: str, workloads: str, *nodes: int) -> Path:
    """Client and server on these nodes, on one where there is one."""
    hosts = {name: host_options(cluster, node) for name, node in zip("ab", nodes, strict=False)}
    path = folder / "study.yaml"
    lines = "\n".join(f"  {name}: {json.dumps(options)}" for name, options in hosts.items())
    path.write_text(STUDY % (lines, [*hosts][-1], environments, workloads))
    return path


def paths(run: Path) -> dict[str, NetworkPath]:
    every = {name: value for (scope, name), value in facts(run).items() if scope == SCOPE}
    return {name.partition("@")[0]: NetworkPath.model_validate_json(value) for name, value in every.items()}


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("nodes", [(0, 1), (1,)], ids=["two nodes", "one node"])
def test_pods_are_measured_by_every_way_to_them(cluster: Cluster, tmp_path: Path, nodes: tuple[int, ...]):
    run = tmp_path / "run"
    path = study(cluster, tmp_path, REACHES, WORKLOADS if len(nodes) > 1 else RR, *nodes)
    ended = weighbridge("run", path, "--rehearsal", "--out", run, "--yes")
    assert ended.code == 0, ended
    assert {row["outcome"] for row in trials(run)} == {"ok"}, trials(run)
    told = facts(run)
    assert told["service/server", "Service's address"].startswith("10.96.")
    assert told["nodeport/server", "reach"] == "NodePort"
    translations = {name: way.translation for name, way in paths(run).items()}
    print(translations)


def test_a_policy_is_refused_where_nothing_enforces_it_and_measured_where_something_does(
    cluster: Cluster, tmp_path: Path, unchanged: None
):
    path = study(cluster, tmp_path, POLICY, RR, 0, 1)
    refused = weighbridge("run", path, "--rehearsal", "--out", tmp_path / "refused", "--yes")
    assert refused.code != 0 and "does not enforce them" in refused.stderr, refused
    cluster.enforce_policies()
    run = tmp_path / "run"
    ended = weighbridge("run", path, "--rehearsal", "--out", run, "--yes")
    assert ended.code == 0, ended
    assert {row["outcome"] for row in trials(run)} == {"ok"}, trials(run)
    assert facts(run)["policy/server", "network policy"].startswith("allows ")
    assert NAMES[1] == facts(run)["policy/server", "node"]
