"""What a cluster lets this user measure, and what refuses the rest: asked of its API server, nothing is made."""

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weighbridge.errors import Unavailable
from weighbridge.hosts.kubernetes import services
from weighbridge.hosts.kubernetes.kubectl import Denied, Kubectl, Refused
from weighbridge.hosts.kubernetes.objects import (
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
from weighbridge.hosts.kubernetes.remedies import ASK, Right, remedy, rule
from weighbridge.hosts.kubernetes.supply import usual_images
from weighbridge.model.plugin import Readiness

RIGHTS: tuple[Right, ...] = (
    ("create", "configmaps"), ("list", "configmaps"), ("delete", "configmaps"), ("create", "pods"), ("get", "pods"),
    ("list", "pods"), ("delete", "pods"), ("create", "pods/exec"),
)  # fmt: skip
"""What a run does in its namespace."""
CHOOSE_NODES: tuple[Right, ...] = (("list", "nodes"),)
"""What it does where the study does not name its nodes."""
SERVICES: tuple[Right, ...] = tuple((verb, "services") for verb in ("create", "get", "list", "delete"))
"""What it does where it adds Services."""
OPTIONAL: Mapping[Right, str] = {
    ("list", "events"): "messages about pods that do not start are less detailed",
    ("get", "nodes"): "facts about nodes are limited to what their pods can see",
    ("get", "nodes/proxy"): "kubelet's settings, such as its CPU manager, are unknown",
}
"""What a run does where it may; what is lost where it may not."""
FOR_SOME: Mapping[str, tuple[str, Sequence[str]]] = {
    "Services": ("services", ("create", "get", "patch", "list", "delete")),
    "NetworkPolicies": ("networkpolicies.networking.k8s.io", ("create", "get", "list", "delete")),
    "volumes of a StorageClass": ("persistentvolumeclaims", ("create", "get", "list", "delete")),
    "Jobs that reserve nodes for a fleet": ("jobs.batch", ("create", "patch", "list", "delete")),
}
"""What environments and fleets may ask for: the resource, and what is done with it."""
_ADDED = "Services that a run can add"
_NO_NAMESPACE = re.compile(r'namespaces "[^"]+" not found')
REACH = "start the cluster, or select another with KUBECONFIG or a context (kubectl config get-contexts)"
"""What to do where no API server answers."""


def rights(kubectl: Kubectl, further: Sequence[Right] = (), optional: Mapping[Right, str] = OPTIONAL) -> Readiness:
    """Whether the user may do all that a run does. Raises Unavailable where nobody answers.

    ``further``: rights that are needed beside those of every run; ``optional``: what is told beside that.
    """
    needed = (*RIGHTS, *further)
    absent = kubectl.lacking((*needed, *optional))
    if lacking := [each for each in absent if each in needed]:
        return Readiness(False, _may_not(lacking), rule(lacking, kubectl.namespace))
    if lesser := [each for each in absent if each in optional]:
        return Readiness(True, _may_not(lesser), caveat="; ".join(optional[each] for each in lesser))
    return Readiness(True)


def _may_not(lacking: Sequence[Right]) -> str:
    return f"this user is not allowed to {', '.join(f'{verb} {resource}' for verb, resource in lacking)}"


def admission(kubectl: Kubectl, **pod_fields: Any) -> Readiness:
    """Whether the API server takes a pod as ours are: Pod Security, quotas and webhooks have their say.

    ``pod_fields``: what it is to be beside small, as a `PodRequest` has it.
    """
    request = replace(ASKED, **{"limits": LIMITS, "requests": REQUESTS, **pod_fields})
    return _verdict(kubectl, kubectl.dry_run([pod(request)])[0])


def admissions(kubectl: Kubectl, asked: Mapping[str, Sequence[Mapping[str, Any]]]) -> Mapping[str, Readiness]:
    """Whether the API server takes all objects that are asked for by one name; all are asked about at once.

    Raises Unavailable where nobody answers.
    """
    every = [manifest for manifests in asked.values() for manifest in manifests]
    refusals = iter(kubectl.dry_run(every) if every else ())
    verdicts = {}
    for name, manifests in asked.items():
        own = itertools.islice(refusals, len(manifests))
        verdicts[name] = _verdict(kubectl, next(filter(None, [*own]), ""))
    return verdicts


def _verdict(kubectl: Kubectl, why: str) -> Readiness:
    return Readiness(False, why, remedy(why, kubectl.namespace) or ASK) if why else Readiness(True)


def for_some(kubectl: Kubectl) -> Mapping[str, Readiness]:
    """What this user may not make that some environments ask for, each with what would allow it."""
    lacking = kubectl.lacking([(verb, resource) for resource, verbs in FOR_SOME.values() for verb in verbs])
    rows = {}
    for what, (resource, _) in FOR_SOME.items():
        if absent := [each for each in lacking if each[1] == resource]:
            rows[what] = Readiness(False, _may_not(absent), rule(absent, kubectl.namespace))
    return rows


class NodesLacking(Unavailable):
    """Too few nodes can have pods."""


@dataclass(frozen=True, slots=True)
class ClusterNodes:
    """The nodes of a cluster, or those with some labels."""

    every: Sequence[NodeInfo]
    selector: str = ""

    @classmethod
    def of(cls, kubectl: Kubectl, selector: str = "") -> "ClusterNodes":
        """List them. Raises Unavailable."""
        words = ("nodes", *((f"--selector={selector}",) if selector else ()))
        return cls([node_info(each) for each in kubectl.get(*words)["items"]], selector)

    @property
    def usable(self) -> list[NodeInfo]:
        """Those that can have pods."""
        return [each for each in self.every if usable(each)]

    @property
    def others(self) -> str:
        """Name those that cannot, by what keeps pods away; "" where there are none."""
        by_obstacle: dict[str, list[str]] = {}
        for each in self.every:
            if why := obstacle(each):
                by_obstacle.setdefault(why, []).append(each.name)
        return "; ".join(f"{why}: {', '.join(sorted(names))}" for why, names in sorted(by_obstacle.items()))

    def require(self) -> list[NodeInfo]:
        """Return the `usable` ones. Raises NodesLacking where there are none."""
        if nodes := self.usable:
            return nodes
        labels, others = f" with {self.selector}" * bool(self.selector), self.others and f" ({self.others})"
        raise NodesLacking(f"none of the cluster's {len(self.every)} nodes{labels} can run pods{others}")

    def require_some_time(self, number: int) -> None:
        """Raise NodesLacking where fewer than so many can ever have pods: others may be ready in a while."""
        nodes = [each for each in self.every if not kept_from_pods(each)]
        if len(nodes) < number:
            others = self.others and f" ({self.others})"
            raise NodesLacking(
                f"{len(nodes)} of the cluster's {len(self.every)} nodes can run pods{others}, fewer than the "
                f"requested {number}"
            )


def usable_nodes(kubectl: Kubectl) -> list[str]:
    """Return the nodes that can have pods, at least one. Raises Unavailable."""
    return [each.name for each in ClusterNodes.of(kubectl).require()]


def nodes(kubectl: Kubectl) -> Readiness:
    """Which nodes can have pods. Raises Unavailable where they cannot be listed."""
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
    """Whether there is a node of this name, where the user may read that. Raises Unavailable where nobody answers."""
    try:
        kubectl.get(f"node/{name}")
    except Denied:
        return Readiness(True)
    except Refused:
        names = ""
        with contextlib.suppress(Unavailable):
            names = ", ".join(each["metadata"]["name"] for each in kubectl.get("nodes")["items"])
        has = f": it has {names}" if names else ""
        return Readiness(False, f"the cluster has no node {name}{has}", "choose another node: kubectl get nodes")
    return Readiness(True)


def holding(
    kubectl: Kubectl, name: str | None, selector: str | None, images: Sequence[str]
) -> Mapping[str, bool | None]:
    """Whether the node of this name, or each that may be chosen, holds all of these images; None: not known.

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
    return {node: False if False in those else None if None in those else True for node, those in verdicts.items()}


def images(context: str) -> Readiness:
    """How nodes get images, as far as the name of a context tells what made its cluster."""
    if tool := usual_images(context):
        return Readiness(True, f"loaded by {tool} (images: {{load: {tool}}} on each host; weigh detects it)")
    return Readiness(
        True,
        "set 'images' of a host, or weigh --images: containerd, REGISTRY/REPOSITORY, pull, or a command",
        caveat="say how they reach the nodes",
    )


def version(kubectl: Kubectl) -> Readiness:
    """The versions of both ends. Raises Unavailable where the API server does not answer."""
    about = json.loads(kubectl.must("version", "--output=json"))
    client = (about.get("clientVersion") or {}).get("gitVersion", "unknown")
    server = (about.get("serverVersion") or {}).get("gitVersion", "unknown")
    return Readiness(True, f"{server}, kubectl {client}")


def survey(kubectl: Kubectl, context: str = "") -> Mapping[str, Readiness]:
    """What of a cluster can be used, by what it is called. One that does not answer has one row.

    ``context``: kubectl's, where it is not its own.
    """
    try:
        rows = {"API server": version(kubectl)}
    except Unavailable as error:
        return {"API server": Readiness(False, str(error), REACH)}
    with contextlib.suppress(Unavailable):
        if _NO_NAMESPACE.search(why := admission(kubectl).detail):
            return rows | {
                "namespace": Readiness(False, why, "kubectl create namespace NAME, or choose another namespace")
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
    for what, step in steps.items():
        try:
            rows[what] = step()
        except Unavailable as error:
            rows[what] = Readiness(False, str(error), ASK)
    with contextlib.suppress(Unavailable):
        lacking = for_some(kubectl)
        if "Services" in lacking:
            rows.pop(_ADDED)
        rows |= lacking
    return rows
