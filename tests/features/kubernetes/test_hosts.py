"""What kubectl 1.35 really said (``data``), the objects of a run, and what is found of them."""

import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from weighbridge import registry
from weighbridge.cli.plan import images_lines
from weighbridge.engines import push
from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes import cleanup, images, objects, services, supply, survey, volumes
from weighbridge.features.kubernetes.cluster import Cluster
from weighbridge.features.kubernetes.kubectl import (
    Denied,
    Exists,
    Kubectl,
    Patience,
    RequestRefused,
    Unreached,
    sentence,
)
from weighbridge.features.kubernetes.node import network_ports
from weighbridge.features.kubernetes.objects import NodeInfo, ObjectOwner, PodRequest, state_of
from weighbridge.features.kubernetes.remedies import Right, remedy, with_remedy
from weighbridge.features.kubernetes.session import LEASE_S, ConnectionLoss
from weighbridge.linux.process import RUN_VARIABLE
from weighbridge.model.cleanup import Cleanup, Leftover, OrphanedRun, RunFolders, discard
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import RunContext
from weighbridge.model.names import RunId
from weighbridge.model.userland import Userland, Userlands
from weighbridge.runner import clean

DATA = Path(__file__).parent / "data"
KUBECTL = "weighbridge.features.kubernetes.kubectl"
RUN = RunId("0123456789ab")
OWNER = ObjectOwner(f"weighbridge-{RUN}", "7c1e")
REQUEST = PodRequest(RUN, "2-My pod-server", "node-b", "docker.io/weighbridge/userland:1", OWNER)


def said(name: str, command: str) -> str:
    """What kubectl printed for a command, before the line of its exit code."""
    text = (DATA / f"{name}.txt").read_text()
    return text.split(f"$ {command}\n")[1].split("\n$ ")[0].rpartition("\nexit ")[0]


@pytest.mark.parametrize(
    ("name", "command", "expected"),
    [
        ("exec", "kubectl exec nosuch -- true", 'pods "nosuch" not found'),
        (
            "exec",
            "kubectl exec client -- nosuchprogram",
            'exec: "nosuchprogram": executable file not found in $PATH',
        ),
        ("exec", "kubectl exec client -- sh -c exit 7", "command terminated with exit code 7"),
        (
            "unreachable",
            "kubectl --server https://10.77.1.1:7777 --insecure-skip-tls-verify get pods",
            "the API server asks for a user and a password: the kubeconfig has no credentials for it",
        ),
        (
            "unreachable",
            "env KUBECONFIG=/nonexistent kubectl get pods",
            "the API server at localhost:8080 cannot be reached: "
            "dial tcp 127.0.0.1:8080: connect: connection refused",
        ),
        (
            "unreachable",
            "kubectl create --filename=-",
            "the API server at nosuch.example:6443 cannot be reached: "
            "dial tcp: lookup nosuch.example on 10.0.0.10:53: no such host",
        ),
        (
            "rights",
            "kubectl --kubeconfig tester.conf run z --image=x",
            'pods is forbidden: User "tester" cannot create resource "pods" in API group "" '
            'in the namespace "default"',
        ),
    ],
)
def test_what_kubectl_says_is_one_sentence(name: str, command: str, expected: str):
    assert sentence(said(name, command)) == expected


def test_a_refusal_of_pod_security_is_told_whole():
    command = (DATA / "pod-security.txt").read_text().partition("\n")[0].removeprefix("$ ")
    words = sentence(said("pod-security", command))
    assert words.startswith('pods "x" is forbidden: violates PodSecurity "restricted:latest": host namespaces')
    assert len(words) <= 600


def test_a_log_alone_is_told_by_its_error():
    last = (DATA / "streams-cut.txt").read_text().splitlines()
    logged = next(line for line in last if "Unhandled Error" in line)
    logged = logged.removeprefix("stderr: ")
    assert sentence(logged) == "next reader: websocket: close 1006 (abnormal closure): unexpected EOF"


@given(st.text(max_size=2000))
def test_whatever_it_says_is_one_line(text: str):
    words = sentence(text)
    assert len(words.splitlines()) <= 1 and len(words) <= 600


def test_all_goes_with_the_one_object_that_owns_it():
    owner = objects.owner(RUN, b"\x7fELF")
    assert owner["metadata"] == {"name": f"weighbridge-{RUN}", "labels": {"weighbridge.run": RUN}}
    manifest = objects.pod(REQUEST)
    [reference] = manifest["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["name"], reference["uid"]) == ("ConfigMap", OWNER.name, OWNER.uid)
    assert ObjectOwner.of({"metadata": {"name": "a", "uid": "b", "other": 1}}) == ObjectOwner("a", "b")


def test_a_pod_is_as_every_site():
    manifest = objects.pod(REQUEST)
    assert manifest["metadata"]["name"] == f"weighbridge-{RUN}-2-my-pod-server"
    spec, [container] = manifest["spec"], manifest["spec"]["containers"]
    waits = ["--lease", str(LEASE_S), "--listen", "/run/weighbridge.stream"]
    assert container["command"] == ["/weighbridge/launcher", *waits]
    assert spec["activeDeadlineSeconds"] > 86400
    assert container["securityContext"]["readOnlyRootFilesystem"] and container["imagePullPolicy"] == "Never"
    assert {each["mountPath"] for each in container["volumeMounts"]} == {"/tmp", "/run", "/weighbridge"}
    assert not spec["automountServiceAccountToken"] and spec["restartPolicy"] == "Never"
    assert "hostNetwork" not in spec and "resources" not in container
    assert '"node-b"' in json.dumps(spec["affinity"])


def test_what_is_asked_for_is_in_the_manifest():
    request = PodRequest(
        RUN, "s", "n", "i", OWNER, host_network=True, limits={"cpu": "500m"}, requests={"cpu": "50m"},
        sysctls={"net.core.somaxconn": "9"},
        shm_size=1 << 20, open_files=1024, runtime_class="gvisor",
    )  # fmt: skip
    spec = objects.pod(request)["spec"]
    [container] = spec["containers"]
    assert spec["hostNetwork"] and spec["runtimeClassName"] == "gvisor"
    assert spec["securityContext"] == {"sysctls": [{"name": "net.core.somaxconn", "value": "9"}]}
    assert container["resources"] == {"limits": {"cpu": "500m"}, "requests": {"cpu": "50m"}}
    shm = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1048576"}}
    assert shm in spec["volumes"] and container["command"][1:3] == ["--files", "1024"]


@given(st.text(max_size=80))
def test_names_are_those_of_kubernetes(site: str):
    name = objects.object_name(RUN, site)
    assert len(name) <= 63 and name[-1].isalnum() and name == name.lower()
    label = objects.labels(RUN, site).get("weighbridge.site", "a")
    assert 0 < len(label) <= 63 and label[0] not in "-_."


def pod_with(state: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p"},
        "status": {"phase": "Pending", "containerStatuses": [{"name": "site", "state": state}], **status},
    }


def test_why_a_pod_does_not_start_is_told_in_the_clusters_own_words():
    missing = 'Container image "docker.io/library/nope:1" is not present with pull policy of Never'
    assert missing.replace('"', '\\"') in (DATA / "image-missing.txt").read_text()
    never = pod_with({"waiting": {"reason": "ErrImageNeverPull", "message": missing}})
    assert state_of(never).refusal == missing
    assert not state_of(pod_with({"waiting": {"reason": "ContainerCreating"}})).refusal
    assert state_of(pod_with({"running": {"startedAt": "x"}}, phase="Running")).running
    full = "0/2 nodes are available: 2 Insufficient cpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": full}
    assert state_of({"status": {"phase": "Pending", "conditions": [condition]}}).refusal == full
    assert "OutOfcpu" in state_of({"status": {"phase": "Failed", "reason": "OutOfcpu", "message": "no CPU"}}).refusal
    for phase in ("Failed", "Running"):  # a container that the cluster has added may go on
        ended = pod_with({"terminated": {"exitCode": 0, "reason": "Completed"}}, phase=phase)
        assert state_of(ended).refusal == "its container ended with exit code 0 (Completed)"
        assert objects.has_ended(ended) and objects.has_succeeded(ended)
    killed = pod_with({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, phase="Failed")
    assert objects.has_ended(killed) and not objects.has_succeeded(killed)
    assert state_of(killed).refusal == "its container ended with exit code 137 (OOMKilled)"
    going = {"metadata": {"name": "p", "deletionTimestamp": "now"}, "status": {"phase": "Running"}}
    assert state_of(going).refusal == "pod p was deleted"
    evicted = {"type": "DisruptionTarget", "status": "True", "message": "Eviction API: evicting"}
    going["status"]["conditions"] = [evicted]  # type: ignore[index]
    assert state_of(going).refusal == "pod p was deleted (Eviction API: evicting)"
    assert state_of({}) == objects.PodState(False)


def test_a_container_that_the_cluster_adds_is_not_taken_for_ours():
    about = pod_with({"running": {}}, phase="Running")
    waits = {"name": "istio-proxy", "state": {"waiting": {"reason": "ErrImagePull"}}}
    about["status"]["containerStatuses"].insert(0, waits)
    assert state_of(about) == objects.PodState(True)
    ready = {"name": "istio-proxy", "state": {"running": {}}}
    about["status"]["containerStatuses"] = [ready, {"name": "site", "state": {"waiting": {}}}]
    assert state_of(about) == objects.PodState(False)
    assert objects.added_containers({"spec": objects.pod(REQUEST)["spec"]}) == {}
    own = objects.pod(REQUEST)["spec"]["containers"]
    spec = {"containers": [{"name": "istio-proxy", "image": "istio:1"}, *own], "initContainers": [{"name": "init"}]}
    assert objects.added_containers({"spec": spec}) == {"init": "", "istio-proxy": "istio:1"}


def test_the_last_warning_is_told():
    old = {"type": "Warning", "message": "old", "lastTimestamp": "2026-01-01T00:00:00Z"}
    new = {"type": "Warning", "message": "new", "lastTimestamp": "2026-01-01T00:00:09Z"}
    normal = {"type": "Normal", "message": "fine", "lastTimestamp": "2026-01-02T00:00:00Z"}
    assert objects.last_warning({"items": [new, normal, old]}) == "new"
    failed = {**old, "reason": "FailedCreatePodSandBox", "message": "no sandbox"}
    assert objects.last_warning({"items": [new, failed, old]}) == "no sandbox", "others are repeated with each try"
    assert objects.last_warning({"items": [normal]}) == ""


NODE = {
    "metadata": {"name": "node-a", "labels": {"topology.kubernetes.io/zone": "z1"}},
    "spec": {},
    "status": {
        "nodeInfo": {"architecture": "amd64", "kernelVersion": "6.1", "kubeletVersion": "v1.35.4",
                     "containerRuntimeVersion": "containerd://1.6.20", "osImage": "Debian"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "Hostname", "address": "node-a"}, {"type": "InternalIP", "address": "fd00::1"},
                      {"type": "InternalIP", "address": "10.0.0.1"}],
        "allocatable": {"cpu": "2", "memory": "4Gi"},
        "images": [{"names": ["docker.io/weighbridge/userland:1"]}],
    },
}  # fmt: skip


def test_a_node_is_known_by_what_the_cluster_says_of_it():
    info = objects.node_info(NODE)
    assert (info.name, info.ready, info.address, info.architecture) == ("node-a", True, "10.0.0.1", "x86_64")
    assert info.facts["kubelet"] == "v1.35.4" and info.facts["zone"] == "z1"
    assert info.facts["allocatable"] == "2 cpu, 4Gi memory" and "instance type" not in info.facts


def fake(
    monkeypatch: pytest.MonkeyPatch, *answers: tuple[int, str, str], seen: list[Mapping[str, str]] | None = None
) -> list[Command]:
    """Have kubectl answer with a code, an output and words, the last ones over and over; return what it was told."""
    commands: list[Command] = []

    def run(command: Command, *, env: Mapping[str, str]) -> Completed:
        commands.append(command)
        if seen is not None:
            seen.append(env)
        code, out, words = answers[min(len(commands), len(answers)) - 1]
        return Completed(command.argv, code, out.encode(), words.encode(), 0.1)

    monkeypatch.setattr("weighbridge.features.kubernetes.kubectl.process.run", run)
    return commands


def test_names_are_arguments_of_their_own(monkeypatch: pytest.MonkeyPatch):
    calls = fake(monkeypatch, (0, '{"items": []}', ""))
    Kubectl("my context; rm", "ns", "/k").get("pods")
    place = ("--kubeconfig=/k", "--context=my context; rm", "--namespace=ns")
    assert calls[0].argv == ("kubectl", *place, "--request-timeout=20s", "get", "pods", "--output=json")


def test_several_kubeconfigs_are_named_by_the_variable(monkeypatch: pytest.MonkeyPatch):
    seen: list[Mapping[str, str]] = []
    calls = fake(monkeypatch, (0, "{}", ""), seen=seen)
    Kubectl(kubeconfig="/a:/b", variables={"X": "1"}).get("pods")
    assert seen == [{"X": "1", "KUBECONFIG": "/a:/b"}] and "--kubeconfig=/a:/b" not in calls[0].argv


def answering(monkeypatch: pytest.MonkeyPatch, *lacking: Right) -> list[Command]:
    """Have the API server answer what may be done: all but this."""
    commands: list[Command] = []

    def run(command: Command, *, env: Mapping[str, str]) -> Completed:
        commands.append(command)
        if "view" in command.argv:
            return Completed(command.argv, 0, b"there\n", b"", 0.1)
        if not command.stdin or "--dry-run=server" in command.argv:
            return Completed(command.argv, 0, b'{"serverVersion": {"gitVersion": "v1.35.4"}}', b"", 0.1)
        answers = []
        for each in json.loads(command.stdin)["items"]:
            asked = each["spec"]["resourceAttributes"]
            part, group = asked["subresource"], asked["group"]
            assert asked.get("namespace") == (None if asked["resource"] == "nodes" else "there")
            resource = asked["resource"] + (f"/{part}" if part else "") + (f".{group}" if group else "")
            answers.append(json.dumps({"status": {"allowed": (asked["verb"], resource) not in lacking}}, indent=4))
        return Completed(command.argv, 0, "\n".join(answers).encode(), b"", 0.1)

    monkeypatch.setattr("weighbridge.features.kubernetes.kubectl.process.run", run)
    return commands


def test_a_kubeconfig_that_a_study_brings_is_not_used_before_the_user_was_asked(monkeypatch: pytest.MonkeyPatch):
    calls = answering(monkeypatch)
    kind = registry.hosts()["kubernetes"]
    assert kind.ready(kind.options.model_validate({"kind": "kubernetes", "kubeconfig": "/theirs"})).ready
    assert not calls
    assert kind.ready(kind.options.model_validate({"kind": "kubernetes"})).ready and calls


VIEW = {
    "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "alice", "namespace": "team"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://me:secret@api.example.org:6443/path"}}],
}


def test_the_cluster_is_named_by_the_kubeconfig(monkeypatch: pytest.MonkeyPatch):
    calls = fake(monkeypatch, (0, json.dumps(VIEW), ""))
    kind = registry.hosts()["kubernetes"]
    options = kind.options.model_validate({"kind": "kubernetes", "kubeconfig": "/theirs"})
    words = kind.describe_location(options)
    assert words.startswith("cluster: context prod (api.example.org:6443, user alice), namespace team: a run creates")
    assert {each.argv[3:5] for each in calls} == {("config", "view")}, "it starts nothing of theirs"
    options = kind.options.model_validate({"kind": "kubernetes", "namespace": "mine"})
    assert "namespace mine" in kind.describe_location(options)
    fake(monkeypatch, (0, '{"contexts": null, "clusters": []}', ""))
    assert kind.describe_location(options).startswith(
        "cluster: the cluster that kubectl uses by default, namespace mine"
    )


def test_rights_are_there_or_lacking_or_not_told(monkeypatch: pytest.MonkeyPatch):
    asked: list[Right] = [("get", "pods"), ("create", "pods/exec"), ("list", "networkpolicies.networking.k8s.io")]
    answering(monkeypatch, *asked[1:])
    assert Kubectl().lacking([*asked, ("list", "nodes")]) == asked[1:]
    for answer in ('{"status": {"allowed": true}}', "no JSON", "{}"):
        fake(monkeypatch, (0, "there", ""), (0, answer, ""))
        with pytest.raises(Unavailable, match="does not report"):
            Kubectl().lacking(asked)


def test_only_what_a_run_does_is_needed(monkeypatch: pytest.MonkeyPatch):
    answering(monkeypatch, ("list", "nodes"), ("get", "nodes"), ("list", "events"))
    kind = registry.hosts()["kubernetes"]
    assert kind.ready(kind.options.model_validate({"kind": "kubernetes", "node": "n1"})).ready
    refused = kind.ready(kind.options.model_validate({"kind": "kubernetes"}))
    assert (refused.detail, refused.remedy) == (
        "this user is not allowed to list nodes",
        'bind this user to a ClusterRole with rules: [{apiGroups: [""], resources: [nodes], verbs: [list]}]',
    )
    answering(monkeypatch, ("get", "services"))
    for more, ready in (({}, True), ({"services": 10}, False)):
        options = kind.options.model_validate({"kind": "kubernetes", "node": "n1", **more})
        assert kind.ready(options).ready is ready
    answering(monkeypatch, ("list", "nodes"), ("get", "nodes"), ("list", "events"))
    rows = survey.survey(Kubectl())
    assert all(row.ready for row in rows.values()) and "node: NAME" in rows["nodes"].caveat
    assert "facts about nodes" in rows["rights"].caveat and "proxy" not in rows["rights"].detail


def test_a_cluster_that_does_not_answer_has_one_row(monkeypatch: pytest.MonkeyPatch):
    fake(monkeypatch, (1, "", "error: no server"))
    [(name, row)] = survey.survey(Kubectl()).items()
    assert name == "API server" and not row.ready and row.detail == "no server" and row.remedy


def test_an_api_server_that_cannot_be_reached_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch):
    kind = registry.hosts()["kubernetes"]
    fake(monkeypatch, (1, "", said("unreachable", "kubectl create --filename=-")))
    row = kind.ready(kind.options.model_validate({"kind": "kubernetes", "node": "n1", "namespace": "n"}))
    assert (
        row.detail.startswith("the API server at nosuch.example:6443 cannot be reached") and "kubectl" in row.remedy
    )
    of_kubelet = 'Error from server: Get "https://10.0.0.2:10250/exec": dial tcp 10.0.0.2:10250: no route to host'
    assert sentence(of_kubelet).startswith('Get "https://10.0.0.2:10250/exec"')


def test_a_cluster_has_a_row_for_each_thing(monkeypatch: pytest.MonkeyPatch):
    answering(monkeypatch)
    monkeypatch.setattr(Kubectl, "get", lambda *_: {"items": [NODE]})
    rows = survey.survey(Kubectl())
    assert all(row.ready for row in rows.values()) and rows["nodes"].caveat == "one node"
    assert rows["API server"].detail == "v1.35.4, kubectl unknown"


def test_a_node_that_there_is_not_is_refused_where_it_may_be_read(monkeypatch: pytest.MonkeyPatch):
    gone = 'Error from server (NotFound): nodes "node-c" not found'
    fake(monkeypatch, (1, "", gone), (0, json.dumps({"items": [NODE]}), ""))
    assert survey.node(Kubectl(), "node-c").detail == "the cluster has no node node-c: it has node-a"
    may_not = (
        'Error from server (Forbidden): nodes "n" is forbidden: User "t" cannot get resource "nodes" in API group'
    )
    fake(monkeypatch, (1, "", may_not))
    assert survey.node(Kubectl(), "node-c").ready
    fake(monkeypatch, (0, json.dumps(NODE), ""))
    assert survey.node(Kubectl(), "node-a").ready


def test_a_row_says_how_nodes_get_images():
    assert "{load: kind}" in survey.images("kind-dev").detail and not survey.images("kind-dev").caveat
    assert survey.images("prod").caveat and "weigh --images" in survey.images("prod").detail


def test_lacking_rights_are_named_with_the_rule_that_gives_them(monkeypatch: pytest.MonkeyPatch):
    answering(monkeypatch, ("create", "pods/exec"), ("create", "pods"), ("delete", "pods"))
    row = survey.rights(Kubectl(namespace="there"))
    assert not row.ready and row.detail == "this user is not allowed to create pods, delete pods, create pods/exec"
    assert row.remedy == (
        'bind this user to a Role in namespace there with rules: [{apiGroups: [""], resources: [pods], '
        'verbs: [create, delete]}, {apiGroups: [""], resources: [pods/exec], verbs: [create]}]'
    )


@pytest.mark.parametrize(
    ("why", "helps"),
    [
        (
            'services is forbidden: User "t" cannot create resource "services" in API group "" in the namespace "n"',
            'bind this user to a Role in namespace n with rules: [{apiGroups: [""], resources: [services], '
            "verbs: [create]}]",
        ),
        (
            'nodes "a" is forbidden: User "t" cannot get resource "nodes/proxy" in API group "" at the cluster scope',
            'bind this user to a ClusterRole with rules: [{apiGroups: [""], resources: [nodes/proxy], verbs: [get]}]',
        ),
        (
            'networkpolicies.networking.k8s.io is forbidden: User "t" cannot list resource "networkpolicies" in API '
            'group "networking.k8s.io" in the namespace "n"',
            'bind this user to a Role in namespace n with rules: [{apiGroups: ["networking.k8s.io"], '
            "resources: [networkpolicies], verbs: [list]}]",
        ),
        (
            'admission webhook "policy.example.org" denied the request: no',
            "exempt the namespace from the webhook policy.example.org, or use another namespace",
        ),
        ('pods "x" is forbidden: failed quota: q: must specify limits.cpu', "(resources: cpus, memory)"),
        ("0/2 nodes are available: 1 Insufficient cpu.", "quality: burstable"),
        ("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.", "quality: burstable"),
        (
            "0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 were unschedulable.",
            "kubectl uncordon NODE",
        ),
        ('pods "x" is forbidden: minimum cpu usage per Container is 100m, but request is 50m', "quality: guaranteed"),
        ("something else", ""),
    ],
)
def test_a_refusal_names_what_would_allow_it(why: str, helps: str):
    assert remedy(why, "n").endswith(helps) or helps in remedy(why, "n")
    assert with_remedy(why, "n").startswith(why)


def test_what_refuses_pods_has_a_remedy(monkeypatch: pytest.MonkeyPatch):
    fake(monkeypatch, (1, "", (DATA / "pod-security.txt").read_text().splitlines()[1]))
    row = survey.admission(Kubectl(), host_network=True)
    assert "violates PodSecurity" in row.detail and "enforce=privileged" in row.remedy
    assert "'pod_security: restricted'" in row.remedy


def test_each_environment_has_the_refusal_of_its_own_objects(monkeypatch: pytest.MonkeyPatch):
    server, said = "Error from server (Forbidden): ", 'error when creating "STDIN": '
    lines = [
        "Warning: would violate PodSecurity",
        f'{server}{said}pods "weighbridge-1" is forbidden: exceeded quota: q',
        f'{server}{said}services is forbidden: User "t" cannot create resource "services" in API group "" in the '
        'namespace "n"',
        f'Error from server: {said}admission webhook "w.example.org" denied the request: no',
    ]
    fake(monkeypatch, (1, "pod/weighbridge-2\n", "\n".join(lines)))
    kinds = {"weighbridge-1": "Pod", "weighbridge-2": "Pod", "weighbridge-3": "Service", "weighbridge-4": "Pod"}
    made = {name: {"kind": kind, "metadata": {"name": name}} for name, kind in kinds.items()}
    asked = {"a": [made["weighbridge-1"]], "b": [made["weighbridge-2"], made["weighbridge-3"]], "none": []}
    verdicts = survey.admissions(Kubectl(namespace="n"), {**asked, "c": [made["weighbridge-4"]]})
    assert verdicts["a"].detail == "pods is forbidden: exceeded quota: q" and verdicts["none"].ready
    assert "services is forbidden" in verdicts["b"].detail and "resources: [services]" in verdicts["b"].remedy
    assert "webhook" in verdicts["c"].remedy
    fake(monkeypatch, (1, "", "error: no server"))
    with pytest.raises(Unavailable, match="no server"):
        survey.admissions(Kubectl(), asked)


def test_what_only_some_environments_need_has_rows_where_it_is_lacking(monkeypatch: pytest.MonkeyPatch):
    lacking = (("get", "services"), ("patch", "services"), ("create", "networkpolicies.networking.k8s.io"))
    answering(monkeypatch, *lacking)
    monkeypatch.setattr(Kubectl, "get", lambda *_: {"items": [NODE]})
    rows = survey.survey(Kubectl(namespace="there"))
    assert [name for name, row in rows.items() if not row.ready] == ["Services", "NetworkPolicies"]
    assert "Services that a run can add" not in rows, "none may be made"
    assert rows["Services"].detail == "this user is not allowed to get services, patch services"
    assert "resources: [services], verbs: [get, patch]" in rows["Services"].remedy


def test_a_namespace_that_there_is_not_is_the_only_row(monkeypatch: pytest.MonkeyPatch):
    missing = 'Error from server (NotFound): error when creating "STDIN": namespaces "team" not found'
    fake(monkeypatch, (0, '{"serverVersion": {"gitVersion": "v1.35.4"}}', ""), (1, "", missing))
    rows = survey.survey(Kubectl(namespace="team"))
    assert [*rows] == ["API server", "namespace"] and rows["namespace"].remedy.startswith("kubectl create namespace")
    assert rows["namespace"].detail == 'namespaces "team" not found' and not rows["namespace"].ready


def test_an_image_is_an_archive_that_runtimes_read(tmp_path: Path):
    layer = tmp_path / "root.tar"
    with tarfile.open(layer, "w") as tar:
        tar.addfile(tarfile.TarInfo("etc"))
    written = b"".join(images.archive(images.ClusterImage("userland", "1", layer), "aarch64"))
    with tarfile.open(fileobj=io.BytesIO(written)) as tar:
        files = {each.name: tar.extractfile(each).read() for each in tar if each.isfile()}  # type: ignore[union-attr]
    [about] = json.loads(files["manifest.json"])
    config = json.loads(files[about["Config"]])
    assert about["RepoTags"] == ["docker.io/weighbridge/userland:1"] and config["architecture"] == "arm64"
    [name] = about["Layers"]
    assert files[name] == layer.read_bytes() and config["rootfs"]["diff_ids"] == [f"sha256:{name.partition('/')[0]}"]


def info(name: str, **changes: Any) -> NodeInfo:
    return objects.node_info({**NODE, "metadata": {"name": name}, **changes})


def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *nodes: dict[str, Any]) -> Cluster:
    monkeypatch.setattr("weighbridge.features.kubernetes.cluster.platform.machine", lambda: "x86_64")
    kubectl = Kubectl()

    def get(what: str, *_: str) -> Any:
        named = [each for each in nodes if what == f"node/{each['metadata']['name']}"]
        if what.startswith("node/") and not named:
            raise Unavailable("nodes not found")
        return named[0] if named else {"items": nodes}

    monkeypatch.setattr(kubectl, "get", get)
    run = RunContext(RUN, tmp_path, tmp_path, None)  # type: ignore[arg-type]
    return Cluster(run, kubectl, "default", OWNER)


def named(name: str, **status: Any) -> dict[str, Any]:
    return {**NODE, "metadata": {"name": name}, "status": {**NODE["status"], **status}}  # type: ignore[dict-item]


def test_each_host_has_a_node_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    two = cluster(tmp_path, monkeypatch, named("n1"), named("n2"), named("n3"))
    assert two.node("a", None, None, {"n1"}).name == "n2"
    assert two.node("b", "n1", None, {"n1"}).name == "n1"
    assert two.node("c", None, None, {"n1"}).name == "n3"
    with pytest.raises(Unavailable, match="and other hosts use them"):
        two.node("d", None, None, {"n1"})
    with pytest.raises(Unavailable, match="has no node n9: it has n1, n2, n3"):
        two.node("d", "n9", None, {"n9"})


@pytest.mark.parametrize(("effect", "node"), [("NoSchedule", "n2"), ("NoExecute", "n2"), ("PreferNoSchedule", "n1")])
def test_a_node_that_pods_may_be_on_goes_before_a_tainted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, effect: str, node: str
):
    control = {
        **named("n1"),
        "spec": {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": effect}]},
    }
    two = cluster(tmp_path, monkeypatch, control, named("n2"))
    assert two.node("a", None, None, ()).name == node
    assert survey.usable_nodes(two.kubectl) == (["n2"] if node == "n2" else ["n1", "n2"])
    monkeypatch.setattr(two.kubectl, "lacking", lambda _: [])
    row = survey.nodes(two.kubectl)
    assert ("tainted: n1" in row.detail) == (node == "n2") and row.ready
    two.node("b", None, None, ())
    monkeypatch.setattr(two.kubectl, "get", lambda _: {"items": [control]})
    if node == "n2":
        assert not survey.nodes(two.kubectl).ready and "tainted: n1" in survey.nodes(two.kubectl).detail


def test_a_named_node_needs_no_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one = cluster(tmp_path, monkeypatch)
    words = 'nodes "n1" is forbidden: User "t" cannot get resource "nodes" in API group "" at the cluster scope'

    def get(*_: str) -> Any:
        raise Unavailable(words)

    monkeypatch.setattr(one.kubectl, "get", get)
    node = one.node("a", "n1", None, {"n1"})
    assert (node.name, node.holds("any"), node.facts) == ("n1", None, {})
    there = images.ClusterImage("userland", "1", b"")
    monkeypatch.setattr(supply, "userland_image", lambda userland: there)
    assert images_of(tmp_path).userland(node, USERLAND) == there.reference, "the cluster says whether it is there"
    words = "no server"
    with pytest.raises(Unavailable, match="no server"):
        one.node("b", "n1", None, {"n1"})


def test_a_node_that_cannot_have_pods_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    off = cluster(tmp_path, monkeypatch, named("n1", conditions=[{"type": "Ready", "status": "Unknown"}]))
    with pytest.raises(Unavailable, match="n1 is not ready"):
        off.node("a", "n1", None, ())
    arm = cluster(tmp_path, monkeypatch, named("n1", nodeInfo={"architecture": "arm64"}))
    with pytest.raises(Unavailable, match="run Weighbridge on a aarch64 machine"):
        arm.node("a", None, None, ())


class Carrier:
    """A kubectl exec that has ended with these words."""

    def __init__(self, words: str) -> None:
        self._words = words

    def wait(self, _: float) -> bool:
        return True

    def poll(self) -> int:
        return 1

    def stop(self) -> Completed:
        return Completed(("kubectl",), 1, b"", self._words.encode(), 0.1)


def test_why_a_pod_is_lost_is_told_with_what_is_known_of_its_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    request = objects.PodRequest(RUN, "s", "n1", "i", OWNER)
    cordoned = {**named("n1"), "spec": {"unschedulable": True}}
    of = cluster(tmp_path, monkeypatch, cordoned)

    now = [100.0]
    of._patience = Patience(lambda: now[0])
    full = {"reason": "Evicted", "message": "Usage of EmptyDir volume exceeds the limit. "}
    normal = {"reason": "Killing", "message": "Stopping container site"}

    def judged(pod: Any, words: str, node: Any = cordoned, *events: Any) -> ConnectionLoss:
        def get(what: str, *_: str, **__: float) -> Any:
            answer = {"node/n1": node, "events": {"items": events}}.get(what, pod)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(of._asking, "get", get)
        return of._judge(request, Carrier(words))  # type: ignore[arg-type]

    gone, forbidden = RequestRefused('pods "p" not found'), RequestRefused("nodes is forbidden")
    assert judged(gone, "") == ConnectionLoss('pods "p" not found; node n1 is cordoned')
    assert judged(gone, "", forbidden) == ConnectionLoss('pods "p" not found')
    ended = pod_with({"terminated": {"exitCode": 0, "reason": "Completed"}}, phase="Succeeded")
    told = judged(ended, "", forbidden, full, normal)
    assert told.words.endswith("exit code 0 (Completed); Evicted: Usage of EmptyDir volume exceeds the limit")
    killed = pod_with({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, phase="Failed")
    assert "(OOMKilled): give it more memory (resources: memory)" in judged(killed, "", forbidden).words
    running = pod_with({"running": {}}, phase="Running")
    withdrawn = 'pods "p" is forbidden: User "u" cannot create resource "pods/exec" in API group ""'
    told = judged(running, f"Error from server (Forbidden): {withdrawn}")
    assert told.patience_s > 45 and told.of_server, "it may have just started, and not know it yet"
    now[0] += 9
    assert judged(Denied(withdrawn), "").patience_s, "asked again after a second, it says so again"
    now[0] += 2
    told = judged(running, f"Error from server (Forbidden): {withdrawn}")
    assert withdrawn in told.words and "resources: [pods/exec], verbs: [create]" in told.words and not told.patience_s
    assert judged(running, "").patience_s > 0 and not judged(running, "").of_server
    assert judged(Unreached("connection refused"), "") == ConnectionLoss(
        "the connection to it was cut: kubectl ended with exit code 1 and printed nothing; connection refused",
        45,
        of_server=True,
    )


DENIED = 'Error from server (Forbidden): pods "p" is forbidden: User "t" cannot get resource "pods" in API group ""'
AWAY = "The connection to the server 198.19.200.1:6443 was refused - did you specify the right host or port?"


def waiting(monkeypatch: pytest.MonkeyPatch, *answers: tuple[int, str, str]) -> tuple[Kubectl, list[Command]]:
    """A kubectl of a run, with a clock that goes on while it waits."""
    now = [0.0]
    calls = fake(monkeypatch, *answers)
    one = Kubectl().patient()
    one.patience = Patience(lambda: now[0])
    monkeypatch.setattr(f"{KUBECTL}.time.sleep", lambda s: now.__setitem__(0, now[0] + s))
    return one, calls


@pytest.mark.parametrize(
    "words",
    [
        AWAY, DENIED, "error: You must be logged in to the server (Unauthorized)",
        'error: the server doesn\'t have a resource type "pods"',
        "Error from server (ServiceUnavailable): the server is currently unable to handle the request",
        "Unable to connect to the server: net/http: TLS handshake timeout",
    ],
)  # fmt: skip
def test_a_run_asks_an_api_server_again_that_has_just_started(monkeypatch: pytest.MonkeyPatch, words: str):
    one, calls = waiting(monkeypatch, (1, "", words), (1, "", words), (0, "{}", ""))
    assert one.get("pod/p", needed=True) == {} and len(calls) == 3
    fake(monkeypatch, (1, "", words))
    with pytest.raises(Unavailable):
        one.impatient().get("pod/p", needed=True)


@pytest.mark.parametrize(("words", "within", "needed"), [(AWAY, 45, False), (DENIED, 10, True), (DENIED, 0, False)])
def test_a_run_asks_again_for_a_while_and_once_only(
    monkeypatch: pytest.MonkeyPatch, words: str, within: int, needed: bool
):
    one, calls = waiting(monkeypatch, (1, "", words))
    with pytest.raises(Unreached if words == AWAY else Denied):
        one.get("pod/p", needed=needed)
    assert len(calls) == within + 1
    with pytest.raises(Unavailable):
        one.delete("pod/p") if words == AWAY else one.get("pod/q", needed=True)
    assert len(calls) == within + 2 if within else len(calls) > 2, "what tidies up does not wait anew"


def test_an_api_server_that_is_away_and_denies_in_turn_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch):
    one, calls = waiting(monkeypatch, *((1, "", words) for _ in range(60) for words in (AWAY, DENIED)))
    with pytest.raises(Denied):
        one.get("pod/p", needed=True)
    assert 10 <= len(calls) <= 12
    with pytest.raises(Unavailable):
        one.delete("pod/p")
    assert len(calls) <= 14, "what tidies up does not wait anew"


@pytest.mark.parametrize("each_s", [1.0, 21.0])
def test_an_api_server_that_takes_no_packets_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch, each_s: float):
    one, calls = waiting(monkeypatch, (1, "", "Unable to connect to the server: context deadline exceeded"))
    now = [0.0]
    one.patience = Patience(lambda: now[0])
    monkeypatch.setattr(f"{KUBECTL}.time.sleep", lambda _: now.__setitem__(0, now[0] + each_s))
    with pytest.raises(Unreached):
        one.get("pod/p")
    assert 45 <= now[0] <= 70
    asked = len(calls)
    with pytest.raises(Unreached):
        one.get("pod/p")
    assert len(calls) == asked + 1


def test_objects_that_nothing_finalizes_are_not_waited_for_endlessly(monkeypatch: pytest.MonkeyPatch):
    one, calls = waiting(monkeypatch, (0, json.dumps({"items": [{}, {}]}), ""))
    one.namespace, now = "n", [0.0]
    monkeypatch.setattr(f"{KUBECTL}.time.monotonic", lambda: now[0])
    monkeypatch.setattr(f"{KUBECTL}.time.sleep", lambda _: now.__setitem__(0, now[0] + 50))
    with pytest.raises(Unavailable, match="2 services still exist 120 s after"):
        one.delete_all("/api/v1", "services", "a=b")
    assert len(calls) == 4


def test_a_second_start_of_an_api_server_has_its_own_patience():
    now = [0.0]
    patience = Patience(lambda: now[0])
    assert patience.denied(DENIED)
    for now[0] in range(1, 11):
        lasted = patience.denied(DENIED)
    assert not lasted and patience.away() and patience.denied(DENIED)
    now[0] = 30.0
    assert patience.denied(DENIED), "much later it is another one"


def test_an_object_whose_making_was_not_answered_is_taken_as_made(monkeypatch: pytest.MonkeyPatch):
    exists = 'Error from server (AlreadyExists): error when creating "STDIN": pods "p" already exists'
    manifest = {"kind": "Pod", "metadata": {"name": "p"}}
    one, calls = waiting(monkeypatch, (1, "", "error: unexpected EOF"), (1, "", exists), (0, '{"a": 1}', ""))
    assert one.create(manifest) == {"a": 1} and "pod/p" in calls[-1].argv
    one, calls = waiting(monkeypatch, (1, "", exists))
    with pytest.raises(Unavailable, match="already exists"):
        one.create(manifest)


def test_objects_that_were_made_before_an_api_server_went_away_are_not_made_again(monkeypatch: pytest.MonkeyPatch):
    names = [f"weighbridge-{RUN}-services-{number}" for number in range(4)]
    every = [services.service(RUN, number, OWNER, "host-a", 1) for number in range(4)]
    away, denies = (1, f"service/{names[0]}\n", AWAY), (1, "", DENIED)

    def exist(*there: str) -> tuple[int, str, str]:
        error = 'Error from server (AlreadyExists): error when creating "STDIN": services "{}" already exists'
        return 1, "", "\n".join([*(error.format(name) for name in there), AWAY])

    def have(*there: str) -> tuple[int, str, str]:
        return 0, "".join(f"service/{name}\n" for name in there), ""

    there = exist(names[0]), have(names[0]), exist(names[1]), have(*names[:2])
    one, calls = waiting(monkeypatch, away, denies, *there, (0, "", ""))
    one.create_all(every, 300)
    made = [[each["metadata"]["name"] for each in json.loads(call.stdin)["items"]] for call in calls if call.stdin]
    assert made == [names, names, names, names[1:], names[2:]]
    assert f"--selector=weighbridge.run={RUN},weighbridge.site=services" in calls[3].argv
    one, _ = waiting(monkeypatch, away, exist(*names), have(*names))
    one.create_all(every, 300)
    for answers in ((exist(*names),), (away, exist(names[0]), have())):
        one, _ = waiting(monkeypatch, *answers)
        with pytest.raises(Exists):  # somebody else's, or those of a run that is there twice
            one.create_all(every, 300)


def images_of(tmp_path: Path, context: str = "", **options: Any) -> supply.ImageSupply:
    run = RunContext(RUN, tmp_path, tmp_path, None)  # type: ignore[arg-type]
    kubectl = Kubectl()
    vars(kubectl).update(create=lambda _: {}, get=lambda *_: {"items": []})  # marks of runs
    return supply.ImageSupply(run, kubectl, context, supply.NodeImages(**options) if options else None)


USERLAND = Userland("1" * 64, Path("/nowhere"), None, {})


@pytest.fixture
def userland(tmp_path: Path) -> Userland:
    (tmp_path / "root.tar").write_bytes(b"x" * 1000)
    return replace(USERLAND, tar=tmp_path / "root.tar")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """The commands that load, push and remove images; each succeeds."""
    commands: list[Command] = []
    digest = b"latest: digest: sha256:" + b"a" * 64 + b" size: 1\n"

    def run(command: Command, *_: Any, **__: Any) -> Completed:
        commands.append(command)
        return Completed(command.argv, 0, digest, b"", 1.0)

    def fed(command: Command, pieces: Iterable[bytes]) -> Completed:
        return run(replace(command, stdin=b"".join(pieces)))

    monkeypatch.setattr(supply.process, "run", run)
    monkeypatch.setattr(supply, "feed", fed)
    monkeypatch.setattr(push, "feed", fed)
    monkeypatch.setattr(push, "which", lambda program: program)
    monkeypatch.setattr(Kubectl, "get", lambda *_: {"items": []})
    monkeypatch.setattr(Kubectl, "delete", lambda *_: None)
    monkeypatch.setattr(Kubectl, "clock", lambda _: NOW)
    return commands


def test_an_image_that_nothing_brings_is_refused(tmp_path: Path, userland: Userland):
    there = f"docker.io/weighbridge/userland:{'1' * 16}"
    assert images_of(tmp_path).userland(info("n1", status={"images": [{"names": [there]}]}), userland) == there
    with pytest.raises(Unavailable, match="does not have the image"):
        images_of(tmp_path).userland(info("n1"), userland)
    full = {"images": [{"names": [f"other:{number}"]} for number in range(50)]}
    assert images_of(tmp_path).userland(info("n1", status=full), userland) == there, "kubelet tells no more than 50"


@pytest.mark.parametrize(
    ("options", "n1", "n2"),
    [
        (None, True, None),
        ({"load": "kind"}, True, None),
        ({"load": "containerd"}, None, None),
        ({"push": "registry.example/wb"}, False, None),
        ({"pull": True}, False, None),
    ],
    ids=["nothing", "stays", "removed", "pushed", "pulled"],
)
def test_which_nodes_hold_an_image_is_known_before_a_run(
    tmp_path: Path,
    userland: Userland,
    monkeypatch: pytest.MonkeyPatch,
    options: Mapping[str, Any] | None,
    n1: bool | None,
    n2: bool | None,
):
    userland = replace(userland, reference="shop@sha256:1")
    digests = {f"registry.example/wb:userland-{'1' * 16}": "sha256:2"}
    (tmp_path / "pushed").write_text(json.dumps(digests))
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    there = {**ready, "images": [{"names": [f"docker.io/weighbridge/userland:{'1' * 16}"]}]}
    full = {**ready, "images": [{"names": [f"other:{number}"]} for number in range(50)]}
    nodes = [{"metadata": {"name": name}, "status": status} for name, status in (("n1", there), ("n2", full))]

    def get(_: Kubectl, what: str, *__: str) -> Any:
        if what == "node/n2":
            raise Denied("forbidden")
        return nodes[0] if what == "node/n1" else {"items": nodes}

    monkeypatch.setattr(Kubectl, "get", get)
    kind = registry.hosts()["kubernetes"]

    def holds(**more: Any) -> Mapping[str, bool | None]:
        ways = {"images": options} if options else {}
        host = kind.options.model_validate({"kind": "kubernetes", **ways, **more})
        return kind.holds(host, userland, tmp_path)

    if options == {"load": "containerd"}:
        assert holds() == {}, "each run loads it"
        return
    assert holds() == {"n1": n1, "n2": n2} and holds(node="n1") == {"n1": n1} and holds(node="n2") == {"n2": None}
    assert holds(kubeconfig="/theirs") == {}, "a study's own is not used before a run"


def test_which_nodes_hold_an_image_is_told_by_plan():
    image = {"userland": "userland", "bytes": 10**6, "way": "loaded by kind"}
    hosts = (("a", {"n1": True}), ("b", {"n2": False}), ("c", {"n1": True, "n3": None}))
    assert images_lines({"host": name, "on_nodes": nodes, **image} for name, nodes in hosts) == [  # type: ignore[typeddict-item]
        "image: userland (1 MB), for a and b and c: loaded by kind; present on n1; missing on n2; not checked on n3"
    ]


def test_a_command_gets_an_image_on_its_standard_input(tmp_path: Path, userland: Userland, started: list[Command]):
    one = images_of(tmp_path, load=("ssh", "n1", "import"), remove=("ssh", "n1", "rm"))
    name = one.userland(info("n1"), userland)
    assert one.userland(info("n1"), userland) == name == f"docker.io/weighbridge/userland:{'1' * 16}"
    [load] = started
    assert load.stdin == b"".join(images.archive(images.userland_image(userland), "x86_64"))
    assert load.env == {RUN_VARIABLE: RUN, "WEIGHBRIDGE_NODE": "n1"}, (
        "a killed run's goes on until it is found by that"
    )
    folders = RunFolders(tmp_path.parent, tmp_path)
    assert [*supply.LoadedImages().find(folders)] == [], "its folder is no run's"
    one.remove()
    assert started[-1].env == {"WEIGHBRIDGE_NODE": "n1"}
    assert started[-1].argv == ("ssh", "n1", "rm", name) and not supply.NOTES.read(tmp_path)


@pytest.mark.parametrize(
    ("word", "context", "load", "remove"),
    [
        ("kind", "kind-dev", "kind load image-archive FILE --name dev --nodes n1", ""),
        ("minikube", "lab", "minikube image load FILE --profile lab", "minikube image rm NAME --profile lab"),
        ("k3d", "k3d-dev", "k3d image import FILE --cluster dev", ""),
        ("containerd", "any", "ctr --namespace k8s.io images import FILE", "ctr --namespace k8s.io images rm NAME"),
    ],
)
def test_each_tool_has_its_own_commands(
    tmp_path: Path, userland: Userland, started: list[Command], word: str, context: str, load: str, remove: str
):
    one = images_of(tmp_path, context, load=word)
    name = one.userland(info("n1"), userland)
    [(argv, env)] = [(each.argv, each.env) for each in started]
    assert env[RUN_VARIABLE] == RUN
    [file] = [each for each in argv if each.endswith(".tar")]
    assert " ".join(argv).replace(file, "FILE") == load and not Path(file).exists()
    one.remove()
    assert " ".join(started[-1].argv).replace(name, "NAME") == (remove or " ".join(argv).replace(name, "NAME"))


@pytest.mark.parametrize("words", ["./load.sh", "/usr/local/bin/load", "ssh n1 load"])
def test_a_command_may_be_a_path(words: str):
    assert supply.images_of(words) == {"load": words.split()}


def test_a_tool_is_not_guessed_for_another_context(tmp_path: Path, userland: Userland):
    with pytest.raises(Unavailable, match="whose name begins with 'kind-', not with 'prod'"):
        images_of(tmp_path, "prod", load="kind").userland(info("n1"), userland)


def test_what_a_killed_run_loaded_is_found_and_removed(
    tmp_path: Path, started: list[Command], monkeypatch: pytest.MonkeyPatch
):
    state = tmp_path / RUN
    state.mkdir()
    supply.NOTES.write(
        state, [supply.LoadedImage("n1", "i:1", ("ctr", "rm", "i:1")), supply.LoadedImage("n2", "i:1")]
    )
    kind, folders = supply.LoadedImages(), RunFolders(tmp_path, tmp_path)
    [left] = kind.find(folders)
    assert (left.run, left.kind, left.name) == (RUN, "image on node n1", "i:1")
    kind.remove(OrphanedRun(RUN, state, tmp_path))
    assert started[-1].argv == ("ctr", "rm", "i:1") and [*kind.find(folders)] == []


def test_an_image_is_pushed_once_and_named_by_its_digest(tmp_path: Path, userland: Userland, started: list[Command]):
    one = images_of(tmp_path, push="registry.example:5000/team/wb")
    name = one.userland(info("n1"), userland)
    assert name == f"registry.example:5000/team/wb@sha256:{'a' * 64}" and one.pulls
    tag = f"registry.example:5000/team/wb:userland-{'1' * 16}"
    words = [" ".join(each.argv) for each in started]
    assert words[1:] == ["docker load --quiet", f"docker push {tag}", f"docker rmi {tag}"]
    assert tag.encode() in started[1].stdin
    again = images_of(tmp_path, push="registry.example:5000/team/wb")
    assert again.userland(info("n2"), userland) == name and len(started) == 4
    one.remove()
    assert len(started) == 4, "it stays in the registry"


def test_podman_pushes_where_docker_does_not_answer(monkeypatch: pytest.MonkeyPatch):
    pushed: list[str] = []

    def run(command: Command) -> Completed:
        words = " ".join(command.argv)
        if "--digestfile" in words:
            Path(command.argv[3]).write_text(f"sha256:{'b' * 64}\n")
        pushed.append(words)
        return Completed(command.argv, 1 if words.startswith("docker") else 0, b"", b"", 1.0)

    monkeypatch.setattr(push, "which", lambda program: program)
    monkeypatch.setattr(push.process, "run", run)
    monkeypatch.setattr(push, "feed", lambda command, _: run(command))
    assert push.push(push.pushing_engine(), "r.example/wb:1", [b"x"]) == f"sha256:{'b' * 64}"
    assert pushed[1:3] == ["podman --version", "podman load --quiet"] and pushed[-1] == "podman rmi r.example/wb:1"
    monkeypatch.setattr(push, "which", lambda program: None)
    with pytest.raises(Unavailable, match="no engine can push"):
        push.pushing_engine()


def test_an_image_of_the_users_is_pulled_by_its_digest(tmp_path: Path):
    own = replace(USERLAND, reference="shop@sha256:1")
    one = images_of(tmp_path, pull=True)
    assert one.userland(info("n1"), own) == "shop@sha256:1" and one.pulls
    one._run.userlands = Userlands(USERLAND, by_environment={"x": own})
    assert one.launcher(info("n1")) == "shop@sha256:1", "the launcher is in no image"
    with pytest.raises(Unavailable, match="needs an image from a registry"):
        one.userland(info("n1"), USERLAND)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"load": "docker"},
        {"load": ("x",), "pull": True},
        {"push": "registry/UP:1"},
        {"load": "kind", "remove": ("x",)},
    ],
)
def test_images_come_in_one_way(options: dict[str, Any]):
    with pytest.raises(ValidationError):
        supply.NodeImages(**options)


def test_ports_of_a_node_are_read_in_its_network():
    tcp = "sl local_address rem_address st\n0: 00000000:0016 00000000:0000 0A\n1: 0100007F:1F90 0:0 01\n"
    udp = "sl local_address rem_address st\n0: 00000000:0035 00000000:0000 07\n"

    def read(path: str) -> str:
        if path.endswith("6"):
            raise FileNotFoundError(path)
        return tcp if "tcp" in path else udp

    assert network_ports(read) == {22, 53}


PLACE = cleanup.ClusterNamespace("c", "n", "/k")


def test_a_run_notes_where_it_has_objects(tmp_path: Path):
    other = cleanup.ClusterNamespace("d", "n", "")
    for place in (PLACE, other, PLACE):
        cleanup.note(tmp_path, place)
    assert cleanup.places_of(tmp_path) == [PLACE, other]
    (tmp_path / cleanup.NOTES.name).write_text('[{"context": 1, "unknown": 2}]')
    assert cleanup.places_of(tmp_path) == [] == cleanup.places_of(tmp_path / "nowhere")


def listed(*runs: str) -> dict[str, Any]:
    return {
        "items": [
            {"kind": "Pod", "metadata": {"name": f"p-{run}", "labels": {"weighbridge.run": run}}} for run in runs
        ]
    }


def test_what_is_labelled_as_a_runs_is_found_and_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    states = tmp_path / "states"
    (states / RUN).mkdir(parents=True)
    (states / "other").mkdir()
    cleanup.note(states / RUN, PLACE)
    there = json.dumps(listed(RUN, "../../etc", "fedcba987654"))
    none = (0, '{"items": []}', "")
    refused = (1, "", "services is forbidden")
    answers = ((0, there, ""), none, (0, "", ""), none, refused, refused, none, none, none, none, none)
    calls = fake(monkeypatch, *answers)
    kind = cleanup.ClusterObjects()
    [found] = kind.find(RunFolders(states, tmp_path / "data"))
    assert (found.run, found.kind, found.name) == (RUN, "Kubernetes Pod", f"p-{RUN}")
    kind.remove(OrphanedRun(RUN, states / RUN, tmp_path / "data"))
    assert [*kind.find(RunFolders(states, tmp_path / "data"))] == []
    deleted = calls[2].argv
    assert {"delete", f"--selector=weighbridge.run={RUN}", "--wait=false"} <= {*deleted}
    assert deleted[1:4] == ("--kubeconfig=/k", "--context=c", "--namespace=n")


def test_a_cluster_out_of_reach_keeps_no_other_run_from_being_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    gone = "000000000000"
    for run in (gone, RUN):
        (tmp_path / run).mkdir()
        cleanup.note(tmp_path / run, PLACE)
    refused, there, none = (1, "", "error: no server"), (0, json.dumps(listed(RUN)), ""), (0, '{"items": []}', "")
    fake(monkeypatch, refused, there, none)
    told: list[str] = []
    with pytest.raises(OSError, match=f"context c .run {gone}.: no server; .* delete {tmp_path / gone}"):
        told += (each.run for each in cleanup.ClusterObjects().find(RunFolders(tmp_path, tmp_path)))
    assert told == [RUN]
    fake(monkeypatch, there, none)
    [found] = cleanup.ClusterObjects().find(RunFolders(tmp_path, tmp_path, RUN))
    assert found.run == RUN
    forbidden = 'Error from server (Forbidden): pods is forbidden: User "u" cannot list resource "pods"'
    fake(monkeypatch, (1, "", forbidden))
    with pytest.raises(OSError, match=r"cannot list resource .pods.") as error:
        [*cleanup.ClusterObjects().find(RunFolders(tmp_path, tmp_path, RUN))]
    assert "delete" not in str(error.value), "the rights may come back"


def test_a_run_ends_without_a_word_of_one_whose_cluster_has_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kinds, gone = registry.hosts()["kubernetes"].cleanup, "000000000000"
    states = tmp_path / "states"
    monkeypatch.setattr(clean.run_lock, "base", lambda: states)
    monkeypatch.setattr(clean, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(clean.registry, "cleanups", lambda: kinds)
    for run, place in ((gone, cleanup.ClusterNamespace("gone", "n", "/none")), (RUN, PLACE)):
        (states / run).mkdir(parents=True)
        cleanup.note(states / run, place)
    supply.NOTES.write(states / gone, [supply.LoadedImage("n1", "i:1", ("ctr", "rm", "i:1"))])
    calls = fake(monkeypatch, (0, '{"items": []}', ""))
    assert clean.sweep_and_forget(RUN) == []
    assert [each.name for each in states.iterdir()] == [gone]
    assert {each.argv[2] for each in calls} == {"--context=c"}


def test_folders_of_nodes_go_before_the_image_and_the_objects_that_remove_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    steps: list[str] = []

    def step(kind: Cleanup, *_: object) -> None:
        steps.append(type(kind).__name__)

    for kind in (volumes.NodeFolders, supply.LoadedImages, cleanup.ClusterObjects):
        monkeypatch.setattr(kind, "remove", step)
        monkeypatch.setattr(kind, "remove_at", step)
    assert discard(OrphanedRun(RUN, tmp_path, tmp_path), registry.hosts()["kubernetes"].cleanup) == []
    assert steps == ["NodeFolders", "LoadedImages", "ClusterObjects"]
    steps.clear()
    dead = clean.Inventory((Leftover(RUN, "Kubernetes Pod", "p"),), {}, ())
    monkeypatch.setattr(clean, "find_in_cluster", lambda *_: dead)
    clean.clean_cluster("c", "n")
    assert steps == ["NodeFolders", "LoadedImages", "ClusterObjects"]


def test_images_stay_while_pods_with_them_have_folders_to_remove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(supply.LoadedImage, "taken_away", lambda *_: "")
    image = supply.LoadedImage("n1", "i:1", ("ctr", "rm", "i:1"))
    supply.NOTES.write(tmp_path, [image])
    volumes.NOTES.write(tmp_path, [volumes.NodeFolder("n1", "/mnt", f"weighbridge-{RUN}-0-pod-solo", "i:1", False)])
    dead = OrphanedRun(RUN, tmp_path, tmp_path)
    with pytest.raises(OSError, match="the pods that remove its folders from nodes need them"):
        supply.LoadedImages().remove(dead)
    assert supply.NOTES.read(tmp_path) == [image]
    volumes.NOTES.write(tmp_path, [])
    supply.LoadedImages().remove(dead)
    assert supply.NOTES.read(tmp_path) == []


NOW = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


def made_object(kind: str, name: str, run: str, at: str, **status: Any) -> dict[str, Any]:
    about = {"name": name, "labels": {"weighbridge.run": run}, "creationTimestamp": f"2026-01-02T{at}:00Z"}
    return {"kind": kind, "metadata": about, "status": status}


def test_a_run_of_another_machine_lives_while_it_has_a_pod_or_is_new():
    other, new = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
    sidecar = {"name": "istio-proxy", "state": {"running": {}}}
    ended = [sidecar, {"name": "site", "state": {"terminated": {"exitCode": 0}}}]
    items = [
        made_object("ConfigMap", "owner", RUN, "08:00"),
        made_object("Pod", "ended", RUN, "08:01", phase="Succeeded"),
        made_object("Pod", "with a sidecar", RUN, "08:01", phase="Running", containerStatuses=ended),
        made_object("ConfigMap", "owner", other, "08:00"),
        made_object("Pod", "works", other, "08:01", phase="Running"),
        made_object("ConfigMap", "owner", new, "11:50"),
        made_object("ConfigMap", "somebody's", "../etc", "08:00"),
    ]
    runs = {each.id: each for each in cleanup.runs_at(items, NOW)}
    assert runs.keys() == {RUN, other, new}
    assert not runs[RUN].alive
    assert [each.name for each in runs[RUN].leftovers] == ["owner", "ended", "with a sidecar"]
    assert runs[other].alive == "pod works has not ended" and "15 minutes" in runs[new].alive


def test_dead_runs_of_all_machines_are_removed_from_a_cluster(monkeypatch: pytest.MonkeyPatch):
    there = json.dumps({"items": [made_object("ConfigMap", "owner", RUN, "08:00")]})
    date = "I0102 12:00:00.0 1 x.go:1] headers=<\n\tDate: Fri, 02 Jan 2026 12:00:00 GMT\n >"
    none = (0, '{"items": []}', "")
    calls = fake(monkeypatch, (0, there, ""), none, (0, "{}", date), (0, "", ""), none)
    monkeypatch.setattr(clean.registry, "cleanups", lambda: (cleanup.ClusterObjects(),))
    inventory = clean.clean_cluster("c", "n")
    assert [each.name for each in inventory.removed] == ["owner"] and not inventory.failures and not inventory.left
    assert {each.argv[1:3] for each in calls} == {("--context=c", "--namespace=n")}
    assert f"--selector=weighbridge.run={RUN}" in calls[3].argv and "delete" in calls[3].argv
    fake(monkeypatch, (1, "", "error: no server"))
    assert clean.find_in_cluster("c", "n").failures == (
        "objects in Kubernetes clusters cannot be checked: no server",
    )


def test_a_cluster_out_of_reach_keeps_the_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cleanup.note(tmp_path, PLACE)
    fake(monkeypatch, (1, "", "error: no server"))
    with pytest.raises(OSError, match="context c: no server"):
        cleanup.ClusterObjects().remove(OrphanedRun(RUN, tmp_path, tmp_path))


def test_what_stays_in_a_cluster_is_named(monkeypatch: pytest.MonkeyPatch):
    fake(monkeypatch, (0, json.dumps(listed(RUN)), ""))
    with pytest.raises(OSError, match=f"Pod p-{RUN}"):
        cleanup.remove(PLACE.kubectl(), RUN, within_s=0)


def test_services_that_a_run_adds_lead_to_the_pod_of_a_site():
    made = services.service(RUN, 7, OWNER, "host-a", 20000)
    assert made["metadata"]["name"] == f"weighbridge-{RUN}-services-7" and made["metadata"]["ownerReferences"]
    assert made["spec"]["selector"] == objects.labels(RUN, "host-a")
    assert services.is_added(RUN, f"weighbridge-{RUN}-services-7")
    assert not services.is_added(RUN, f"weighbridge-{RUN}-services-server")
    assert services.tried(1) == [0] and services.tried(5000)[0] == 4999 and len(services.tried(5000)) <= 20


def test_so_many_services_may_be_added_as_addresses_and_quotas_leave(monkeypatch: pytest.MonkeyPatch):
    listed: dict[str, Any] = {
        "resourcequotas": [],
        "servicecidrs": [{"spec": {"cidrs": ["10.96.0.0/22", "fd00::/112"]}}],
    }
    monkeypatch.setattr(Kubectl, "get", lambda _, what: {"items": listed[what]})
    monkeypatch.setattr(Kubectl, "count", lambda *_: 22)
    assert services.room(Kubectl()) == services.ServiceCapacity(500, "1,000 of 1,022 addresses for Services are free")
    refused = services.readiness(Kubectl(), 501)
    assert not refused.ready and "at most 500 Services, not 501" in refused.detail and "500" in refused.remedy
    left = {"status": {"hard": {"services": "50"}, "used": {"services": "5"}}, "metadata": {"name": "q"}}
    listed["resourcequotas"] = [left]
    assert services.room(Kubectl()) == services.ServiceCapacity(35, "quota q has 45 services left")
    assert services.readiness(Kubectl(), 35).ready
    listed |= {"resourcequotas": [], "servicecidrs": [{"spec": {"cidrs": ["10.0.0.0/8"]}}]}
    assert services.room(Kubectl()).most == services.MOST


def test_all_services_that_a_killed_run_added_are_one_line():
    items = [objects.owner(RUN, b""), *(services.service(RUN, each, OWNER, "host-a", 1) for each in range(3))]
    for each in items:
        each["metadata"]["creationTimestamp"] = "2026-11-01T00:00:00Z"
    [run] = cleanup.runs_at(items, NOW)
    names = [each.name for each in run.leftovers]
    assert names == [f"weighbridge-{RUN}", f"weighbridge-{RUN}-services-0 and 2 like it"]
