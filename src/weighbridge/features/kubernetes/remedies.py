"""Remedies for the refusals of a cluster, by its own words. Pure."""

import re
from collections.abc import Iterable

ASK = "ask the cluster's administrator"
_FORBIDDEN = re.compile(
    r'is forbidden: User "(?P<user>[^"]+)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group '
    r'"(?P<group>[^"]*)"(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_LEVEL = re.compile(r'violates PodSecurity "(?P<level>baseline|restricted)[:"]')
_AT_NO_LEVEL = ("hostPath", "forbidden sysctls")
"""Refusals of Pod Security that do not depend on the hosts' 'pod_security'."""
_WEBHOOK = re.compile(r'admission webhook "(?P<name>[^"]+)" denied')
_BY_WORDS = {
    "violates PodSecurity": "kubectl label --overwrite namespace NAMESPACE "
        "pod-security.kubernetes.io/enforce=privileged, or use your own namespace that has this label",
    "exceeded quota": "give the study smaller limits (resources: cpus, memory) or fewer environments "
        "(all pods of a run exist at the same time), or raise the quota",
    "failed quota": "give the study limits (resources: cpus, memory)",
    "limit to request ratio": "use 'quality: guaranteed' (requests then equal limits), or change the LimitRange",
    "minimum cpu usage": "use 'quality: guaranteed' (requests then equal limits), or change the LimitRange",
    "minimum memory usage": "use 'quality: guaranteed' (requests then equal limits), or change the LimitRange",
    "maximum cpu usage": "give the study smaller limits (resources: cpus), or change the LimitRange",
    "maximum memory usage": "give the study smaller limits (resources: memory), or change the LimitRange",
    "Insufficient cpu": "use 'quality: burstable', smaller limits (resources: cpus), or another node",
    "Insufficient memory": "use 'quality: burstable', smaller limits (resources: memory), or another node",
    "untolerated taint": "use another node, or remove its taint: kubectl taint node NODE KEY-",
    "(OOMKilled)": "give it more memory (resources: memory): with control groups v2 the kernel kills the whole pod "
        "unless its kubelet has 'singleProcessOOMKill: true'",
    "were unschedulable": "kubectl uncordon NODE, or use another node",
}  # fmt: skip

Right = tuple[str, str]
"""A verb, and a resource with its part and its group: ``pods/exec``, ``networkpolicies.networking.k8s.io``."""


def group_of(resource: str) -> tuple[str, str]:
    """Return a resource (with its part) and its API group; "" is the core's."""
    name, _, group = resource.partition(".")
    return name, group


def rule(rights: Iterable[Right], namespace: str = "") -> str:
    """Return what grants these rights: rules of a Role, or of a ClusterRole for nodes, which have no namespace."""
    verbs: dict[str, list[str]] = {}
    for verb, resource in rights:
        verbs.setdefault(resource, []).append(verb)
    rules = []
    for resource, allowed in verbs.items():
        name, group = group_of(resource)
        rules.append(f'{{apiGroups: ["{group}"], resources: [{name}], verbs: [{", ".join(allowed)}]}}')
    whose = "a ClusterRole" if any(is_of_cluster(resource) for resource in verbs) else "a Role"
    where = f" in namespace {namespace}" if namespace and whose == "a Role" else ""
    return f"bind this user to {whose}{where} with rules: [{', '.join(rules)}]"


def is_of_cluster(resource: str) -> bool:
    """Return whether a resource has no namespace."""
    return resource.partition("/")[0] == "nodes"


def remedy(refusal: str, namespace: str = "") -> str:
    """Return a remedy for a cluster's refusal in these words; "" if unknown."""
    if (forbidden := _FORBIDDEN.search(refusal)) is not None:
        resource = forbidden["resource"] + (f".{forbidden['group']}" if forbidden["group"] else "")
        return rule([(forbidden["verb"], resource)], forbidden["namespace"] or "")
    if (webhook := _WEBHOOK.search(refusal)) is not None:
        return f"exempt the namespace from the webhook {webhook['name']}, or use another namespace"
    words = next((helps for words, helps in _BY_WORDS.items() if words in refusal), "")
    if (level := _LEVEL.search(refusal)) is not None and not any(words in refusal for words in _AT_NO_LEVEL):
        words += f", or set 'pod_security: {level['level']}' on the hosts and measure without their network"
    return words.replace("NAMESPACE", namespace or "NAME")


def with_remedy(refusal: str, namespace: str = "") -> str:
    """Return a refusal with its remedy, if known."""
    helps = remedy(refusal, namespace)
    return f"{refusal}: {helps}" if helps else refusal
