"""The cluster of the tests: two real nodes, traffic between pods and through Services, policies; nothing is left."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.linux import process
from weighbridge.runner import clean

from . import cluster as clusters
from .cluster import NAMES, PAUSE, PROXY_RULES, READY_S, RUN, Cluster, pod
from .conftest import kept_userland
from .machine import Machine

pytestmark = [
    pytest.mark.skipif(bool(clusters.missing()), reason=clusters.missing()),
    pytest.mark.promise("a cluster of the tests has two nodes, and leaves nothing"),
]
ROOT = Path(__file__).parents[2]
IMAGE = "docker.io/library/userland:1"
PORT, NODE_PORT = 5201, 30_201
PATIENCE_MS = 1500
CLIENT, SERVER = NAMES
TICKS = ("sh", "-c", "while true; do echo tick; sleep 0.11; done")


def test_a_killed_cluster_is_cleaned_away(tmp_path: Path):
    """First: the others' cluster has the same addresses."""
    before = Machine.as_it_is()
    command = (sys.executable, "-m", "tests.real.cluster")
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None and clusters.PROGRAMS is not None
        told = next((line for line in started.stdout if "KUBECONFIG" in line), "")
        kubeconfig = Path(told.partition("KUBECONFIG=")[2].split()[0])
        cluster = Cluster(kubeconfig.parent, clusters.PROGRAMS, (), "iptables")
        cluster.run_pods(pod("pod", CLIENT, "/pause", image=PAUSE))
        started.send_signal(signal.SIGKILL)
    inventory = clean.clean(RUN)
    assert inventory.removed and not inventory.left and not inventory.failures
    before.must_be_unchanged()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One that has an image of a userland, a client on the first node and a server with a Service on the second."""
    folder = tmp_path_factory.mktemp("cluster")
    userland = kept_userland([registry.workloads()["iperf3"]])
    before = Machine.as_it_is()
    with clusters.two_nodes(folder) as cluster:
        archive = clusters.image_of("userland:1", [userland.archive().read_bytes()], folder)
        cluster.load(archive)
        archive.unlink()
        ports = [{"port": PORT, "nodePort": NODE_PORT}]
        service = {"selector": {"app": "server"}, "type": "NodePort", "ports": ports}
        cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "server"}, "spec": service})
        cluster.run_pods(
            pod("client", CLIENT, "sleep", "infinity", image=IMAGE),
            pod("server", SERVER, "iperf3", "--server", image=IMAGE),
        )
        yield cluster
    before.must_be_unchanged()


def reaches(cluster: Cluster, address: str) -> bool:
    """Whether something of a million bytes of the client's iperf3 arrives at the server."""
    patience = ("--connect-timeout", str(PATIENCE_MS))
    done = cluster.exec("client", "iperf3", "--client", address, "--bytes", "1000000", "--json", *patience)
    end = json.loads(done.text)["end"] if done.returncode == 0 else {}
    return end.get("sum_received", {}).get("bytes", 0) > 0  # it has none where the connection was cut


def answers(address: str) -> bool:
    """Whether a node's port of the Service answers this machine."""
    try:
        with socket.create_connection((address, NODE_PORT), PATIENCE_MS / 1000):
            return True
    except OSError:
        return False


def rules(cluster: Cluster, mode: str) -> list[str]:
    """What each node has of kube-proxy's rules in a mode."""
    return [node.run(*PROXY_RULES[mode]).text for node in cluster.nodes]


@contextmanager
def printing(cluster: Cluster) -> Iterator[process.Process]:
    """A kubectl that has passed on the first output of a program of the server's pod, which prints without end."""
    started = process.Process(cluster.command("exec", "server", "--", *TICKS))
    try:
        cluster.eventually("it prints", lambda: b"tick" in started.output_so_far())
        yield started
    finally:
        started.stop()


def test_two_nodes_are_ready(cluster: Cluster):
    nodes = {node["metadata"]["name"]: node["status"] for node in cluster.get("nodes")["items"]}
    assert {*nodes} == {*NAMES}
    version = json.loads(cluster.must("version", "--output", "json"))["serverVersion"]["gitVersion"]
    for status in nodes.values():
        assert {each["type"]: each["status"] for each in status["conditions"]}["Ready"] == "True", status
        assert status["nodeInfo"]["kubeletVersion"] == version
        assert status["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")


def test_a_user_may_do_what_its_group_may(cluster: Cluster):
    may = {user: cluster.kubectl("auth", "can-i", "create", "pods", user=user).text for user in ("admin", "tester")}
    assert may == {"admin": "yes\n", "tester": "no\n"}


def test_pods_of_two_nodes_reach_each_other(cluster: Cluster):
    pods = {each["metadata"]["name"]: each for each in cluster.get("pods")["items"]}
    assert {name: each["spec"]["nodeName"] for name, each in pods.items()} == {"client": CLIENT, "server": SERVER}
    assert reaches(cluster, pods["server"]["status"]["podIP"])
    done = cluster.exec("client", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, b"out\n") and b"err" in done.stderr


@pytest.mark.parametrize("mode", [*PROXY_RULES])
def test_a_service_leads_to_the_pod_on_the_other_node(cluster: Cluster, mode: str):
    address = cluster.get("service", "server")["spec"]["clusterIP"]
    if cluster.proxy != mode:
        cluster.start_proxies(mode)
    other = next(each for each in PROXY_RULES if each != mode)
    cluster.eventually("rules of this mode", lambda: all(address in each for each in rules(cluster, mode)))
    cluster.eventually("none of the other", lambda: not any(address in each for each in rules(cluster, other)))
    cluster.eventually("the Service answers", lambda: reaches(cluster, address))
    cluster.eventually("each node's port", lambda: all(answers(node.host.address) for node in cluster.nodes))


def test_a_policy_is_only_accepted_until_something_enforces_it(cluster: Cluster):
    server = cluster.get("pod", "server")["status"]["podIP"]
    spec = {"podSelector": {"matchLabels": {"app": "server"}}, "policyTypes": ["Ingress"], "ingress": []}
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "server"}}
    cluster.apply({**policy, "spec": spec})
    assert reaches(cluster, server), "it denies all, and nothing enforces it"
    cluster.enforce_policies()
    cluster.eventually("denied", lambda: not reaches(cluster, server))
    assert not reaches(cluster, server), "it stays so"
    client = {"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}
    cluster.apply({**policy, "spec": {**spec, "ingress": [client]}})
    cluster.eventually("allowed to the client", lambda: reaches(cluster, server))
    assert not answers(cluster.nodes[1].host.address), "and to nobody else"


def test_kubectl_exec_ends_well_with_a_cut_output_where_kubelet_or_its_node_dies(cluster: Cluster):
    """Last: it takes the second node away."""
    node = cluster.nodes[1]
    with printing(cluster) as started:
        node.kill("kubelet")
        assert started.wait(READY_S) and started.stop().returncode == 0
        assert node.run("pgrep", "--full", TICKS[-1]).returncode == 0, "the program goes on"
    cluster.start_kubelets(node)
    cluster.eventually("kubelet answers", lambda: cluster.exec("server", "true").returncode == 0)
    with printing(cluster) as started:
        node.power_off()
        assert started.wait(READY_S) and started.stop().returncode == 0
