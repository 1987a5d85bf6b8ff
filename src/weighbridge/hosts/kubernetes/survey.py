"""What a cluster lets this user measure, and what refuses the rest: asked of its API server, nothing is made."""

import json
from collections.abc import Callable, Mapping

from weighbridge.errors import Unavailable
from weighbridge.hosts.kubernetes.kubectl import Kubectl
from weighbridge.hosts.kubernetes.objects import Owner, PodRequest, node_info, pod
from weighbridge.model.plugin import Readiness

RIGHTS = (
    ("create", "configmaps"), ("delete", "configmaps"), ("create", "pods"), ("get", "pods"), ("delete", "pods"),
    ("create", "pods/exec"), ("get", "nodes"), ("list", "nodes"),
)  # fmt: skip
"""What a run does in the cluster."""
OPTIONAL = (("list", "events"),)
"""By what it tells better why a pod does not start."""
_NOBODY = "000000000000"
"""The run of what is only asked about."""
_ASK = "ask the cluster's administrator"


def rights(kubectl: Kubectl) -> Readiness:
    """Whether the user may do all that a run does. Raises Unavailable where nobody answers."""
    lacking = [f"{verb} {resource}" for verb, resource in RIGHTS if not kubectl.can_i(verb, resource)]
    if lacking:
        return Readiness(False, f"this user may not {', '.join(lacking)}", f"{_ASK} for these rights")
    lesser = [f"{verb} {resource}" for verb, resource in OPTIONAL if not kubectl.can_i(verb, resource)]
    if lesser:
        return Readiness(True, f"this user may not {', '.join(lesser)}", caveat="events are not told")
    return Readiness(True)


def admission(kubectl: Kubectl, *, host_network: bool) -> Readiness:
    """Whether the API server takes a pod as ours are: Pod Security, quotas and webhooks have their say."""
    owner = Owner("weighbridge", "00000000-0000-0000-0000-000000000000")
    request = PodRequest(_NOBODY, "asked", "any", "weighbridge/launcher:asked", owner, host_network=host_network)
    if why := kubectl.dry_run(pod(request)):
        return Readiness(False, why, _remedy(why))
    return Readiness(True)


def _remedy(why: str) -> str:
    if "violates PodSecurity" in why:
        return (
            "use a namespace of your own that allows it: "
            "kubectl label namespace NAME pod-security.kubernetes.io/enforce=privileged"
        )
    if "exceeded quota" in why or "failed quota" in why:
        return "give the study limits (resources: cpus, memory) within the quota, or use another namespace"
    return _ASK


def nodes(kubectl: Kubectl) -> Readiness:
    """Which nodes can have pods. Raises Unavailable where they cannot be listed."""
    every = [node_info(each) for each in kubectl.get("nodes")["items"]]
    usable = [each.name for each in every if each.ready and not each.cordoned]
    if not usable:
        return Readiness(False, f"none of {len(every)} is ready", "kubectl get nodes")
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
        "pods with the node's network": lambda: admission(kubectl, host_network=True),
    }
    for what, step in steps.items():
        try:
            rows[what] = step()
        except Unavailable as error:
            rows[what] = Readiness(False, str(error), _ASK)
    return rows
