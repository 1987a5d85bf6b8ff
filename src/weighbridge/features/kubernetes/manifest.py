"""Converts a site's requirements to a pod's manifest, and reports limits that a pod cannot have."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes.objects import ASKED, PodRequest, resources_of
from weighbridge.features.kubernetes.pods import Pods
from weighbridge.linux.process import most_open_files
from weighbridge.model.environment import Needs
from weighbridge.model.host import Limits
from weighbridge.model.site import Mount, SiteRequest

Quality = Literal["burstable", "guaranteed"]
_USUAL_PERIOD_US = 100_000
_ROUNDED = 0.006
"""The tolerance in CPUs: Kubernetes has thousandths of a CPU, and kubelet none below ten."""
_CPU_REQUEST, _MEMORY_REQUEST = 50, 64 << 20
"""Thousandths of a CPU, and bytes: all pods of a run exist at once, and must fit on a small node."""


def limits_of(limits: Limits) -> dict[str, str]:
    """Return Kubernetes' limits: thousandths of a CPU, bytes."""
    asked = {}
    if limits.cpus is not None:
        asked["cpu"] = f"{_thousandths(limits.cpus)}m"
    if limits.memory is not None:
        asked["memory"] = str(limits.memory)
    return asked


def requests_of(limits: Limits, quality: Quality) -> dict[str, str]:
    """Return the resources to reserve: its limits, or few, because one environment runs at a time."""
    if quality == "guaranteed":
        return limits_of(limits)
    cpu = _CPU_REQUEST if limits.cpus is None else min(_CPU_REQUEST, _thousandths(limits.cpus))
    memory = _MEMORY_REQUEST if limits.memory is None else min(_MEMORY_REQUEST, limits.memory)
    return {"cpu": f"{cpu}m", "memory": str(memory)}


def _thousandths(cpus: float) -> int:
    return max(1, round(1000 * cpus))


def not_honoured(limits: Limits, cpu_manager: str = "") -> Mapping[str, str]:
    """Return the limits that a pod cannot have, with the reasons; ``cpu_manager`` is kubelet's policy, if known."""
    refused = {}
    if limits.cpuset is not None:
        policy = f", according to its CPU manager policy {cpu_manager}" if cpu_manager else ""
        refused["pin"] = f"kubelet chooses a pod's CPUs{policy}"
    if limits.cpus is not None and limits.cpu_period_us != _USUAL_PERIOD_US:
        refused["cpu_period"] = "kubelet sets it for all pods of a node"
    return refused


def quota_not_honoured(limits: Limits, quota: tuple[str, str] | None) -> Mapping[str, str]:
    """Return the parts of a CPU limit that the kernel does not have as requested.

    ``quota`` is the quota and the period in microseconds, in its own words; None if unknown.
    """
    if limits.cpus is None or quota is None:
        return {}
    allowed, period = quota
    if not allowed.isdecimal():
        return {
            "cpus": "kubelet did not set a CPU quota: it does not enforce quotas, or it gave the pod exclusive CPUs"
        }
    if abs((cpus := int(allowed) / int(period)) - limits.cpus) > _ROUNDED:
        return {"cpus": f"the CPU quota equals {cpus:g} CPUs"}
    if period != str(_USUAL_PERIOD_US) == str(limits.cpu_period_us):
        return {"cpu_period": f"kubelet uses {int(period) / 1000:g} ms"}
    return {}


def given_otherwise(limits: Limits, about: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the limits that a cluster (its LimitRange) set for a pod without a request."""
    given = resources_of(about).get("limits") or {}
    asked = limits_of(limits)
    return {
        limit: f"the cluster set {given[resource]}, which was not requested"
        for resource, limit in (("cpu", "cpus"), ("memory", "memory"))
        if resource in given and resource not in asked
    }


def pod_request(
    request: SiteRequest,
    pods: Pods,
    *,
    host_network: bool = False,
    privileged: bool = False,
    runtime_class: str = "",
    quality: Quality = "burstable",
) -> PodRequest:
    """Return the request for the pod of a site on the node ``pods``. Raises Unavailable."""
    return PodRequest(
        run_id=request.run.id,
        site=request.name,
        node=pods.node_name,
        image=pods.image(request.userland),
        owner=pods.owner,
        host_network=host_network or privileged,
        privileged=privileged,
        user=pods.user,
        limits=limits_of(request.limits),
        requests=requests_of(request.limits, quality),
        sysctls=dict(request.sysctls),
        shm_size=request.shm_size,
        open_files=request.open_files or most_open_files(),
        runtime_class=runtime_class,
        pull=pods.pulls,
        title=request.title,
    )


def asked_pod(needs: Needs, quality: Quality = "burstable", **fields: Any) -> PodRequest:
    """Return a pod like those of an environment's sites, to ask whether it would be accepted."""
    limits = Limits(needs.resources.cpus, needs.resources.memory)
    sysctls = dict.fromkeys(sorted(needs.sysctls), "0")
    return replace(ASKED, limits=limits_of(limits), requests=requests_of(limits, quality), sysctls=sysctls, **fields)


def quality_of_service(request: PodRequest) -> str:
    """Return the class that Kubernetes gives a pod by its requests and limits."""
    guaranteed = {"cpu", "memory"} <= request.limits.keys() and request.requests == request.limits
    return "Guaranteed" if guaranteed else "Burstable" if request.limits or request.requests else "BestEffort"


def with_storage(request: PodRequest, mount: Mount) -> PodRequest:
    """Return the pod with its data on a storage: a volume, or its layer, which then is writable.

    Raises Unavailable.
    """
    if mount.way == "layer":
        if request.user:
            raise Unavailable(
                "'storage: layer' belongs to root, but with 'pod_security: restricted' programs run as user "
                f"{request.user}: use another storage"
            )
        return replace(request, writable_root=True)
    return replace(request, data=mount.manifest, data_folder=mount.source)
