"""What kubectl 1.35 really said (``data/kubernetes``), the objects of a run, and what is found of them."""

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.hosts.kubernetes import images, leavings, objects, survey
from weighbridge.hosts.kubernetes.cluster import Cluster
from weighbridge.hosts.kubernetes.kubectl import Kubectl, sentence
from weighbridge.hosts.kubernetes.node import network_ports
from weighbridge.hosts.kubernetes.objects import NodeInfo, Owner, PodRequest, state_of
from weighbridge.hosts.kubernetes.session import LEASE_S
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import RunContext
from weighbridge.model.leavings import DeadRun, RunFolders

DATA = Path(__file__).parent / "data/kubernetes"
RUN = "0123456789ab"
OWNER = Owner(f"weighbridge-{RUN}", "7c1e")
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
            "The connection to the server localhost:8080 was refused - did you specify the right host or port?",
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
    assert Owner.of({"metadata": {"name": "a", "uid": "b", "other": 1}}) == Owner("a", "b")


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
        RUN, "s", "n", "i", OWNER, host_network=True, limits={"cpu": "500m"}, sysctls={"net.core.somaxconn": "9"},
        shm_size=1 << 20, open_files=1024, runtime_class="gvisor",
    )  # fmt: skip
    spec = objects.pod(request)["spec"]
    [container] = spec["containers"]
    assert spec["hostNetwork"] and spec["runtimeClassName"] == "gvisor"
    assert spec["securityContext"] == {"sysctls": [{"name": "net.core.somaxconn", "value": "9"}]}
    assert container["resources"] == {"limits": {"cpu": "500m"}, "requests": {"cpu": "500m"}}
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
        "status": {"phase": "Pending", "containerStatuses": [{"state": state}], **status},
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
    killed = pod_with({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, phase="Failed")
    assert state_of(killed).refusal == "its container ended with exit code 137 (OOMKilled)"
    going = {"metadata": {"name": "p", "deletionTimestamp": "now"}, "status": {"phase": "Running"}}
    assert state_of(going).refusal == "pod p was deleted"
    assert state_of({}) == objects.PodState(False)


def test_the_last_warning_is_told():
    old = {"type": "Warning", "message": "old", "lastTimestamp": "2026-01-01T00:00:00Z"}
    new = {"type": "Warning", "message": "new", "lastTimestamp": "2026-01-01T00:00:09Z"}
    normal = {"type": "Normal", "message": "fine", "lastTimestamp": "2026-01-02T00:00:00Z"}
    assert objects.last_warning({"items": [new, normal, old]}) == "new"
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

    monkeypatch.setattr("weighbridge.hosts.kubernetes.kubectl.process.run", run)
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


def test_a_kubeconfig_that_a_study_brings_is_not_used_before_the_user_was_asked(monkeypatch: pytest.MonkeyPatch):
    calls = fake(monkeypatch, (0, "yes", ""))
    kind = registry.hosts()["kubernetes"]
    assert kind.readiness(kind.options.model_validate({"kind": "kubernetes", "kubeconfig": "/theirs"})).ready
    assert not calls
    assert kind.readiness(kind.options.model_validate({"kind": "kubernetes"})).ready and calls


def test_rights_are_yes_no_or_a_failure(monkeypatch: pytest.MonkeyPatch):
    calls = fake(monkeypatch, (0, "yes\n", ""), (1, "no\n", ""), (1, "", ""))
    assert Kubectl().can_i("get", "pods") and not Kubectl().can_i("create", "pods/exec")
    assert calls[1].argv[-3:] == ("create", "pods", "--subresource=exec")
    with pytest.raises(Unavailable, match="without a word"):
        Kubectl().can_i("get", "pods")


def test_a_cluster_that_does_not_answer_has_one_row(monkeypatch: pytest.MonkeyPatch):
    fake(monkeypatch, (1, "", "error: no server"))
    [(name, row)] = survey.survey(Kubectl()).items()
    assert name == "API server" and not row.ready and row.detail == "no server" and row.remedy


def test_a_cluster_has_a_row_for_each_thing(monkeypatch: pytest.MonkeyPatch):
    fake(monkeypatch, (0, json.dumps({"serverVersion": {"gitVersion": "v1.35.4"}}), ""), (0, "yes", ""))
    monkeypatch.setattr(Kubectl, "get", lambda *_: {"items": [NODE]})
    rows = survey.survey(Kubectl())
    assert all(row.ready for row in rows.values()) and rows["nodes"].caveat == "one node"
    assert rows["API server"].detail == "v1.35.4, kubectl unknown"


def test_lacking_rights_are_named(monkeypatch: pytest.MonkeyPatch):
    fake(monkeypatch, (1, "no\n", ""))
    row = survey.rights(Kubectl())
    assert not row.ready and "create pods/exec" in row.detail


def test_what_refuses_pods_has_a_remedy(monkeypatch: pytest.MonkeyPatch):
    fake(monkeypatch, (1, "", (DATA / "pod-security.txt").read_text().splitlines()[1]))
    row = survey.admission(Kubectl(), host_network=True)
    assert "violates PodSecurity" in row.detail and "kubectl label namespace" in row.remedy


def test_an_image_is_an_archive_that_runtimes_read(tmp_path: Path):
    layer = tmp_path / "root.tar"
    with tarfile.open(layer, "w") as tar:
        tar.addfile(tarfile.TarInfo("etc"))
    written = b"".join(images.archive(images.Image("docker.io/weighbridge/userland:1", layer), "aarch64"))
    with tarfile.open(fileobj=io.BytesIO(written)) as tar:
        files = {each.name: tar.extractfile(each).read() for each in tar if each.isfile()}  # type: ignore[union-attr]
    [about] = json.loads(files["manifest.json"])
    config = json.loads(files[about["Config"]])
    assert about["RepoTags"] == ["docker.io/weighbridge/userland:1"] and config["architecture"] == "arm64"
    [name] = about["Layers"]
    assert files[name] == layer.read_bytes() and config["rootfs"]["diff_ids"] == [f"sha256:{name.partition('/')[0]}"]


class Loader:
    """A command that loads images: what it was sent, and how it ends."""

    code, sent, closed = 0, b"", False

    def __init__(self, command: Command, *, hold: bool) -> None:
        assert hold
        self.command = command
        Loader.sent = b""

    def send(self, data: bytes) -> None:
        Loader.sent += data

    def end_input(self) -> None:
        Loader.closed = True

    def wait(self, timeout_s: float) -> bool:
        return self.closed

    def stop(self, *, timed_out: bool) -> Completed:
        return Completed(self.command.argv, self.code, b"", b"no containerd", 1.0, timed_out)


def test_an_image_goes_to_the_commands_standard_input(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(images, "Process", Loader)
    image = images.launcher_image(b"\x7fELF" * 500_000)
    images.load(image, "x86_64", ("ctr", "import", "-"))
    assert Loader.sent == b"".join(images.archive(image, "x86_64")) and Loader.closed
    monkeypatch.setattr(Loader, "code", 1)
    with pytest.raises(Unavailable, match="cannot be loaded: ctr: no containerd"):
        images.load(image, "x86_64", ("ctr", "import", "-"))


def info(name: str, **changes: Any) -> NodeInfo:
    return objects.node_info({**NODE, "metadata": {"name": name}, **changes})


def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *nodes: dict[str, Any]) -> Cluster:
    monkeypatch.setattr("weighbridge.hosts.kubernetes.cluster.platform.machine", lambda: "x86_64")
    kubectl = Kubectl()
    monkeypatch.setattr(kubectl, "get", lambda *_: {"items": nodes})
    run = RunContext(RUN, tmp_path, tmp_path, None)  # type: ignore[arg-type]
    return Cluster(run, kubectl, "default", OWNER)


def named(name: str, **status: Any) -> dict[str, Any]:
    return {**NODE, "metadata": {"name": name}, "status": {**NODE["status"], **status}}  # type: ignore[dict-item]


def test_each_host_has_a_node_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    two = cluster(tmp_path, monkeypatch, named("n1"), named("n2"), named("n3"))
    assert two.node("a", None, None, {"n1"}).name == "n2"
    assert two.node("b", "n1", None, {"n1"}).name == "n1"
    assert two.node("c", None, None, {"n1"}).name == "n3"
    with pytest.raises(Unavailable, match="no further node"):
        two.node("d", None, None, {"n1"})
    with pytest.raises(Unavailable, match="has no node n9: it has n1, n2, n3"):
        two.node("d", "n9", None, {"n9"})


def test_a_node_that_cannot_have_pods_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    off = cluster(tmp_path, monkeypatch, named("n1", conditions=[{"type": "Ready", "status": "Unknown"}]))
    with pytest.raises(Unavailable, match="n1 is not ready"):
        off.node("a", "n1", None, ())
    arm = cluster(tmp_path, monkeypatch, named("n1", nodeInfo={"architecture": "arm64"}))
    with pytest.raises(Unavailable, match="run weighbridge on a aarch64 machine"):
        arm.node("a", None, None, ())


def test_an_image_that_no_command_brings_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one = cluster(tmp_path, monkeypatch)
    there = images.Image("docker.io/weighbridge/userland:1", b"")
    assert one.image(info("n1"), there, ()) == there.reference, "it has it"
    with pytest.raises(Unavailable, match="does not have the image"):
        one.image(info("n1"), images.Image("other:1", b""), ())


def test_ports_of_a_node_are_read_in_its_network():
    tcp = "sl local_address rem_address st\n0: 00000000:0016 00000000:0000 0A\n1: 0100007F:1F90 0:0 01\n"
    udp = "sl local_address rem_address st\n0: 00000000:0035 00000000:0000 07\n"

    def read(path: str) -> str:
        if path.endswith("6"):
            raise FileNotFoundError(path)
        return tcp if "tcp" in path else udp

    assert network_ports(read) == {22, 53}


PLACE = leavings.Place("c", "n", "/k")


def test_a_run_notes_where_it_has_objects(tmp_path: Path):
    other = leavings.Place("d", "n", "")
    for place in (PLACE, other, PLACE):
        leavings.note(tmp_path, place)
    assert leavings.places_of(tmp_path) == [PLACE, other]
    (tmp_path / leavings.NOTES).write_text('[{"context": 1, "unknown": 2}]')
    assert leavings.places_of(tmp_path) == [] == leavings.places_of(tmp_path / "nowhere")


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
    leavings.note(states / RUN, PLACE)
    there = json.dumps(listed(RUN, "../../etc", "fedcba987654"))
    calls = fake(monkeypatch, (0, there, ""), (0, "", ""), (0, '{"items": []}', ""))
    kind = leavings.ClusterObjects()
    [found] = kind.find(RunFolders(states, tmp_path / "data"))
    assert (found.run, found.kind, found.name) == (RUN, "Kubernetes Pod", f"p-{RUN}")
    kind.remove(DeadRun(RUN, states / RUN, tmp_path / "data"))
    assert [*kind.find(RunFolders(states, tmp_path / "data"))] == []
    deleted = calls[1].argv
    assert {"delete", f"--selector=weighbridge.run={RUN}", "--wait=false"} <= {*deleted}
    assert deleted[1:4] == ("--kubeconfig=/k", "--context=c", "--namespace=n")


def test_a_cluster_out_of_reach_keeps_the_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    leavings.note(tmp_path, PLACE)
    fake(monkeypatch, (1, "", "error: no server"))
    with pytest.raises(OSError, match="context c: no server"):
        leavings.ClusterObjects().remove(DeadRun(RUN, tmp_path, tmp_path))


def test_what_stays_in_a_cluster_is_named(monkeypatch: pytest.MonkeyPatch):
    fake(monkeypatch, (0, json.dumps(listed(RUN)), ""))
    with pytest.raises(OSError, match=f"Pod p-{RUN}"):
        leavings.remove(PLACE.kubectl(), RUN, within_s=0)
