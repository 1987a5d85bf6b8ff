"""Storage of pods that outlives them: claimed volumes, and folders of their nodes. Both end with the run."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.kubernetes.cleanup import ClusterNamespace, places_of, runs_at
from weighbridge.features.kubernetes.kubectl import NOT_FOUND, Kubectl, RequestRefused
from weighbridge.features.kubernetes.notes import Notes
from weighbridge.features.kubernetes.objects import (
    CONTAINER,
    RUN_LABEL,
    SITE_LABEL,
    ObjectOwner,
    PodRequest,
    absent_path,
    claim,
    claim_state,
    has_succeeded,
    object_name,
    owner,
    remover,
    selector_of_events,
    state_of,
)
from weighbridge.launcher import build
from weighbridge.model.cleanup import Cleanup, Leftover, OrphanedRun, RemoteRun, RunFolders
from weighbridge.model.host import RunContext
from weighbridge.user_cache import cache_folder

BOUND_S = 180.0
_REMOVED_S = 120.0
_LOOK_S = 0.25
_GONE_S = 30.0
_BEING_DELETED = "object is being deleted"


@contextmanager
def claimed(
    run: RunContext, kubectl: Kubectl, its_owner: ObjectOwner, name: str, size: int, storage_class: str
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Claim a volume for a site; yield the claim's name and facts of its class. Raises Unavailable."""
    manifest = claim(run.id, name, its_owner, size, storage_class)
    claim_name = kubectl.create(manifest)["metadata"]["name"]
    try:
        yield claim_name, _await_volume(kubectl, claim_name, run)
    finally:
        with contextlib.suppress(Unavailable, EnvironmentLost):  # it also ends with its owner
            kubectl.delete(f"persistentvolumeclaim/{claim_name}")


def _await_volume(kubectl: Kubectl, name: str, run: RunContext) -> Mapping[str, str]:
    """Wait until a pod can use it. Raises Unavailable, in the cluster's own words."""
    deadline = time.monotonic() + BOUND_S
    while True:
        record = kubectl.get(f"persistentvolumeclaim/{name}", needed=True)
        events: Mapping[str, Any] = {}
        seen = True
        try:
            events = kubectl.get("events", selector_of_events(record))
        except Unavailable:
            seen = False
        state = claim_state(record, events)
        if state.ready or not seen:
            return _class_facts(kubectl, str((record.get("spec") or {}).get("storageClassName") or ""), run)
        if state.refusal:
            raise Unavailable(f"persistentvolumeclaim {name}: {state.refusal}")
        if time.monotonic() > deadline:
            raise Unavailable(f"persistentvolumeclaim {name} has no volume after {BOUND_S:.0f} s")
        time.sleep(_LOOK_S)


def _class_facts(kubectl: Kubectl, name: str, run: RunContext) -> Mapping[str, str]:
    facts = {"storage class": name}
    with contextlib.suppress(Unavailable):
        record = kubectl.get(f"storageclass/{name}") if name else {}
        facts |= {
            "provisioner": str(record.get("provisioner") or ""),
            "reclaim policy": str(record.get("reclaimPolicy") or ""),
        }
        if record.get("reclaimPolicy") == "Retain":
            run.say(f"StorageClass {name} retains its volumes, so they remain after the run")
    return {key: value for key, value in facts.items() if value}


@dataclass(frozen=True, slots=True)
class NodeFolder:
    """A pod's folder below a path of its node, and the image for a pod that removes it.

    ``name`` is the name of the folder, and of that pod.
    """

    node: str
    path: str
    name: str
    image: str
    pull: bool

    def removed(self, kubectl: Kubectl, run_id: str, its_owner: ObjectOwner) -> None:
        """Remove it by a pod on its node, after the pod that uses it has ended. Raises Unavailable."""
        _await_deleted(kubectl, self.name)  # kubelet can still make the folder while that pod starts
        disk = {"hostPath": {"path": self.path, "type": "Directory"}}
        site = f"remove{self.name.partition(run_id)[2]}"
        request = PodRequest(run_id, site, self.node, self.image, its_owner, pull=self.pull, data=disk)
        kubectl.delete(f"pod/{request.name}")
        _create_again(kubectl, remover(request, self.name))
        try:
            self._await_removed(kubectl, request.name)
        finally:
            with contextlib.suppress(Unavailable, EnvironmentLost):
                kubectl.delete(f"pod/{request.name}")

    def _await_removed(self, kubectl: Kubectl, pod: str) -> None:
        deadline = time.monotonic() + _REMOVED_S
        while True:
            record = kubectl.get(f"pod/{pod}", needed=True)
            if has_succeeded(record):
                return
            with contextlib.suppress(Unavailable):
                if absent_path(kubectl.get("events", selector_of_events(record))):
                    return  # so the folder does not exist either
            reason = state_of(record).refusal
            if not reason and time.monotonic() > deadline:
                reason = f"not within {_REMOVED_S:.0f} s"
            if reason:
                raise Unavailable(f"folder {self.path}/{self.name} might be left on node {self.node}: {reason}")
            time.sleep(_LOOK_S)


def _await_deleted(kubectl: Kubectl, pod: str) -> None:
    """Delete a pod and wait for its end. Raises Unavailable."""
    kubectl.delete(f"pod/{pod}")
    deadline = time.monotonic() + _GONE_S
    while True:
        try:
            kubectl.get(f"pod/{pod}", needed=True)
        except RequestRefused as error:
            if NOT_FOUND in str(error):
                return
            raise
        if time.monotonic() > deadline:
            raise Unavailable(f"pod {pod} still exists {_GONE_S:.0f} s after it was deleted")
        time.sleep(_LOOK_S)


def _create_again(kubectl: Kubectl, manifest: Mapping[str, Any]) -> None:
    """Make an object, after a deleted one of its name is gone. Raises Unavailable."""
    deadline = time.monotonic() + _GONE_S
    while True:
        try:
            kubectl.create(manifest)
        except Unavailable as error:
            if _BEING_DELETED not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(_LOOK_S)
        else:
            return


NOTES = Notes("kubernetes-folders.json", NodeFolder)


@contextmanager
def node_folder(run: RunContext, kubectl: Kubectl, its_owner: ObjectOwner, folder: NodeFolder) -> Iterator[str]:
    """Yield a folder of a node, which kubelet makes with the pod that mounts it; it is removed at the end."""
    NOTES.write(run.state, [*NOTES.read(run.state), folder])
    try:
        yield folder.name
    finally:
        with contextlib.suppress(Unavailable, EnvironmentLost):  # the end of the run tries again
            folder.removed(kubectl, run.id, its_owner)
            NOTES.write(run.state, [each for each in NOTES.read(run.state) if each != folder])


def folder_name(run_id: str, site: str) -> str:
    """Return the name of a site's folder, which is its pod's."""
    return object_name(run_id, site)


def _folders_in(pods: Sequence[Mapping[str, Any]], run_id: str) -> list[NodeFolder]:
    """Return the folders of nodes in a run's pods; a forged label cannot name any other folder."""
    folders = []
    for pod in pods:
        [*volumes], [*containers] = pod["spec"].get("volumes") or (), pod["spec"]["containers"]
        paths = {volume["name"]: volume["hostPath"]["path"] for volume in volumes if "hostPath" in volume}
        ours: Mapping[str, Any] = next((container for container in containers if container["name"] == CONTAINER), {})
        names = [mount.get("subPath", "") for mount in ours.get("volumeMounts") or () if mount["name"] == "data"]
        node = pod["spec"].get("nodeName")
        if node and "data" in paths and names == [pod["metadata"]["name"]] == [folder_name(run_id, _site_of(pod))]:
            pull = ours.get("imagePullPolicy") != "Never"
            folders.append(NodeFolder(node, paths["data"], names[0], ours["image"], pull))
    return folders


def _site_of(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["labels"].get(SITE_LABEL, ""))


class NodeFolders(Cleanup):
    """Folders of pods on the nodes of clusters."""

    label = "folders on nodes of Kubernetes clusters"

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Yield each folder in a run's notes."""
        for run, folder in NOTES.of_runs(folders):
            yield from _leftovers(run, [folder])

    def find_at(self, context: str, namespace: str) -> Iterator[RemoteRun]:
        """Yield the folders that pods in a namespace still name. Raises OSError if the cluster does not answer."""
        kubectl = Kubectl(context, namespace)
        try:
            pods = kubectl.get("pods", f"--selector={RUN_LABEL}")["items"]
            if not any("hostPath" in volume for pod in pods for volume in pod["spec"].get("volumes") or ()):
                return
            for run in runs_at(pods, kubectl.clock()):
                run_pods = [pod for pod in pods if pod["metadata"]["labels"][RUN_LABEL] == run.id]
                yield RemoteRun(run.id, tuple(_leftovers(run.id, _folders_in(run_pods, run.id))), run.alive)
        except Unavailable as error:
            raise OSError(str(error)) from error

    def remove_at(self, context: str, namespace: str, run: str) -> None:
        """Remove the folders that a run's pods still name, by pods. Raises OSError if one remains."""
        kubectl = Kubectl(context, namespace)
        try:
            pods = kubectl.get("pods", f"--selector={RUN_LABEL}={run}")["items"]
            for folder in _folders_in(pods, run):
                folder.removed(kubectl, run, _owner_of(kubectl, run))
        except Unavailable as error:
            raise OSError(str(error)) from error

    def remove(self, run: OrphanedRun) -> None:
        """Remove the folders in the run's notes, by pods. Raises OSError if one remains."""
        left, failures = [], []
        for folder in NOTES.read(run.state):
            try:
                _removed_anywhere(folder, places_of(run.state), run.id)
            except (Unavailable, EnvironmentLost) as error:
                left.append(folder)
                failures.append(str(error))
        NOTES.write(run.state, left)
        if failures:
            raise OSError("; ".join(failures))


def _leftovers(run: str, folders: Sequence[NodeFolder]) -> Iterator[Leftover]:
    for folder in folders:
        yield Leftover(run, f"folder on node {folder.node}", f"{folder.path}/{folder.name}")


def _removed_anywhere(folder: NodeFolder, places: Sequence[ClusterNamespace], run_id: str) -> None:
    """Remove a folder by a pod in the place of its run. Raises Unavailable."""
    failure = Unavailable(f"folder {folder.path}/{folder.name} of node {folder.node}: its cluster was not recorded")
    for place in places:
        kubectl = place.kubectl()
        try:
            folder.removed(kubectl, run_id, _owner_of(kubectl, run_id))
        except Unavailable as error:
            failure = error
        else:
            return
    raise failure


def _owner_of(kubectl: Kubectl, run_id: str) -> ObjectOwner:
    """Return the run's owner, made again if it is gone; it is listed because a run need not have "get"."""
    for config_map in kubectl.get("configmaps", f"--field-selector=metadata.name={object_name(run_id)}")["items"]:
        return ObjectOwner.of(config_map)
    program = build.ensure(cache_folder(), lambda _: None).read_bytes()
    return ObjectOwner.of(kubectl.create(owner(run_id, program)))
