"""What a cluster lets this user measure, and what refuses the rest: asked of its API server, nothing is made."""

import json
from collections.abc import Callable, Mapping, Sequence

from weighbridge.errors import Unavailable
from weighbridge.hosts.kubernetes import services
from weighbridge.hosts.kubernetes.kubectl import Kubectl
from weighbridge.hosts.kubernetes.objects import LIMITS, REQUESTS, Owner, PodRequest, node_info, pod
from weighbridge.hosts.kubernetes.remedies import ASK, Right, remedy, rule
from weighbridge.model.plugin import Readiness

RIGHTS: tuple[Right, ...] = (
    ("create", "configmaps"), ("list", "configmaps"), ("delete", "configmaps"), ("create", "pods"), ("get", "pods"),
    ("list", "pods"), ("delete", "pods"), ("create", "pods/exec"),
)  # fmt: skip
"""What a run does in its namespace."""
CHOOSE_NODES: tuple[Right, ...] = (("list", "nodes"),)
"""What it does where the study does not name its nodes."""
SERVICES: tuple[Right, ...] = (("create", "services"), ("list", "services"), ("delete", "services"))
"""What it does where it adds Services."""
OPTIONAL: Mapping[Right, str] = {
    ("list", "events"): "why a pod does not start is told less well",
    ("get", "nodes"): "facts of nodes are what their pods see",
    ("get", "nodes/proxy"): "kubelet's settings, such as its CPU manager, are not known",
    ("create", "services"): "no environments with a Service",
    ("create", "networkpolicies.networking.k8s.io"): "no environments with a NetworkPolicy",
    ("create", "persistentvolumeclaims"): "no volumes of a StorageClass",
}
"""What a run does where it may; what is lost where it may not."""
_NOBODY = "000000000000"
"""The run of what is only asked about."""


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


def admission(kubectl: Kubectl, *, host_network: bool) -> Readiness:
    """Whether the API server takes a pod as ours are: Pod Security, quotas and webhooks have their say."""
    owner = Owner("weighbridge", "00000000-0000-0000-0000-000000000000")
    request = PodRequest(
        _NOBODY, "asked", "any", "weighbridge/launcher:asked", owner,
        host_network=host_network, limits=LIMITS, requests=REQUESTS,
    )  # fmt: skip
    if why := kubectl.dry_run(pod(request)):
        return Readiness(False, why, remedy(why, kubectl.namespace) or ASK)
    return Readiness(True)


class _NoneReady(Unavailable):
    """No node can have pods."""


def usable_nodes(kubectl: Kubectl) -> list[str]:
    """Return the nodes that can have pods, at least one. Raises Unavailable."""
    every = [node_info(each) for each in kubectl.get("nodes")["items"]]
    if not (usable := [each.name for each in every if each.ready and not each.cordoned]):
        raise _NoneReady(f"no node is ready, of {len(every)}")
    return usable


def nodes(kubectl: Kubectl) -> Readiness:
    """Which nodes can have pods. Raises Unavailable where they cannot be listed."""
    if kubectl.lacking(CHOOSE_NODES):
        return Readiness(True, "this user may not list nodes", caveat="only nodes that a study names (node: NAME)")
    try:
        usable = usable_nodes(kubectl)
    except _NoneReady as error:
        return Readiness(False, str(error), "kubectl get nodes")
    if len(usable) == 1:
        return Readiness(True, f"{usable[0]}; between two nodes nothing can be measured", caveat="one node")
    return Readiness(True, ", ".join(usable))


def version(kubectl: Kubectl) -> Readiness:
    """The versions of both ends. Raises Unavailable where the API server does not answer."""
    about = json.loads(kubectl.must("version", "--output=json"))
    client = (about.get("clientVersion") or {}).get("gitVersion", "unknown")
    server = (about.get("serverVersion") or {}).get("gitVersion", "unknown")
    return Readiness(True, f"{server}, kubectl {client}")


def survey(kubectl: Kubectl) -> Mapping[str, Readiness]:
    """What of a cluster can be used, by what it is called. One that does not answer has one row."""
    try:
        rows = {"API server": version(kubectl)}
    except Unavailable as error:
        return {
            "API server": Readiness(
                False, str(error), "set KUBECONFIG, or choose a context: kubectl config get-contexts"
            )
        }
    steps: dict[str, Callable[[], Readiness]] = {
        "rights": lambda: rights(kubectl),
        "nodes": lambda: nodes(kubectl),
        "pods": lambda: admission(kubectl, host_network=False),
        "Services that a run may add": lambda: services.readiness(kubectl),
        "pods with the node's network": lambda: admission(kubectl, host_network=True),
    }
    for what, step in steps.items():
        try:
            rows[what] = step()
        except Unavailable as error:
            rows[what] = Readiness(False, str(error), ASK)
    return rows
