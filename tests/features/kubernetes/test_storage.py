"""What pods keep data on, as their manifests say it, and what the cluster says of it."""

from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes import objects, volumes
from weighbridge.features.kubernetes.cleanup import ClusterNamespace
from weighbridge.features.kubernetes.cleanup import note as note_place
from weighbridge.features.kubernetes.kubectl import Kubectl, RequestRefused
from weighbridge.features.kubernetes.manifest import with_storage
from weighbridge.features.kubernetes.objects import ObjectOwner, PodRequest, claim_state, pod, state_of
from weighbridge.model.cleanup import Cleanup, OrphanedRun, RunFolders, discard
from weighbridge.model.host import Capabilities, RunContext
from weighbridge.model.names import RunId
from weighbridge.model.site import MountRequest

RUN = RunId("0123456789ab")
OWNER = ObjectOwner(f"weighbridge-{RUN}", "7c1e")
REQUEST = PodRequest(RUN, "0-pod-server", "n1", "i:1", OWNER)


class Pods:
    """A node that notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def claim(self, *words: Any) -> Any:
        self.asked.append(words)
        return nullcontext(("c-1", {"storage class": "fast"}))

    def folder(self, *words: Any) -> Any:
        self.asked.append(words)
        return nullcontext("weighbridge-x")


def manifest(tmp_path: Path, **storage: Any) -> tuple[dict[str, Any], Pods]:
    """The manifest of a pod with this storage, and what its node was asked for."""
    plugin, pods = registry.storage()[str(storage["kind"])], Pods()
    run = RunContext(RUN, tmp_path, tmp_path, ExitStack())
    host: Any = SimpleNamespace(capabilities=Capabilities(pods=pods))  # type: ignore[arg-type]
    with plugin.open(plugin.options.model_validate(storage), MountRequest(run, host, "0-pod-server")) as mount:
        return pod(with_storage(REQUEST, mount)), pods


@pytest.mark.parametrize(
    ("storage", "volume", "folder"),
    [
        ({"kind": "empty-dir"}, {"emptyDir": {}}, ""),
        ({"kind": "empty-dir", "size": "1GiB"}, {"emptyDir": {"sizeLimit": "1073741824"}}, ""),
        ({"kind": "tmpfs", "size": "1MiB"}, {"emptyDir": {"medium": "Memory", "sizeLimit": "1048576"}}, ""),
        ({"kind": "host-path", "path": "/d"}, {"hostPath": {"path": "/d", "type": "Directory"}}, "weighbridge-x"),
        ({"kind": "claim"}, {"persistentVolumeClaim": {"claimName": "c-1"}}, ""),
    ],
)  # fmt: skip
def test_a_storage_is_a_volume_of_the_pod(tmp_path: Path, storage: dict[str, Any], volume: Any, folder: str):
    made, _ = manifest(tmp_path, **storage)
    [data] = [each for each in made["spec"]["volumes"] if each["name"] == "data"]
    [container] = made["spec"]["containers"]
    [at] = [each for each in container["volumeMounts"] if each["name"] == "data"]
    assert data == {"name": "data", **volume} and at["mountPath"] == "/srv" and at.get("subPath", "") == folder
    assert container["securityContext"]["readOnlyRootFilesystem"]


def test_the_layer_of_a_pod_can_be_written_to(tmp_path: Path):
    made, _ = manifest(tmp_path, kind="layer")
    [container] = made["spec"]["containers"]
    assert not container["securityContext"]["readOnlyRootFilesystem"]
    assert "data" not in {each["name"] for each in made["spec"]["volumes"]}


def test_a_claim_asks_for_what_the_study_says(tmp_path: Path):
    _, pods = manifest(tmp_path, kind="claim", size="2GiB", storage_class="fast")
    assert pods.asked == [("0-pod-server", 2**31, "fast")]
    asked = objects.claim(RUN, "0-pod-server", OWNER, 2**31, "fast")
    assert asked["spec"]["storageClassName"] == "fast" and asked["metadata"]["labels"]["weighbridge.run"] == RUN
    assert "storageClassName" not in objects.claim(RUN, "s", OWNER, 1, "")["spec"]


def event(reason: str) -> dict[str, Any]:
    return {"items": [{"reason": reason, "message": f"words of {reason}"}]}


def test_a_pod_is_made_when_its_claim_can_have_a_volume():
    assert claim_state({"status": {"phase": "Bound"}}, {}).ready
    assert claim_state({}, event("WaitForFirstConsumer")).ready
    assert claim_state({}, event("FailedBinding")).refusal == "words of FailedBinding"
    waiting = claim_state({"status": {"phase": "Pending"}}, event("ExternalProvisioning"))
    assert not waiting.ready and not waiting.refusal
    why = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
    assert not state_of({"status": {"conditions": [condition]}}).refusal


FOLDER = volumes.NodeFolder("n1", "/mnt/d", f"weighbridge-{RUN}-0-pod-server", "launcher:1", pull=False)


def without_its_pod(about: Any) -> Callable[..., Any]:
    """What kubectl gets where the folder's pod has gone."""

    def get(_: Kubectl, what: str, *__: str, needed: bool = False) -> Any:
        if what == f"pod/{FOLDER.name}":
            raise RequestRefused("not found")
        return about

    return get


def test_a_folder_of_a_node_is_removed_by_a_pod_of_it(monkeypatch: pytest.MonkeyPatch):
    made: list[Any] = []
    monkeypatch.setattr(Kubectl, "create", lambda _, manifest: made.append(manifest))
    monkeypatch.setattr(Kubectl, "delete", lambda *_: None)
    monkeypatch.setattr(Kubectl, "get", without_its_pod({"status": {"phase": "Succeeded"}}))
    FOLDER.removed(Kubectl(), RUN, OWNER)
    [container] = made[0]["spec"]["containers"]
    assert container["command"] == ["/weighbridge/launcher", "remove", f"/srv/weighbridge-{RUN}-0-pod-server"]
    assert made[0]["metadata"]["name"] == f"weighbridge-{RUN}-remove-0-pod-server"


def test_a_folder_is_removed_once_its_pod_has_gone(monkeypatch: pytest.MonkeyPatch):
    happened: list[str] = []

    def get(_: Kubectl, what: str, *__: str, needed: bool = False) -> Any:
        happened.append(f"get {what}")
        if happened.count(happened[-1]) > 2:
            raise RequestRefused("not found")
        return {"status": {"phase": "Succeeded"}}

    monkeypatch.setattr(volumes, "_LOOK_S", 0.0)
    monkeypatch.setattr(Kubectl, "create", lambda _, manifest: happened.append("create"))
    monkeypatch.setattr(Kubectl, "delete", lambda _, what: happened.append(f"delete {what}"))
    monkeypatch.setattr(Kubectl, "get", get)
    FOLDER.removed(Kubectl(), RUN, OWNER)
    pod = f"pod/{FOLDER.name}"
    assert happened[: happened.index("create")] == [
        f"delete {pod}", *3 * [f"get {pod}"], f"delete pod/weighbridge-{RUN}-remove-0-pod-server"
    ]  # fmt: skip
    monkeypatch.setattr(volumes, "_GONE_S", 0.0)
    monkeypatch.setattr(Kubectl, "get", lambda *_, **__: {})
    with pytest.raises(Unavailable, match="still exists"):
        FOLDER.removed(Kubectl(), RUN, OWNER)


def test_a_remover_waits_for_the_one_that_a_killed_run_left(monkeypatch: pytest.MonkeyPatch):
    answers = [Unavailable('object is being deleted: pods "p" already exists'), None, Unavailable("forbidden")]

    def create(*_: Any) -> None:
        if (answer := answers.pop(0)) is not None:
            raise answer

    monkeypatch.setattr(volumes, "_LOOK_S", 0.0)
    monkeypatch.setattr(Kubectl, "create", create)
    monkeypatch.setattr(Kubectl, "delete", lambda *_: None)
    monkeypatch.setattr(Kubectl, "get", without_its_pod({"status": {"phase": "Succeeded"}}))
    FOLDER.removed(Kubectl(), RUN, OWNER)
    with pytest.raises(Unavailable, match="forbidden"):
        FOLDER.removed(Kubectl(), RUN, OWNER)
    assert not answers


def test_a_folder_that_cannot_be_removed_is_kept_in_mind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    state = tmp_path / RUN
    state.mkdir()
    volumes.NOTES.write(state, [FOLDER])
    note_place(state, ClusterNamespace("c", "n", ""))
    kind, folders = volumes.NodeFolders(), RunFolders(tmp_path, tmp_path)
    [left] = kind.find(folders)
    assert (left.run, left.kind, left.name) == (RUN, "folder on node n1", f"/mnt/d/weighbridge-{RUN}-0-pod-server")
    there = {"metadata": {"name": "o", "uid": "1"}}
    about = {**there, "items": [there], "status": {"phase": "Failed"}}
    monkeypatch.setattr(Kubectl, "get", without_its_pod(about))
    monkeypatch.setattr(Kubectl, "create", lambda *_: None)
    monkeypatch.setattr(Kubectl, "delete", lambda *_: None)
    with pytest.raises(OSError, match="might be left"):
        kind.remove(OrphanedRun(RUN, state, tmp_path))
    assert volumes.NOTES.read(state) == [FOLDER]


def test_folders_are_removed_before_the_image_and_the_objects_of_their_removers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    removed: list[str] = []

    def note(kind: Cleanup, *_: Any) -> None:
        removed.append(kind.label)

    for kind in (each for each in registry.cleanups() if "Kubernetes" in each.label):
        monkeypatch.setattr(type(kind), "remove", note)
    discard(
        OrphanedRun(RUN, tmp_path, tmp_path), [each for each in registry.cleanups() if "Kubernetes" in each.label]
    )
    assert removed == [
        "folders on nodes of Kubernetes clusters", "images on nodes of Kubernetes clusters",
        "objects in Kubernetes clusters",
    ]  # fmt: skip


def test_folders_that_pods_still_name_are_removed_from_another_machine(monkeypatch: pytest.MonkeyPatch):
    disk = {"hostPath": {"path": "/mnt/d", "type": "Directory"}}
    request = PodRequest(RUN, "0-pod-server", "n1", "i:1", OWNER, data=disk, data_folder=FOLDER.name)
    pods = [pod(request), pod(replace(request, data_folder="etc")), pod(replace(request, data=None))]
    for each in pods:
        each["metadata"]["creationTimestamp"] = "2026-01-02T08:00:00Z"
        each["spec"]["nodeName"], each["status"] = "n1", {"phase": "Succeeded"}
    happened: list[str] = []

    def removed(folder: volumes.NodeFolder, *_: Any) -> None:
        happened.append(f"{folder.node} {folder.path}/{folder.name} {folder.image}")

    there = {"configmaps": [{"metadata": {"name": "o", "uid": "1"}}], "pods": pods}
    monkeypatch.setattr(Kubectl, "get", lambda _, kind, *__: {"items": there[kind]})
    monkeypatch.setattr(Kubectl, "clock", lambda _: datetime(2026, 1, 2, 12, tzinfo=UTC))
    monkeypatch.setattr(volumes.NodeFolder, "removed", removed)
    [run] = volumes.NodeFolders().find_at("c", "n")
    assert [each.name for each in run.leftovers] == [f"/mnt/d/{FOLDER.name}"] and not run.alive
    volumes.NodeFolders().remove_at("c", "n", RUN)
    assert happened == [f"n1 /mnt/d/{FOLDER.name} i:1"], "what names no folder of the run's is nobody's"


def test_a_claim_that_gets_no_volume_is_refused_in_the_clusters_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    deleted: list[str] = []
    answers = {
        "persistentvolumeclaim/c": {"metadata": {"uid": "1"}, "status": {"phase": "Pending"}},
        "events": event("ProvisioningFailed"),
    }
    monkeypatch.setattr(Kubectl, "create", lambda *_: {"metadata": {"name": "c"}})
    monkeypatch.setattr(Kubectl, "get", lambda _, what, *__, **___: answers[what])
    monkeypatch.setattr(Kubectl, "delete", lambda _, what: deleted.append(what))
    run = RunContext(RUN, tmp_path, tmp_path, ExitStack())
    with (
        pytest.raises(Unavailable, match="persistentvolumeclaim c: words of ProvisioningFailed"),
        volumes.claimed(run, Kubectl(), OWNER, "s", 1, ""),
    ):
        pass
    assert deleted == ["persistentvolumeclaim/c"]
