"""What a cluster lets this user measure, and what refuses the rest: asked of its API server, nothing is made."""

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weighbridge.errors import Unavailable
from weighbridge.hosts.kubernetes import services
from weighbridge.hosts.kubernetes.kubectl import Denied, Kubectl, Refused
from weighbridge.hosts.kubernetes.objects import ASKED, LIMITS, REQUESTS, node_info, pod, usable
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
    ("list", "events"): "why a pod does not start is told less well",
    ("get", "nodes"): "facts of nodes are what their pods see",
    ("get", "nodes/proxy"): "kubelet's settings, such as its CPU manager, are not known",
}
"""What a run does where it may; what is lost where it may not."""
FOR_SOME: Mapping[str, tuple[str, Sequence[str]]] = {
    "Services": ("services", ("create", "get", "patch", "list", "delete")),
    "NetworkPolicies": ("networkpolicies.networking.k8s.io", ("create", "list", "delete")),
    "volumes of a StorageClass": ("persistentvolumeclaims", ("create", "get", "list", "delete")),
}
"""What environments may ask for: the resource, and what a run does with it."""
_ADDED = "Services that a run may add"
_NO_NAMESPACE = re.compile(r'namespaces "[^"]+" not found')
REACH = "start the cluster, or name another one by KUBECONFIG or a context (kubectl config get-contexts)"
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
    return f"this user may not {', '.join(f'{verb} {resource}' for verb, resource in lacking)}"


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


class _NoneReady(Unavailable):
    """No node can have pods."""


def usable_nodes(kubectl: Kubectl) -> list[str]:
    """Return the nodes that can have pods, at least one. Raises Unavailable."""
    return _usable_nodes(kubectl)[0]


def _usable_nodes(kubectl: Kubectl) -> tuple[list[str], str]:
    """The nodes that can have pods, and in words those that only a taint keeps from it. Raises Unavailable."""
    every = [node_info(each) for each in kubectl.get("nodes")["items"]]
    tainted = [each.name for each in every if each.tainted and each.ready and not each.cordoned]
    words = f"tainted: {', '.join(tainted)}" if tainted else ""
    if not (names := [each.name for each in every if usable(each)]):
        raise _NoneReady(f"no node can have pods, of {len(every)}{words and f' ({words})'}")
    return names, words


def nodes(kubectl: Kubectl) -> Readiness:
    """Which nodes can have pods. Raises Unavailable where they cannot be listed."""
    if kubectl.lacking(CHOOSE_NODES):
        return Readiness(True, "this user may not list nodes", caveat="only nodes that a study names (node: NAME)")
    try:
        names, tainted = _usable_nodes(kubectl)
    except _NoneReady as error:
        return Readiness(False, str(error), "kubectl get nodes")
    rest = f"; {tainted}" if tainted else ""
    if len(names) == 1:
        return Readiness(True, f"{names[0]}; between two nodes nothing can be measured{rest}", caveat="one node")
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
        return Readiness(False, f"the cluster has no node {name}{has}", "name another one: kubectl get nodes")
    return Readiness(True)


def images(context: str) -> Readiness:
    """How nodes get images, as far as the name of a context tells what made its cluster."""
    if tool := usual_images(context):
        return Readiness(True, f"loaded by {tool} (images: {{load: {tool}}} of each host; weigh finds it by itself)")
    return Readiness(
        True,
        "a host's 'images', or --images of weigh: containerd, REGISTRY/REPOSITORY, pull, or a command",
        caveat="say how they get to the nodes",
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
            return rows | {"namespace": Readiness(False, why, "kubectl create namespace NAME, or name another one")}
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
