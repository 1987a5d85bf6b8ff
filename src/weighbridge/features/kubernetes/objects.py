"""The objects that a run makes in a cluster, as JSON, and the cluster's statements about them. Pure."""

import base64
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from weighbridge.facts.host import machine_id_fact
from weighbridge.features.kubernetes.session import LEASE_S
from weighbridge.model.host import MACHINE_ID
from weighbridge.model.names import RunId
from weighbridge.model.site import DATA

RUN_LABEL, SITE_LABEL = "weighbridge.run", "weighbridge.site"
IMAGE_LABEL = "weighbridge.image"
"""The label of a ConfigMap that records which image a run needs on which node."""
RENEWED = "weighbridge.renewed"
"""The annotation with the time at which a driver last renewed the nodes of a Job."""
FOLDER = "/weighbridge"
LAUNCHER = f"{FOLDER}/launcher"
"""The path of the launcher in every pod."""
SOCKET = "/run/weighbridge.stream"
"""The socket at which the launcher of a pod waits for its stream."""
MOST_BYTES = 2**20
"""The largest content of a ConfigMap."""
LIMITS, REQUESTS = {"cpu": "250m", "memory": "128Mi"}, {"cpu": "10m", "memory": "32Mi"}
"""Resources of the pod that represents a node: a quota or a LimitRange can require some for every pod."""
NOBODY = 65532
"""The user of programs in pods that must not run as root."""
CONTAINER = "site"
"""The name of our container in a pod, to which a cluster can add others."""
_READ_AND_EXECUTE = 0o555
_NAME_LENGTH = 63
_LONGEST_S = 7 * 86400
"""A time longer than any run, after which kubelet ends a pod that did not end by itself."""
_REFUSED = {
    "ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ImageInspectError",
    "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
}  # fmt: skip
"""Reasons of a waiting container that will not start (kubelet's own words)."""


_UNBOUND = "unbound immediate PersistentVolumeClaims"
"""The reason of a pod that waits for a volume to be made."""


def object_name(run_id: str, *parts: str) -> str:
    """Return the name of an object of a run: small letters, digits and dashes, at most 63 of them."""
    words = re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
    return f"weighbridge-{run_id}-{words}"[:_NAME_LENGTH].strip("-") if words else f"weighbridge-{run_id}"


def labels(run_id: str, site: str = "") -> dict[str, str]:
    """Return the labels that identify a run's objects."""
    named = re.sub(r"[^A-Za-z0-9_.-]+", "-", site)[:_NAME_LENGTH].strip("-_.")
    return {RUN_LABEL: run_id} | ({SITE_LABEL: named} if named else {})


def owner(run_id: str, program: bytes) -> dict[str, Any]:
    """Return the object that owns all others of a run: it contains the launcher, which every pod mounts."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": object_name(run_id), "labels": labels(run_id)},
        "immutable": True,
        "binaryData": {"launcher": base64.b64encode(program).decode()},
    }


@dataclass(frozen=True, slots=True)
class ObjectOwner:
    """The owner as the cluster has it."""

    name: str
    uid: str

    @classmethod
    def of(cls, created: Mapping[str, Any]) -> "ObjectOwner":
        """Return the owner in a created object."""
        return cls(created["metadata"]["name"], created["metadata"]["uid"])

    @property
    def references(self) -> list[dict[str, Any]]:
        """Return the ``ownerReferences`` of owned objects."""
        return [{"apiVersion": "v1", "kind": "ConfigMap", "name": self.name, "uid": self.uid}]


@dataclass(frozen=True, slots=True)
class PodRequest:
    """The requirements of a pod. ``owner`` is None if the API server is only asked about it.

    ``limits``, ``requests`` and ``sysctls`` have Kubernetes' names. ``shm_size`` is the bytes of its own /dev/shm;
    None means the runtime's default.
    """

    run_id: str
    site: str
    node: str
    image: str
    owner: ObjectOwner | None
    host_network: bool = False
    privileged: bool = False
    """Whether it has all rights of root and the node's own namespaces, except mounts and IPC.

    Native sites elsewhere do the same: leftovers of programs in shared memory end with them."""
    user: int = 0
    """The user of its programs; without root, they are confined as by Pod Security's level ``restricted``."""
    limits: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    shm_size: int | None = None
    open_files: int = 0
    runtime_class: str = ""
    pull: bool = False
    title: str = ""
    """The name in messages; "" means the site's."""
    data: Mapping[str, Any] | None = None
    """The volume at DATA, as in a manifest."""
    data_folder: str = ""
    """The folder of that volume; "" means the complete volume."""
    writable_root: bool = False

    @property
    def name(self) -> str:
        """Return the pod's name."""
        return object_name(self.run_id, self.site)


ASKED = PodRequest(
    run_id="000000000000",
    site="asked",
    node="any",
    image="weighbridge/asked",
    owner=ObjectOwner("weighbridge", "00000000-0000-0000-0000-000000000000"),
)
"""A pod for questions only."""


def pod(request: PodRequest) -> dict[str, Any]:
    """Return the manifest of a pod on a named node, whose first process is the launcher.

    Its root is read-only with /tmp and /run in memory, as for every site; it ends with its launcher.
    """
    volumes: dict[str, dict[str, Any]] = {
        "tmp": {"emptyDir": {"medium": "Memory"}}, "run": {"emptyDir": {"medium": "Memory"}}
    }  # fmt: skip
    mounts = {"tmp": "/tmp", "run": "/run"}  # noqa: S108 - the pod's own
    if request.owner is not None:
        files = [{"key": "launcher", "path": "launcher"}]
        source = {"name": request.owner.name, "defaultMode": _READ_AND_EXECUTE, "items": files}
        volumes, mounts = {"launcher": {"configMap": source}, **volumes}, {"launcher": FOLDER, **mounts}
    if request.shm_size is not None:
        volumes["shm"] = {"emptyDir": {"medium": "Memory", "sizeLimit": str(request.shm_size)}}
        mounts["shm"] = "/dev/shm"  # noqa: S108 - the pod's own
    volume_mounts = [{"name": name, "mountPath": path} for name, path in mounts.items()]
    if request.data is not None:
        volumes["data"] = dict(request.data)
        part = {"subPath": request.data_folder} if request.data_folder else {}
        volume_mounts.append({"name": "data", "mountPath": DATA, **part})
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": request.image,
        "imagePullPolicy": "IfNotPresent" if request.pull else "Never",
        "command": [
            LAUNCHER,
            *(("--files", str(request.open_files)) if request.open_files else ()),
            *("--lease", str(LEASE_S)),
            *("--listen", SOCKET),
        ],
        "workingDir": "/",
        "securityContext": _security(request),
        "volumeMounts": volume_mounts,
    }
    resources = {"limits": dict(request.limits), "requests": dict(request.requests)}
    if named := {kind: amounts for kind, amounts in resources.items() if amounts}:
        container["resources"] = named
    spec: dict[str, Any] = {
        "containers": [container],
        "volumes": [{"name": name, **volume} for name, volume in volumes.items()],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [only_on(request.node)]}
            }
        },
        "restartPolicy": "Never",
        "activeDeadlineSeconds": _LONGEST_S,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
    }
    if request.host_network or request.privileged:
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    if request.privileged:
        spec["hostPID"] = True
    of_pod: dict[str, Any] = {"fsGroup": request.user} if request.user else {}
    if request.sysctls:
        of_pod["sysctls"] = [{"name": name, "value": value} for name, value in request.sysctls.items()]
    if of_pod:
        spec["securityContext"] = of_pod
    if request.runtime_class:
        spec["runtimeClassName"] = request.runtime_class
    metadata: dict[str, Any] = {"name": request.name, "labels": labels(request.run_id, request.site)}
    if request.owner is not None:
        metadata["ownerReferences"] = request.owner.references
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def user_of(pod_security: str | None) -> int:
    """Return the user of programs in pods at a level of Pod Security."""
    return NOBODY if pod_security == "restricted" else 0


def asked_objects(asked: Mapping[str, Sequence[Any]], user: int) -> dict[str, list[dict[str, Any]]]:
    """Return the objects to ask the API server about, pods as manifests, each with a different name.

    ``asked`` has `PodRequest` and manifests by environment; ``user`` is the user of the pods' programs.
    """
    numbers = itertools.count(1)
    objects: dict[str, list[dict[str, Any]]] = {}
    for environment, requests in asked.items():
        for request in requests:
            manifest = pod(replace(request, user=user)) if isinstance(request, PodRequest) else request
            name = object_name(ASKED.run_id, ASKED.site, str(next(numbers)))
            objects.setdefault(environment, []).append(
                {**manifest, "metadata": {**manifest["metadata"], "name": name}}
            )
    return objects


def _security(request: PodRequest) -> dict[str, Any]:
    context: dict[str, Any] = {
        "readOnlyRootFilesystem": not request.writable_root,
        "runAsUser": request.user,
        "runAsGroup": request.user,
    }
    if request.user:
        context |= {
            "runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }  # fmt: skip
    return context | ({"privileged": True} if request.privileged else {})


def remover(request: PodRequest, folder: str) -> dict[str, Any]:
    """Return the manifest of a pod that removes a folder of its data, and ends."""
    manifest = pod(request)
    manifest["spec"]["containers"][0]["command"] = [LAUNCHER, "remove", f"{DATA}/{folder}"]
    return manifest


def claim(run_id: str, site: str, its_owner: ObjectOwner, size: int, storage_class: str) -> dict[str, Any]:
    """Return a claim of a volume for a site; ``storage_class`` "" means the cluster's default."""
    named = {"storageClassName": storage_class} if storage_class else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": object_name(run_id, site),
            "labels": labels(run_id, site),
            "ownerReferences": its_owner.references,
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": str(size)}},
            **named,
        },
    }


@dataclass(frozen=True, slots=True)
class ClaimState:
    """``ready``: a pod can use it. ``refusal``: why it will never have a volume, or ""."""

    ready: bool
    refusal: str = ""


_NO_VOLUME = {"ProvisioningFailed", "FailedBinding"}


def claim_state(about: Mapping[str, Any], events: Mapping[str, Any]) -> ClaimState:
    """Return the state of a claim by its events, as from ``kubectl get``, in the cluster's own words."""
    if (about.get("status") or {}).get("phase") == "Bound":
        return ClaimState(True)
    for event in events.get("items") or ():
        if event.get("reason") == "WaitForFirstConsumer":
            return ClaimState(True)
        if event.get("reason") in _NO_VOLUME:
            return ClaimState(False, str(event.get("message", "")))
    return ClaimState(False)


def only_on(node: str) -> dict[str, Any]:
    """Return a selector of a node by name under the scheduler's rules, which reports taints and missing CPUs."""
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}


@dataclass(frozen=True, slots=True)
class PodState:
    """``running``: its container runs. ``refusal``: why it will not start, or has ended, or ""."""

    running: bool
    refusal: str = ""


def _own_container(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the state of our container by ``running``, ``waiting`` or ``terminated``; {} before it has one."""
    containers = (record.get("status") or {}).get("containerStatuses") or ()
    return next((each.get("state") or {} for each in containers if each.get("name") == CONTAINER), {})


def has_ended(about: Mapping[str, Any]) -> bool:
    """Return whether our container of a pod has ended, or the pod: added containers can run for days."""
    return (about.get("status") or {}).get("phase") in ("Failed", "Succeeded") or "terminated" in _own_container(
        about
    )


def has_succeeded(about: Mapping[str, Any]) -> bool:
    """Return whether our container of a pod has ended successfully."""
    code = (_own_container(about).get("terminated") or {}).get("exitCode")
    return code == 0 if code is not None else (about.get("status") or {}).get("phase") == "Succeeded"


def state_of(about: Mapping[str, Any]) -> PodState:
    """Return the state of a pod, as from ``kubectl get``, in the cluster's own words."""
    status, state = about.get("status") or {}, _own_container(about)
    if (metadata := about.get("metadata") or {}).get("deletionTimestamp"):
        return PodState(False, f"pod {metadata.get('name')} was deleted{_disrupted_by(status)}")
    if has_ended(about):
        return PodState(False, _ended(status, state.get("terminated") or {}))
    if "running" in state:
        return PodState(True)
    waiting = state.get("waiting") or {}
    if waiting.get("reason") in _REFUSED:
        return PodState(False, waiting.get("message") or waiting["reason"])
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "Unschedulable":
            reason = condition.get("message") or "Unschedulable"
            return PodState(False, "" if _UNBOUND in reason else reason)
    return PodState(False)


def resources_of(about: Mapping[str, Any]) -> Mapping[str, Mapping[str, str]]:
    """Return the ``limits`` and ``requests`` of our container of a pod, as the cluster has them."""
    containers = (about.get("spec") or {}).get("containers") or ()
    return next((each.get("resources") or {} for each in containers if each.get("name") == CONTAINER), {})


def added_containers(about: Mapping[str, Any]) -> dict[str, str]:
    """Return the images of containers that a cluster has added to our pod, by name."""
    spec = about.get("spec") or {}
    every = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return {str(each["name"]): str(each.get("image", "")) for each in every if each["name"] != CONTAINER}


def _disrupted_by(status: Mapping[str, Any]) -> str:
    """Return why a pod ended that its owner did not delete: an eviction, a taint, a pod of higher priority."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return f" ({condition.get('message') or condition.get('reason')})"
    return ""


def _ended(status: Mapping[str, Any], terminated: Mapping[str, Any]) -> str:
    message = status.get("message") or terminated.get("message") or ""
    reason = status.get("reason") or terminated.get("reason") or ""
    code = terminated.get("exitCode")
    if message:
        return f"{reason}: {message}" if reason and reason not in message else str(message)
    return f"its container ended with exit code {code} ({reason})" if code is not None else reason or "its pod ended"


def last_warning(events: Mapping[str, Any]) -> str:
    """Return the message of the last warning among events, preferably of a failure; "" without one."""
    warnings = [each for each in events.get("items") or () if each.get("type") == "Warning"]
    warnings.sort(key=_failed_and_when)
    return str(warnings[-1].get("message", "")) if warnings else ""


def _failed_and_when(event: Mapping[str, Any]) -> tuple[bool, str]:
    """Return a sort key that prefers failures: kubelet repeats minor warnings with each of them."""
    time = event.get("lastTimestamp") or event.get("eventTime") or ""
    return str(event.get("reason", "")).startswith("Failed"), str(time)


def eviction(events: Mapping[str, Any]) -> str:
    """Return why kubelet evicted a pod, by its events: the status of a pod that ended with 0 does not have it."""
    messages = [str(each.get("message", "")) for each in events.get("items") or () if each.get("reason") == "Evicted"]
    return f"Evicted: {messages[-1].strip(' .')}" if messages else ""


def selector_of_events(about: Mapping[str, Any]) -> str:
    """Return kubectl's option that selects the events of an object, excluding an earlier one of the same name."""
    return f"--field-selector=involvedObject.uid={about['metadata']['uid']}"


_NO_FOLDER = "hostPath type check failed"


def absent_path(events: Mapping[str, Any]) -> str:
    """Return why a path of its node cannot be in a pod, which only its events report; "" if unknown."""
    warning = last_warning(events)
    return warning if _NO_FOLDER in warning else ""


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A cluster's information about a node: ``address`` is its InternalIP, ``images`` are the reported names.

    ``more_images`` means that it can have others, too.
    """

    name: str
    ready: bool
    address: str
    architecture: str
    labels: Mapping[str, str]
    facts: Mapping[str, str]
    images: Sequence[str]
    cordoned: bool = False
    taints: Sequence[str] = ()
    """The keys of its taints that exclude pods without tolerations, such as ours."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    more_images: bool = False

    def holds(self, image: str) -> bool | None:
        """Return whether kubelet reported this image some ten seconds ago; None if unknown."""
        return True if image in self.images else None if self.more_images else False


def unknown_node(name: str) -> NodeInfo:
    """Return a node of which the user can only see the name."""
    return NodeInfo(name, ready=True, address="", architecture="", labels={}, facts={}, images=(), more_images=True)


_FACTS = {
    "kernel": "kernelVersion", "operating system": "osImage", "architecture": "architecture",
    "kubelet": "kubeletVersion", "container runtime": "containerRuntimeVersion",
}  # fmt: skip
_LABELS = {"instance type": "node.kubernetes.io/instance-type", "zone": "topology.kubernetes.io/zone",
           "region": "topology.kubernetes.io/region"}  # fmt: skip
_MOST_IMAGES = 50
"""The number of images that kubelet reports, the largest ones (its ``nodeStatusMaxImages`` by default)."""
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def node_info(about: Mapping[str, Any]) -> NodeInfo:
    """Return the information about a node, as from ``kubectl get``."""
    metadata, status, spec = about["metadata"], about.get("status") or {}, about.get("spec") or {}
    info, its_labels = status.get("nodeInfo") or {}, metadata.get("labels") or {}
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    addresses = [each["address"] for each in status.get("addresses") or () if each["type"] == "InternalIP"]
    machine = _MACHINES.get(str(info.get("architecture")), str(info.get("architecture")))
    facts = {fact: str(info[key]) for fact, key in _FACTS.items() if info.get(key)} | {"architecture": machine}
    facts[MACHINE_ID] = machine_id_fact(str(info.get("machineID") or ""))
    facts |= {fact: its_labels[key] for fact, key in _LABELS.items() if key in its_labels}
    allocatable = status.get("allocatable") or {}
    facts["allocatable"] = ", ".join(f"{allocatable[key]} {key}" for key in ("cpu", "memory") if key in allocatable)
    return NodeInfo(
        name=metadata["name"],
        ready=conditions.get("Ready") == "True",
        address=next((each for each in addresses if "." in each), ""),
        architecture=machine,
        labels=its_labels,
        facts={key: value for key, value in facts.items() if value},
        images=[name for image in status.get("images") or () for name in image.get("names") or ()],
        cordoned=bool(spec.get("unschedulable")),
        taints=tuple(
            str(each["key"]) for each in spec.get("taints") or () if each.get("effect") in ("NoSchedule", "NoExecute")
        ),
        annotations=metadata.get("annotations") or {},
        more_images=len(status.get("images") or ()) >= _MOST_IMAGES,
    )


Obstacle = Literal["", "not ready", "cordoned", "tainted"]


def obstacle(node: NodeInfo) -> Obstacle:
    """Return why our pods cannot run on a node; "" if they can."""
    if not node.ready:
        return "not ready"
    if node.cordoned:
        return "cordoned"
    return "tainted" if node.taints else ""


def usable(node: NodeInfo) -> bool:
    """Return whether our pods can run on a node."""
    return not obstacle(node)


_OF_THE_CLUSTER = "node.kubernetes.io/"
"""The beginnings of the keys of taints that a cluster sets and removes by the state of a node."""


def kept_from_pods(node: NodeInfo) -> bool:
    """Return whether an administrator excludes our pods from a node by a taint, so that waiting does not help."""
    return any(not key.startswith(_OF_THE_CLUSTER) for key in node.taints)


def runs_of(items: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Return (run, kind, name) of each listed object with a label of its run."""
    rows = []
    for item in items:
        metadata = item.get("metadata") or {}
        run = (metadata.get("labels") or {}).get(RUN_LABEL, "")
        if RunId.matches(run):
            rows.append((run, str(item.get("kind", "object")), str(metadata.get("name", ""))))
    return rows
