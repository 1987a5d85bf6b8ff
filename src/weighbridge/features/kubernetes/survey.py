"""A survey of what this user can measure in a cluster, by questions to its API server that make no objects."""

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes import services
from weighbridge.features.kubernetes.kubectl import Denied, Kubectl, RequestRefused
from weighbridge.features.kubernetes.objects import (
    ASKED,
    LIMITS,
    REQUESTS,
    NodeInfo,
    kept_from_pods,
    node_info,
    obstacle,
    pod,
    unknown_node,
    usable,
)
from weighbridge.features.kubernetes.remedies import ASK, Right, remedy, rule
from weighbridge.features.kubernetes.supply import usual_images
from weighbridge.model.plugin import Readiness

RIGHTS: tuple[Right, ...] = (
    ("create", "configmaps"), ("list", "configmaps"), ("delete", "configmaps"), ("create", "pods"), ("get", "pods"),
    ("list", "pods"), ("delete", "pods"), ("create", "pods/exec"),
)  # fmt: skip
"""The rights that a run needs in its namespace."""
CHOOSE_NODES: tuple[Right, ...] = (("list", "nodes"),)
"""The right that it needs if the study does not name its nodes."""
SERVICES: tuple[Right, ...] = tuple((verb, "services") for verb in ("create", "get", "list", "delete"))
"""The rights that it needs to add Services."""
OPTIONAL: Mapping[Right, str] = {
    ("list", "events"): "messages about pods that do not start are less detailed",
    ("get", "nodes"): "facts about nodes are limited to what their pods can see",
    ("get", "nodes/proxy"): "kubelet's settings, such as its CPU manager, are unknown",
}
"""Optional rights, and the loss without them."""
FOR_SOME: Mapping[str, tuple[str, Sequence[str]]] = {
    "Services": ("services", ("create", "get", "patch", "list", "delete")),
    "NetworkPolicies": ("networkpolicies.networking.k8s.io", ("create", "get", "list", "delete")),
    "volumes of a StorageClass": ("persistentvolumeclaims", ("create", "get", "list", "delete")),
    "Jobs that reserve nodes for a fleet": ("jobs.batch", ("create", "patch", "list", "delete")),
}
"""Objects of some environments and fleets: the resource, and the verbs."""
_ADDED = "Services that a run can add"
_NO_NAMESPACE = re.compile(r'namespaces "[^"]+" not found')
REACH = "start the cluster, or select another with KUBECONFIG or a context (kubectl config get-contexts)"
"""The remedy if no API server answers."""


def rights(kubectl: Kubectl, further: Sequence[Right] = (), optional: Mapping[Right, str] = OPTIONAL) -> Readiness:
    """Return whether the user has all rights for a run. Raises Unavailable if the API server does not answer.

    ``further`` are rights needed in addition; ``optional`` are rights whose absence is reported.
    """
    needed = (*RIGHTS, *further)
    absent = kubectl.lacking((*needed, *optional))
    if missing := [each for each in absent if each in needed]:
        return Readiness(False, _may_not(missing), rule(missing, kubectl.namespace))
    if lesser := [each for each in absent if each in optional]:
        return Readiness(True, _may_not(lesser), caveat="; ".join(optional[each] for each in lesser))
    return Readiness(True)


def _may_not(lacking: Sequence[Right]) -> str:
    return f"this user is not allowed to {', '.join(f'{verb} {resource}' for verb, resource in lacking)}"


def admission(kubectl: Kubectl, **pod_fields: Any) -> Readiness:
    """Return whether the API server accepts a pod like ours, including Pod Security, quotas and webhooks.

    ``pod_fields`` are properties of the pod, as in a `PodRequest`.
    """
    request = replace(ASKED, **{"limits": LIMITS, "requests": REQUESTS, **pod_fields})
    return _verdict(kubectl, kubectl.dry_run([pod(request)])[0])


def admissions(kubectl: Kubectl, asked: Mapping[str, Sequence[Mapping[str, Any]]]) -> Mapping[str, Readiness]:
    """Return for each name whether the API server accepts all of its objects, with one question for all.

    Raises Unavailable if the API server does not answer.
    """
    every = [manifest for manifests in asked.values() for manifest in manifests]
    refusals = iter(kubectl.dry_run(every) if every else ())
    verdicts = {}
    for name, manifests in asked.items():
        its_refusals = itertools.islice(refusals, len(manifests))
        verdicts[name] = _verdict(kubectl, next(filter(None, [*its_refusals]), ""))
    return verdicts


def _verdict(kubectl: Kubectl, refusal: str) -> Readiness:
    return Readiness(False, refusal, remedy(refusal, kubectl.namespace) or ASK) if refusal else Readiness(True)


def for_some(kubectl: Kubectl) -> Mapping[str, Readiness]:
    """Return the objects of some environments that this user cannot make, with remedies."""
    missing = kubectl.lacking([(verb, resource) for resource, verbs in FOR_SOME.values() for verb in verbs])
    rows = {}
    for name, (resource, _) in FOR_SOME.items():
        if absent := [each for each in missing if each[1] == resource]:
            rows[name] = Readiness(False, _may_not(absent), rule(absent, kubectl.namespace))
    return rows


class NodesLacking(Unavailable):
    """Too few nodes can run pods."""


@dataclass(frozen=True, slots=True)
class ClusterNodes:
    """The nodes of a cluster, or those with some labels."""

    every: Sequence[NodeInfo]
    selector: str = ""

    @classmethod
    def of(cls, kubectl: Kubectl, selector: str = "") -> "ClusterNodes":
        """List the nodes. Raises Unavailable."""
        words = ("nodes", *((f"--selector={selector}",) if selector else ()))
        return cls([node_info(each) for each in kubectl.get(*words)["items"]], selector)

    @property
    def usable(self) -> list[NodeInfo]:
        """Return the nodes that can run pods."""
        return [each for each in self.every if usable(each)]

    @property
    def others(self) -> str:
        """Return the other nodes by obstacle, as text; "" if there are none."""
        by_obstacle: dict[str, list[str]] = {}
        for node in self.every:
            if reason := obstacle(node):
                by_obstacle.setdefault(reason, []).append(node.name)
        return "; ".join(f"{reason}: {', '.join(sorted(names))}" for reason, names in sorted(by_obstacle.items()))

    def require(self) -> list[NodeInfo]:
        """Return the `usable` nodes. Raises NodesLacking if there are none."""
        if nodes := self.usable:
            return nodes
        labels, others = f" with {self.selector}" * bool(self.selector), self.others and f" ({self.others})"
        raise NodesLacking(f"none of the cluster's {len(self.every)} nodes{labels} can run pods{others}")

    def require_some_time(self, number: int) -> None:
        """Raise NodesLacking if fewer than ``number`` nodes can ever run pods: others can become ready later."""
        nodes = [each for each in self.every if not kept_from_pods(each)]
        if len(nodes) < number:
            others = self.others and f" ({self.others})"
            raise NodesLacking(
                f"{len(nodes)} of the cluster's {len(self.every)} nodes can run pods{others}, fewer than the "
                f"requested {number}"
            )


def usable_nodes(kubectl: Kubectl) -> list[str]:
    """Return the nodes that can run pods, at least one. Raises Unavailable."""
    return [each.name for each in ClusterNodes.of(kubectl).require()]


def nodes(kubectl: Kubectl) -> Readiness:
    """Return which nodes can run pods. Raises Unavailable if they cannot be listed."""
    if kubectl.lacking(CHOOSE_NODES):
        return Readiness(
            True, "this user is not allowed to list nodes", caveat="a study must name its nodes (node: NAME)"
        )
    known = ClusterNodes.of(kubectl)
    try:
        names = [each.name for each in known.require()]
    except NodesLacking as error:
        return Readiness(False, str(error), "kubectl get nodes")
    rest = f"; {known.others}" if known.others else ""
    if len(names) == 1:
        return Readiness(True, f"{names[0]}; measurements between two nodes are impossible{rest}", caveat="one node")
    return Readiness(True, f"{', '.join(names)}{rest}")


def node(kubectl: Kubectl, name: str) -> Readiness:
    """Return whether a node of this name exists, if the user can see it. Raises Unavailable without an answer."""
    try:
        kubectl.get(f"node/{name}")
    except Denied:
        return Readiness(True)
    except RequestRefused:
        names = ""
        with contextlib.suppress(Unavailable):
            names = ", ".join(each["metadata"]["name"] for each in kubectl.get("nodes")["items"])
        has = f": it has {names}" if names else ""
        return Readiness(False, f"the cluster has no node {name}{has}", "choose another node: kubectl get nodes")
    return Readiness(True)


def holding(
    kubectl: Kubectl, name: str | None, selector: str | None, images: Sequence[str]
) -> Mapping[str, bool | None]:
    """Return whether the named node, or each candidate, has all of these images; None if unknown.

    Raises Unavailable.
    """
    if name is not None:
        try:
            candidates = [node_info(kubectl.get(f"node/{name}"))]
        except Denied:
            candidates = [unknown_node(name)]
    else:
        words = [f"--selector={selector}"] if selector else []
        candidates = [each for each in map(node_info, kubectl.get("nodes", *words)["items"]) if usable(each)]
    verdicts = {each.name: {each.holds(image) for image in images} for each in candidates}
    return {node: False if False in states else None if None in states else True for node, states in verdicts.items()}


def images(context: str) -> Readiness:
    """Return how nodes get images, as far as the name of a context identifies the tool of its cluster."""
    if tool := usual_images(context):
        return Readiness(True, f"loaded by {tool} (images: {{load: {tool}}} on each host; weigh detects it)")
    return Readiness(
        True,
        "set 'images' of a host, or weigh --images: containerd, REGISTRY/REPOSITORY, pull, or a command",
        caveat="say how they reach the nodes",
    )


def version(kubectl: Kubectl) -> Readiness:
    """Return the versions of both ends. Raises Unavailable if the API server does not answer."""
    versions = json.loads(kubectl.must("version", "--output=json"))
    client = (versions.get("clientVersion") or {}).get("gitVersion", "unknown")
    server = (versions.get("serverVersion") or {}).get("gitVersion", "unknown")
    return Readiness(True, f"{server}, kubectl {client}")


def survey(kubectl: Kubectl, context: str = "") -> Mapping[str, Readiness]:
    """Return the usable features of a cluster by name; one row if it does not answer.

    ``context`` is kubectl's, if it is not the current one.
    """
    try:
        rows = {"API server": version(kubectl)}
    except Unavailable as error:
        return {"API server": Readiness(False, str(error), REACH)}
    with contextlib.suppress(Unavailable):
        if _NO_NAMESPACE.search(refusal := admission(kubectl).detail):
            return rows | {
                "namespace": Readiness(False, refusal, "kubectl create namespace NAME, or choose another namespace")
            }
    steps: dict[str, Callable[[], Readiness]] = {
        "rights": lambda: rights(kubectl),
        "nodes": lambda: nodes(kubectl),
        "pods": lambda: admission(kubectl, host_network=False),
        _ADDED: lambda: services.readiness(kubectl),
        "pods with the node's network": lambda: admission(kubectl, host_network=True),
        "privileged pods": lambda: admission(kubectl, privileged=True),
        "images": lambda: images(context or kubectl.current_context()),
    }
    for name, step in steps.items():
        try:
            rows[name] = step()
        except Unavailable as error:
            rows[name] = Readiness(False, str(error), ASK)
    with contextlib.suppress(Unavailable):
        missing = for_some(kubectl)
        if "Services" in missing:
            rows.pop(_ADDED)
        rows |= missing
    return rows
