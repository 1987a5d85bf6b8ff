"""How pods reach each other on a real cluster: Services, node ports, policies, and what their paths are made of."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.analysis.paths import SCOPE
from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes import services
from weighbridge.features.kubernetes.environments.pod import policy
from weighbridge.features.kubernetes.objects import RUN_LABEL, object_name
from weighbridge.model.command import PublishedPort
from weighbridge.model.facts import NetworkPath
from weighbridge.model.host import Host, Limits, RunContext
from weighbridge.model.site import SiteRequest
from weighbridge.model.study import Role
from weighbridge.model.userland import Userland
from weighbridge.model.workload import Endpoint
from weighbridge.runner.programs import Programs
from weighbridge.runner.stage import Stage

from ..cluster import PROXY_RULES, Cluster
from ..conftest import kept_userland, open_run
from ..kubernetes import (
    NEEDS_CLUSTER,
    host_options,
    made,
    opened_host,
)
from ..weighing import IN_STORAGE_TESTS, facts, trials, weighbridge

pytestmark = [
    NEEDS_CLUSTER,
    pytest.mark.promise("a Service, a node port and a NetworkPolicy are measured as what they are"),
]
RUN = "90d590d590d7"
PORT = 20000
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
WORKLOADS = "\n".join((
    "  rr: {kind: netperf, test: TCP_RR, duration: 1s}",
    "  udp: {kind: netperf, test: UDP_RR, duration: 1s}",
))  # fmt: skip
SHORT: dict[str, dict[str, Any]] = {
    "redis-benchmark": {"requests": 1000, "clients": 2},
    "pgbench": {"scale": 1, "clients": 2, "duration": "1s", "warm_up": "0s"},
}
REFUSED = {
    "redis-benchmark": re.compile("NOAUTH|WRONGPASS"),
    "pgbench": re.compile("no password supplied|password authentication failed"),
}
ROLES: tuple[Role, ...] = ("server", "client")
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
@pytest.mark.parametrize("nodes", [pytest.param((0, 1), marks=pytest.mark.long), (1,)], ids=["two nodes", "one node"])
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
    assert translations == {"pod": "none", "service": "destination", "nodeport": "source and destination"}


@pytest.mark.usefixtures("unchanged")
def test_services_of_a_host_are_added_and_taken_by_its_node_and_go_with_the_run(cluster: Cluster):
    node, mine = cluster.nodes[1], f"--selector={RUN_LABEL}={RUN}"

    def led_to() -> str:
        """The node's rules by which Services with a pod behind them are reached."""
        rules = node.must(*PROXY_RULES[cluster.proxy]).splitlines()
        return "\n".join(rule for rule in rules if rule.startswith("-A KUBE-SERVICES") and "-j KUBE-SVC-" in rule)

    with open_run(RUN) as run, opened_host(cluster, run, services=50) as host:
        assert len([name for _, _, name in made(cluster) if services.is_added(RUN, name)]) == 50
        assert host.facts()["Services added"] == "50"
        names = [object_name(RUN, services.ADDED, str(number)) for number in services.tried(50)]
        rules = led_to()
        assert not [name for name in names if f"/{name} " not in rules], rules
    cluster.eventually("nothing of them is left", lambda: not cluster.get("services,endpointslices", mine)["items"])
    cluster.eventually("the node has forgotten them", lambda: RUN not in led_to())


@contextmanager
def opened(host: Host, run: RunContext, userland: Userland, name: str, role: Role, **options: Any) -> Iterator[Any]:
    environment = registry.environments()["pod"]
    ports = (PublishedPort("tcp", PORT, PORT),) if role == "server" else ()
    request = SiteRequest(run, host, name, role, userland, Limits(), ports, environment="policy", separate_hosts=True)
    with environment.open(environment.options.model_validate(options), request) as site:
        yield site


@contextmanager
def namespace(cluster: Cluster, name: str) -> Iterator[None]:
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        yield
    finally:
        cluster.must("delete", "namespace", name)


@pytest.mark.long
@pytest.mark.usefixtures("unchanged")
def test_a_policy_lets_only_the_client_through_and_is_refused_where_nothing_enforces_it(
    cluster: Cluster, small_userland: Userland, monkeypatch: pytest.MonkeyPatch
):
    allow = {"policy": "allow"}
    with (
        open_run(RUN) as run,
        opened_host(cluster, run, 0) as one,
        opened_host(cluster, run, 1) as other,
        opened(other, run, small_userland, "0-policy-server", "server", **allow) as server,
    ):
        with (
            monkeypatch.context() as patch,
            pytest.raises(Unavailable, match="does not enforce them"),
        ):
            patch.setattr(policy, "WITHIN_S", 3.0)
            with opened(one, run, small_userland, "1-policy-client", "client", **allow):
                pass
        with (
            cluster.policies_enforced(),
            namespace(cluster, "team"),
            opened_host(cluster, run, 0, namespace="team") as elsewhere,
            opened(one, run, small_userland, "3-other-client", "client") as stranger,
        ):
            for number, host in enumerate((one, elsewhere)):
                name = f"2-policy-client-{number}"
                with opened(host, run, small_userland, name, "client", **allow) as client:
                    assert policy.admits(server, server.own_address, client, PORT)
                    assert not policy.admits(server, server.own_address, stranger, PORT)
                    assert server.facts()["network policy"] == f"allows {name} alone"
        assert policy.admits(server, server.own_address, server, PORT)


@pytest.mark.long
@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("kind", ["redis-benchmark", "pgbench"])
def test_a_server_behind_a_service_lets_in_its_client_and_no_other_pod(
    cluster: Cluster, small_userland: Userland, kind: str
):
    in_storage = [each for name, each in registry.workloads().items() if name in IN_STORAGE_TESTS]
    userland = small_userland if kind == "redis-benchmark" else kept_userland(in_storage)
    workload = registry.workloads()[kind]
    options = workload.options.model_validate(SHORT[kind])
    with (
        open_run(RUN) as run,
        opened_host(cluster, run, 0) as one,
        opened_host(cluster, run, 1) as other,
        opened(one, run, userland, "0-client", "client") as client,
        opened(one, run, userland, "1-stranger", "client") as stranger,
    ):
        for number, reach in enumerate(("pod", "service", "nodeport"), 2):
            with opened(other, run, userland, f"{number}-{reach}-server", "server", reach=reach) as server:
                port = server.assigned_ports.get(PORT, PORT)
                way = partial(policy.admits, server, server.address, client, port)
                cluster.eventually("the Service leads to the server", way)
                at = Endpoint(server.listen, server.address, port, client.address, data="/tmp", password="1" * 32)
                programs = Programs(
                    workload, options, Stage({"server": server, "client": client}, dict.fromkeys(ROLES, at))
                )
                programs.prepare()
                programs.start_server()
                try:
                    done = client.run(workload.command("client", options, at))
                    assert done.returncode == 0, (reach, done)
                    for wrong in ("", "2" * 32):
                        refused = stranger.run(workload.command("client", options, replace(at, password=wrong)))
                        assert REFUSED[kind].search((refused.stdout + refused.stderr).decode()), (
                            reach,
                            wrong,
                            refused,
                        )
                finally:
                    programs.stop_server(quietly=True)


WHY = {
    "service": ("destination", "none"),
    "network-policy": ("allows 3-guarded-client alone, none", "none"),
    "cpu-limit": ("0.2 CPU, in each 100 ms", "0.4 CPU, in each 100 ms"),
    "own-network": ("ipc mnt net pid uts", "ipc mnt pid"),
}


@pytest.mark.long
@pytest.mark.usefixtures("unchanged")
def test_what_explain_switches_in_a_cluster_is_off(cluster: Cluster, tmp_path: Path):
    run = tmp_path / "run"
    environments = (
        "  pod: {kind: pod, network: host, resources: {cpus: 0.4}}\n"
        "  guarded: {kind: pod, reach: service, policy: allow, resources: {cpus: 0.2}}"
    )
    path = study(cluster, tmp_path, environments, RR, 0, 1)
    path.write_text(path.read_text() + "explain: true\nresources: {cpus: 0.4}\n")
    with cluster.policies_enforced():
        ended = weighbridge("run", path, "--rehearsal", "--out", run, "--yes")
    assert ended.code == 0, ended
    (explained,) = json.loads(weighbridge("report", run, "--json").stdout)["explanations"]
    proofs = {each["kind"]: each["proof"] for each in explained["mechanisms"]}
    assert {kind: (proof["with"], proof["without"]) for kind, proof in proofs.items()} == WHY
    assert {proof["state"] for proof in proofs.values()} == {"shown"}
