"""The objects that a run makes in a cluster, as JSON has them, and what the cluster says of them. Pure."""

import base64
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from weighbridge.facts.host import machine_id_fact
from weighbridge.hosts.kubernetes.session import LEASE_S
from weighbridge.model.host import MACHINE_ID
from weighbridge.model.names import RunId
from weighbridge.model.site import DATA

RUN_LABEL, SITE_LABEL = "weighbridge.run", "weighbridge.site"
IMAGE_LABEL = "weighbridge.image"
"""The label of a ConfigMap that says which image a run needs on which node."""
RENEWED = "weighbridge.renewed"
"""The annotation that says when a driver last wanted the nodes which a Job holds."""
FOLDER = "/weighbridge"
LAUNCHER = f"{FOLDER}/launcher"
"""Where every pod of ours has the launcher."""
SOCKET = "/run/weighbridge.stream"
"""Where the launcher of a pod waits for its stream."""
MOST_BYTES = 2**20
"""What a ConfigMap holds."""
LIMITS, REQUESTS = {"cpu": "250m", "memory": "128Mi"}, {"cpu": "10m", "memory": "32Mi"}
"""Of the pod by which a node is seen: a quota or a LimitRange may want some of every pod."""
NOBODY = 65532
"""As whom programs of a pod run that may not be root."""
CONTAINER = "site"
"""What our container of a pod is called: a cluster may add some of its own."""
_READ_AND_EXECUTE = 0o555
_NAME_LENGTH = 63
_LONGEST_S = 7 * 86400
"""Longer than any run: then kubelet ends a pod, should that not have ended by itself."""
_REFUSED = {
    "ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ImageInspectError",
    "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
}  # fmt: skip
"""Why a container waits that will not start (kubelet's own words)."""


_UNBOUND = "unbound immediate PersistentVolumeClaims"
"""Why a pod waits for a volume that is being made."""


def object_name(run_id: str, *parts: str) -> str:
    """Return the name of an object of a run: small letters, digits and dashes, at most 63 of them."""
    words = re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
    return f"weighbridge-{run_id}-{words}"[:_NAME_LENGTH].strip("-") if words else f"weighbridge-{run_id}"


def labels(run_id: str, site: str = "") -> dict[str, str]:
    """Return the labels by which what a run made is found."""
    named = re.sub(r"[^A-Za-z0-9_.-]+", "-", site)[:_NAME_LENGTH].strip("-_.")
    return {RUN_LABEL: run_id} | ({SITE_LABEL: named} if named else {})


def owner(run_id: str, program: bytes) -> dict[str, Any]:
    """Return the one object that owns all others of a run: it holds the launcher, which every pod mounts."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": object_name(run_id), "labels": labels(run_id)},
        "immutable": True,
        "binaryData": {"launcher": base64.b64encode(program).decode()},
    }


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner as the cluster has it."""

    name: str
    uid: str

    @classmethod
    def of(cls, created: Mapping[str, Any]) -> "Owner":
        """Return what is needed of a created object."""
        return cls(created["metadata"]["name"], created["metadata"]["uid"])

    @property
    def references(self) -> list[dict[str, Any]]:
        """``ownerReferences`` of what goes with it."""
        return [{"apiVersion": "v1", "kind": "ConfigMap", "name": self.name, "uid": self.uid}]


@dataclass(frozen=True, slots=True)
class PodRequest:
    """What a pod of ours is to be. ``owner``: None where it is only asked whether it may be.

    ``limits``, ``requests`` and ``sysctls`` by Kubernetes' names. ``shm_size``: bytes of its own /dev/shm; None: the
    runtime's.
    """

    run_id: str
    site: str
    node: str
    image: str
    owner: Owner | None
    host_network: bool = False
    privileged: bool = False
    """With all rights of root on its node, and the node's own namespaces but those of its mounts and its IPC.

    As native sites have them elsewhere: what programs leave in shared memory goes with them.
    """
    user: int = 0
    """As whom its programs run; one who is not root has what Pod Security's level ``restricted`` leaves."""
    limits: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    shm_size: int | None = None
    open_files: int = 0
    runtime_class: str = ""
    pull: bool = False
    title: str = ""
    """What messages call it; "": by its site."""
    data: Mapping[str, Any] | None = None
    """What is at DATA, as a manifest says a volume."""
    data_folder: str = ""
    """The folder of that volume; "": all of it."""
    writable_root: bool = False

    @property
    def name(self) -> str:
        """The pod's name."""
        return object_name(self.run_id, self.site)


ASKED = PodRequest(
    run_id="000000000000",
    site="asked",
    node="any",
    image="weighbridge/asked",
    owner=Owner("weighbridge", "00000000-0000-0000-0000-000000000000"),
)
"""A pod that is only asked about."""


def pod(request: PodRequest) -> dict[str, Any]:
    """Return the manifest of a pod whose first process is the launcher, on a node of its name.

    Its root is read-only with /tmp and /run in memory, as every site's; it ends with its launcher.
    """
    volumes: dict[str, dict[str, Any]] = {
        "tmp": {"emptyDir": {"medium": "Memory"}}, "run": {"emptyDir": {"medium": "Memory"}}
    }  # fmt: skip
    mounts = {"tmp": "/tmp", "run": "/run"}  # noqa: S108 - the pod's own
    if request.owner is not None:
        files = [{"key": "launcher", "path": "launcher"}]
        about = {"name": request.owner.name, "defaultMode": _READ_AND_EXECUTE, "items": files}
        volumes, mounts = {"launcher": {"configMap": about}, **volumes}, {"launcher": FOLDER, **mounts}
    if request.shm_size is not None:
        volumes["shm"] = {"emptyDir": {"medium": "Memory", "sizeLimit": str(request.shm_size)}}
        mounts["shm"] = "/dev/shm"  # noqa: S108 - the pod's own
    at = [{"name": name, "mountPath": path} for name, path in mounts.items()]
    if request.data is not None:
        volumes["data"] = dict(request.data)
        part = {"subPath": request.data_folder} if request.data_folder else {}
        at.append({"name": "data", "mountPath": DATA, **part})
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
        "volumeMounts": at,
    }
    resources = {"limits": dict(request.limits), "requests": dict(request.requests)}
    if named := {what: amounts for what, amounts in resources.items() if amounts}:
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
    """Return as whom programs of pods run that keep to a level of Pod Security."""
    return NOBODY if pod_security == "restricted" else 0


def asked_objects(asked: Mapping[str, Sequence[Any]], user: int) -> dict[str, list[dict[str, Any]]]:
    """Return the objects to ask the API server about, pods as manifests, each with a name of its own.

    ``asked``: by environment, `PodRequest` and manifests. ``user``: as whom the pods' programs run.
    """
    numbers = itertools.count(1)
    objects: dict[str, list[dict[str, Any]]] = {}
    for environment, requests in asked.items():
        for each in requests:
            manifest = pod(replace(each, user=user)) if isinstance(each, PodRequest) else each
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


def claim(run_id: str, site: str, its_owner: Owner, size: int, storage_class: str) -> dict[str, Any]:
    """Return a claim of a volume for a site; ``storage_class`` "": the cluster's default."""
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
    """``ready``: a pod can be made that has it. ``refusal``: why it will not have a volume; "" while it may."""

    ready: bool
    refusal: str = ""


_NO_VOLUME = {"ProvisioningFailed", "FailedBinding"}


def claim_state(about: Mapping[str, Any], events: Mapping[str, Any]) -> ClaimState:
    """Return the state of a claim and of its events, as ``kubectl get`` has them, in the cluster's own words."""
    if (about.get("status") or {}).get("phase") == "Bound":
        return ClaimState(True)
    for each in events.get("items") or ():
        if each.get("reason") == "WaitForFirstConsumer":
            return ClaimState(True)
        if each.get("reason") in _NO_VOLUME:
            return ClaimState(False, str(each.get("message", "")))
    return ClaimState(False)


def only_on(node: str) -> dict[str, Any]:
    """Return what selects a node by its name, under the scheduler's rules: a taint or a lack of CPU is told."""
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}


@dataclass(frozen=True, slots=True)
class PodState:
    """``running``: its container runs. ``refusal``: why it will not start, or has ended; "" while it may still."""

    running: bool
    refusal: str = ""


def _own_container(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """The state of our container, by one of ``running``, ``waiting`` and ``terminated``; {} while it has none."""
    containers = (about.get("status") or {}).get("containerStatuses") or ()
    return next((each.get("state") or {} for each in containers if each.get("name") == CONTAINER), {})


def has_ended(about: Mapping[str, Any]) -> bool:
    """Whether our container of a pod has ended, or the pod: one that the cluster has added may go on for days."""
    return (about.get("status") or {}).get("phase") in ("Failed", "Succeeded") or "terminated" in _own_container(
        about
    )


def has_succeeded(about: Mapping[str, Any]) -> bool:
    """Whether our container of a pod has ended well."""
    code = (_own_container(about).get("terminated") or {}).get("exitCode")
    return code == 0 if code is not None else (about.get("status") or {}).get("phase") == "Succeeded"


def state_of(about: Mapping[str, Any]) -> PodState:
    """Return the state of a pod, as ``kubectl get`` has it, in the cluster's own words."""
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
            why = condition.get("message") or "Unschedulable"
            return PodState(False, "" if _UNBOUND in why else why)
    return PodState(False)


def resources_of(about: Mapping[str, Any]) -> Mapping[str, Mapping[str, str]]:
    """Return the ``limits`` and ``requests`` of our container of a pod, as the cluster has them."""
    containers = (about.get("spec") or {}).get("containers") or ()
    return next((each.get("resources") or {} for each in containers if each.get("name") == CONTAINER), {})


def added_containers(about: Mapping[str, Any]) -> dict[str, str]:
    """Return the images of the containers that a cluster has added to a pod of ours, by their names."""
    spec = about.get("spec") or {}
    every = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return {str(each["name"]): str(each.get("image", "")) for each in every if each["name"] != CONTAINER}


def _disrupted_by(status: Mapping[str, Any]) -> str:
    """Who ended a pod that its owner did not delete: an eviction, a taint, a pod of higher priority."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return f" ({condition.get('message') or condition.get('reason')})"
    return ""


def _ended(status: Mapping[str, Any], terminated: Mapping[str, Any]) -> str:
    why = status.get("message") or terminated.get("message") or ""
    reason = status.get("reason") or terminated.get("reason") or ""
    code = terminated.get("exitCode")
    if why:
        return f"{reason}: {why}" if reason and reason not in why else str(why)
    return f"its container ended with exit code {code} ({reason})" if code is not None else reason or "its pod ended"


def last_warning(events: Mapping[str, Any]) -> str:
    """Return the message of the last warning among events, of a failure where one is; "" where there is none."""
    warnings = [each for each in events.get("items") or () if each.get("type") == "Warning"]
    warnings.sort(key=_failed_and_when)
    return str(warnings[-1].get("message", "")) if warnings else ""


def _failed_and_when(event: Mapping[str, Any]) -> tuple[bool, str]:
    """Kubelet repeats other warnings (MissingClusterDNS) whenever it tries what fails (FailedCreatePodSandBox)."""
    when = event.get("lastTimestamp") or event.get("eventTime") or ""
    return str(event.get("reason", "")).startswith("Failed"), str(when)


def eviction(events: Mapping[str, Any]) -> str:
    """Return why kubelet evicted a pod, by the events of that: its status has lost it where the pod ended with 0."""
    messages = [str(each.get("message", "")) for each in events.get("items") or () if each.get("reason") == "Evicted"]
    return f"Evicted: {messages[-1].strip(' .')}" if messages else ""


def selector_of_events(about: Mapping[str, Any]) -> str:
    """Return kubectl's option that selects the events of an object: not of an earlier one of its name."""
    return f"--field-selector=involvedObject.uid={about['metadata']['uid']}"


_NO_FOLDER = "hostPath type check failed"


def absent_path(events: Mapping[str, Any]) -> str:
    """Return why a path of its node cannot be in a pod, which its events alone tell; "" where none does."""
    why = last_warning(events)
    return why if _NO_FOLDER in why else ""


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What a cluster knows of a node. ``address``: its InternalIP; ``images``: names of those that it tells it holds.

    ``more_images``: it may hold others, too.
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
    """The keys of its taints that keep pods away which tolerate none, as ours."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    more_images: bool = False

    def holds(self, image: str) -> bool | None:
        """Whether it holds an image of this name, by what kubelet told some ten seconds ago; None: not known."""
        return True if image in self.images else None if self.more_images else False


def unknown_node(name: str) -> NodeInfo:
    """Return a node of which the user may know nothing but its name."""
    return NodeInfo(name, ready=True, address="", architecture="", labels={}, facts={}, images=(), more_images=True)


_FACTS = {
    "kernel": "kernelVersion", "operating system": "osImage", "architecture": "architecture",
    "kubelet": "kubeletVersion", "container runtime": "containerRuntimeVersion",
}  # fmt: skip
_LABELS = {"instance type": "node.kubernetes.io/instance-type", "zone": "topology.kubernetes.io/zone",
           "region": "topology.kubernetes.io/region"}  # fmt: skip
_MOST_IMAGES = 50
"""So many kubelet tells, the largest (its ``nodeStatusMaxImages``, unless that was changed)."""
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def node_info(about: Mapping[str, Any]) -> NodeInfo:
    """Return what is needed of a node, as ``kubectl get`` has it."""
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
    """Return what keeps pods of ours from a node; "" where nothing does."""
    if not node.ready:
        return "not ready"
    if node.cordoned:
        return "cordoned"
    return "tainted" if node.taints else ""


def usable(node: NodeInfo) -> bool:
    """Whether pods of ours can be on a node."""
    return not obstacle(node)


_OF_THE_CLUSTER = "node.kubernetes.io/"
"""How the keys of taints begin that a cluster sets, and takes away, by the state of a node."""


def kept_from_pods(node: NodeInfo) -> bool:
    """Whether its administrator keeps pods of ours from a node by a taint, so that waiting for it is of no use."""
    return any(not key.startswith(_OF_THE_CLUSTER) for key in node.taints)


def runs_of(items: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Return (run, kind, name) of each listed object that says by its label which run made it."""
    found = []
    for each in items:
        metadata = each.get("metadata") or {}
        run = (metadata.get("labels") or {}).get(RUN_LABEL, "")
        if RunId.matches(run):
            found.append((run, str(each.get("kind", "object")), str(metadata.get("name", ""))))
    return found
