"""Nodes of a cluster as the machines of a fleet: which are taken, as what hosts, and which a Job holds."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge import registry
from weighbridge.errors import Interrupted, Unavailable
from weighbridge.features.fleets.machine_provider import Wanted
from weighbridge.features.fleets.providers import provided_by
from weighbridge.features.kubernetes import held_nodes
from weighbridge.features.kubernetes.fleets import kubernetes
from weighbridge.features.kubernetes.held_nodes import HELD_S, HOLDS_LABEL, QUEUE_LABEL, Hold, held_by
from weighbridge.features.kubernetes.kubectl import Configuration, RequestRefused
from weighbridge.features.kubernetes.objects import RUN_LABEL
from weighbridge.runner import clean, run_lock

PROVIDER = kubernetes.PLUGIN
RUN = "0123456789ab"


def _node(name: str, *, ready: str = "True", cordoned: bool = False, taint: str = "") -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": ready}], "nodeInfo": {"architecture": "amd64"}}
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    spec = {"unschedulable": cordoned, "taints": taints}
    return {"metadata": {"name": name, "labels": {}}, "status": status, "spec": spec}


NODES = (
    _node("w3"), _node("w1"), _node("off", ready="Unknown", taint="node.kubernetes.io/unreachable"),
    _node("kept", cordoned=True), _node("w2"), _node("main", taint="node-role.kubernetes.io/control-plane"),
)  # fmt: skip


class Kubectl:
    """It lists some nodes; its configuration, what the user may do and what the API server refuses are a test's."""

    namespace = "ours"

    def __init__(self, *nodes: dict[str, Any]) -> None:
        self.nodes, self.asked = nodes, list[tuple[str, ...]]()
        self.about = Configuration("kind-perf", "10.0.0.1:6443", "me", "ours")
        self.lacks: list[tuple[str, str]] = []
        self.refusal = ""
        self.queues: tuple[str, ...] | None = None

    def get(self, *words: str) -> Any:
        self.asked.append(words)
        if words[0].startswith("localqueues"):
            if self.queues is None:
                raise RequestRefused('the server doesn\'t have a resource type "localqueues"')
            return {"items": [{"metadata": {"name": name}} for name in self.queues]}
        return json.loads(json.dumps({"items": self.nodes}))

    def configuration(self) -> Configuration:
        return self.about

    def lacking(self, rights: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return [each for each in rights if each in self.lacks]

    def dry_run(self, manifests: list[Any]) -> list[str]:
        assert [each["kind"] for each in manifests] == ["Job"]
        return [self.refusal]


@pytest.fixture
def kubectl(monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    made = Kubectl(*NODES)
    monkeypatch.setattr(kubernetes, "_kubectl", lambda _: made)
    return made


def _options(**given: Any) -> Any:
    provider, options = provided_by("kubernetes", given)
    assert provider is PROVIDER
    return options


def test_the_nodes_that_can_have_pods_are_taken(kubectl: Kubectl):
    assert PROVIDER.machines(_options()) == PROVIDER.allotted(_options()) == ("w1", "w2", "w3")
    assert PROVIDER.count(_options()) == 3
    assert PROVIDER.machines(_options(nodes="pool=perf")) == ("w1", "w2", "w3")
    assert kubectl.asked[-1] == ("nodes", "--selector=pool=perf")
    assert PROVIDER.machines(_options(nodes="5")) is None and PROVIDER.count(_options(nodes="5")) == 5


def test_too_few_nodes_are_told_with_what_keeps_pods_from_the_others(kubectl: Kubectl):
    with raises_sentence(Unavailable):
        PROVIDER.count(_options(nodes="6"))
    kubectl.nodes = NODES[2:4]
    for nodes in (None, "pool=perf"):
        with raises_sentence(Unavailable):
            PROVIDER.machines(_options(nodes=nodes))


def test_a_fleet_stays_in_the_cluster_in_which_it_was_submitted(kubectl: Kubectl):
    options = PROVIDER.settled(_options(nodes="2"))
    assert (options.context, options.namespace, options.server) == ("kind-perf", "ours", "10.0.0.1:6443")
    assert PROVIDER.host(options, "w1")["context"] == "kind-perf" and PROVIDER.count(options) == 2
    kubectl.about = Configuration("kind-perf", "10.0.0.9:6443", "me", "ours")
    with raises_sentence(Unavailable):
        PROVIDER.count(options)
    kubectl.about = Configuration("", "", "", "default")  # as in a pod, which has no kubeconfig
    assert PROVIDER.settled(_options()) == _options() and PROVIDER.count(options) == 2


def test_whether_nodes_can_be_held_is_told_before_a_fleet_is_submitted(kubectl: Kubectl):
    def refusal(**given: str) -> str:
        state = PROVIDER.ready(_options(**given))
        return "" if state.ready else f"{state.detail}: {state.remedy}"

    assert refusal(nodes="2") == refusal() == ""
    assert_sentence(refusal(nodes="2", queue="team"))
    kubectl.queues = ("other", "more")
    assert_sentence(refusal(nodes="2", queue="team"))
    kubectl.queues = ("team",)
    assert refusal(nodes="2", queue="team") == ""
    kubectl.refusal = "jobs.batch is forbidden: exceeded quota: few, requested: count/jobs.batch=1, used: ...=1"
    assert_sentence(refusal(nodes="2"))
    assert refusal(nodes="pool=perf") == ""
    kubectl.lacks = [("create", "jobs.batch"), ("delete", "jobs.batch")]
    assert_sentence(refusal(nodes="2"))


def test_a_node_is_a_host_of_the_study(monkeypatch: pytest.MonkeyPatch):
    options = _options(context="kind-perf", namespace="ours", images="registry.example/team/wb", privileged="true")
    host = PROVIDER.host(options, "w1")
    assert host == {
        "kind": "kubernetes", "node": "w1", "context": "kind-perf", "namespace": "ours",
        "images": {"push": "registry.example/team/wb"}, "privileged": True,
    }  # fmt: skip
    assert registry.hosts()["kubernetes"].options.model_validate(host)
    assert PROVIDER.host(_options(context="kind-perf"), "w1")["images"] == {"load": "kind"}
    assert "node" not in PROVIDER.planned_host(options, "machine1"), "its name is made up"
    monkeypatch.setattr(kubernetes, "_current_context", lambda _: "ours")
    assert "images" not in PROVIDER.host(_options(), "w1")
    assert PROVIDER.host(_options(), kubernetes._machine("pool--1-a"))["node"] == "pool--1-a"


@pytest.mark.parametrize(
    "given", [{"images": "?"}, {"sudo": True}, {"queue": "team"}, {"nodes": "0"}, {"at_once": "0"}], ids=str
)
def test_options_of_others_and_wrong_ones_are_told(given: dict[str, Any]):
    with raises_sentence(ValueError):
        _options(**given)


def test_a_job_holds_each_node_with_a_pod_that_only_waits():
    request = held_nodes._request(RUN, "ours/launcher:1", None, pull=False)
    job = held_nodes.holding_job(request, Hold(4))
    spec, labels = job["spec"], job["metadata"]["labels"]
    assert (job["kind"], spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Job", "Indexed", 4, 4)
    assert spec["activeDeadlineSeconds"] == HELD_S and "suspend" not in spec and labels[RUN_LABEL] == RUN
    template = spec["template"]
    [apart] = template["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname" and apart["namespaceSelector"] == {}
    assert apart["labelSelector"]["matchExpressions"] == [{"key": HOLDS_LABEL, "operator": "Exists"}]
    assert HOLDS_LABEL in template["metadata"]["labels"] and template["metadata"]["labels"][RUN_LABEL] == RUN
    [container] = template["spec"]["containers"]
    assert container["image"] == "ours/launcher:1" and "--lease" in container["command"]
    assert container["securityContext"]["runAsNonRoot"] and "nodeAffinity" not in template["spec"]["affinity"]


def test_a_job_of_a_queue_waits_until_it_is_admitted():
    job = held_nodes.holding_job(held_nodes._request(RUN, "i", None, pull=True), Hold(2, "team"))
    assert job["metadata"]["labels"][QUEUE_LABEL] == "team" and job["spec"]["suspend"] is True


@pytest.mark.parametrize("only_had", [True, False])
def test_the_nodes_that_a_fleet_had_are_held_again(only_had: bool):
    hold = Hold(2, had=("w1", "w2"), only_had=only_had)
    job = held_nodes.holding_job(held_nodes._request(RUN, "i", None, pull=False), hold)
    affinity = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    assert [*affinity] == [f"{'required' if only_had else 'preferred'}DuringSchedulingIgnoredDuringExecution"]
    assert all(f'"values": ["{name}"]' in json.dumps(affinity) for name in hold.had)


JOB: dict[str, Any] = {"kind": "Job", "metadata": {"name": "j", "uid": "u"}, "spec": {}}


def _pod(node: str = "", phase: str = "Pending", **more: Any) -> dict[str, Any]:
    status: dict[str, Any] = {"phase": phase}
    if phase == "Running":
        status["containerStatuses"] = [{"name": "site", "state": {"running": {}}}]
    if not node:
        why = {"type": "PodScheduled", "reason": "Unschedulable", "message": "0/2 nodes are available: 2 are busy."}
        status["conditions"] = [why]
    return {"kind": "Pod", "metadata": {"name": "p", **more}, "spec": {"nodeName": node}, "status": status}


def test_what_is_held_and_what_the_rest_waits_for():
    assert held_by(JOB, []).nodes == () == held_by(JOB, [_pod("w1")]).nodes
    held = held_by(JOB, [_pod("w2", "Running"), _pod(), _pod(), _pod("w1", "Running")])
    assert (held.nodes, held.waits) == (("w1", "w2"), "0/2 nodes are available: 2 are busy.")
    assert held_by(JOB, [_pod("w1", "Running", deletionTimestamp="now")]).nodes == ()
    assert held_by({**JOB, "spec": {"suspend": True}}, []).waits == "the Job is suspended"
    assert held_by(JOB, [_pod("w1", "Failed")]).refusal == "", "the Job makes another one"
    pulling = _pod("w1")
    pulling["status"]["containerStatuses"] = [{"name": "site", "state": {"waiting": {"reason": "ErrImageNeverPull"}}}]
    assert held_by(JOB, [pulling]).refusal == "node w1: ErrImageNeverPull"
    late = {"type": "Failed", "status": "True", "message": "Job was active longer than specified deadline"}
    for lost in (None, {**JOB, "metadata": {"deletionTimestamp": "now"}}, {**JOB, "status": {"conditions": [late]}}):
        assert_sentence(held_by(lost, []).refusal)


class Waiting:
    """A kubectl whose Job comes to hold its nodes, look by look."""

    def __init__(self, *looks: list[dict[str, Any]], words: Mapping[str, Any] | None = None) -> None:
        self.looks, self.words = [*looks], words or {}

    def get(self, what: str, *_: str, **__: Any) -> Any:
        if what == "jobs,pods":
            return {"items": self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]}
        return {"items": self.words[what]}


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(held_nodes.time, "sleep", lambda _: None)
    monkeypatch.setattr(held_nodes, "_PODS_S", -1.0)
    return []


def _wait(kubectl: Waiting, said: list[str], queue: str = "") -> tuple[str, ...]:
    return held_nodes._awaited(kubectl, RUN, Hold(2, queue), said.append)  # type: ignore[arg-type]


def test_what_is_waited_for_is_told_once_in_the_clusters_words(said: list[str]):
    one, both = [JOB, _pod("w2", "Running"), _pod()], [JOB, _pod("w2", "Running"), _pod("w1", "Running")]
    assert _wait(Waiting([JOB, _pod(), _pod()], one, one, both), said) == ("w1", "w2") and len(said) == 2
    for sentence in said:
        assert_sentence(sentence)
    said.clear()
    assert _wait(Waiting(both), said) == ("w1", "w2") and said == []


def test_a_job_whose_pods_a_quota_forbids_and_one_that_is_suspended_are_told(said: list[str]):
    event = {"type": "Warning", "message": 'Error creating: pods "j-0" is forbidden: exceeded quota: few'}
    both = [JOB, _pod("w2", "Running"), _pod("w1", "Running")]
    _wait(Waiting([JOB], [JOB], both, words={"events": [event]}), said)
    suspended = {**JOB, "spec": {"suspend": True}}
    full = {"type": "QuotaReserved", "status": "False", "message": "insufficient unused quota for cpu, 2 more needed"}
    workload = {"metadata": {"ownerReferences": [{"uid": "u"}]}, "status": {"conditions": [full]}}
    _wait(Waiting([suspended], both, words={held_nodes._WORKLOADS: [workload]}), said, "team")
    _wait(Waiting([suspended], both, words={held_nodes._WORKLOADS: []}), said, "team")
    assert len(said) == 3
    for sentence in said:
        assert_sentence(sentence)
    with raises_sentence(Unavailable):
        _wait(Waiting([]), said)


@pytest.mark.parametrize("ends", ["in good order", "interrupted", "never held"])
def test_held_nodes_are_given_back_however_a_driver_ends(
    kubectl: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
):
    states, given_back, wanted = tmp_path / "states", list[str](), Wanted(RUN, {}, ("w1",))
    monkeypatch.setattr(run_lock, "base", lambda: states)
    monkeypatch.setattr(clean, "sweep_and_forget", lambda run: given_back.append(f"swept {run}") or [])

    @contextlib.contextmanager
    def held(run: Any, place: Any, hold: Hold, images: Any, say: Callable[[str], None]) -> Iterator[tuple[str, ...]]:
        run.stack.callback(given_back.append, "owner")
        assert (hold, run.id, place.context) == (Hold(2, "team", ["w1"]), RUN, "kind-perf")
        if ends == "never held":
            raise Unavailable("no")
        yield ("w1", "w--2")

    monkeypatch.setattr(held_nodes, "held_nodes", held)
    expected = {"in good order": contextlib.nullcontext(), "interrupted": pytest.raises(Interrupted)}
    options = PROVIDER.settled(_options(nodes="2", queue="team", kubeconfig="/k"))
    with (
        expected.get(ends, pytest.raises(Unavailable)), PROVIDER.allotment(options, wanted) as machines
    ):  # fmt: skip
        assert machines == ("w1", "w-_2") and given_back == []
        with raises_sentence(Unavailable), PROVIDER.allotment(options, wanted):
            pass
        if ends == "interrupted":
            raise Interrupted(15)
    assert given_back == ["owner", f"swept {RUN}"]
