"""What a site asks of Kubernetes, as a pod's manifest says it; and what of its limits that cannot be. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weighbridge.hosts.kubernetes.objects import Owner, PodRequest
from weighbridge.model.host import Limits
from weighbridge.model.site import Mount, SiteRequest

_USUAL_PERIOD_US = 100_000


def limits_of(limits: Limits) -> dict[str, str]:
    """Return Kubernetes' limits: thousandths of a CPU, bytes. Its requests are the same."""
    asked = {}
    if limits.cpus is not None:
        asked["cpu"] = f"{max(1, round(1000 * limits.cpus))}m"
    if limits.memory is not None:
        asked["memory"] = str(limits.memory)
    return asked


def not_honoured(limits: Limits) -> Mapping[str, str]:
    """Return the limits that a pod cannot be given, each with why."""
    refused = {}
    if limits.cpuset is not None:
        refused["pin"] = "kubelet chooses a pod's CPUs"
    if limits.cpus is not None and limits.cpu_period_us != _USUAL_PERIOD_US:
        refused["cpu_period"] = "kubelet sets it, for all pods of a node"
    return refused


def given_otherwise(limits: Limits, about: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the limits that a cluster (its LimitRange) gave a pod which was not asked to have them."""
    containers = (about.get("spec") or {}).get("containers") or [{}]
    given = (containers[0].get("resources") or {}).get("limits") or {}
    asked = limits_of(limits)
    return {
        what: f"the cluster set {given[resource]}, not asked for"
        for resource, what in (("cpu", "cpus"), ("memory", "memory"))
        if resource in given and resource not in asked
    }


def pod_request(
    request: SiteRequest,
    node: str,
    image: str,
    owner: Owner,
    *,
    host_network: bool,
    runtime_class: str,
    open_files: int,
    pull: bool = False,
) -> PodRequest:
    """Return what the pod of a site is to be."""
    return PodRequest(
        run_id=request.run.id,
        site=request.name,
        node=node,
        image=image,
        owner=owner,
        host_network=host_network,
        limits=limits_of(request.limits),
        sysctls=dict(request.sysctls),
        shm_size=request.shm_size,
        open_files=open_files,
        runtime_class=runtime_class,
        pull=pull,
    )


def with_storage(request: PodRequest, mount: Mount) -> PodRequest:
    """Return the pod with its data on a storage: one of its volumes, or its layer, which then can be written to."""
    if mount.way == "layer":
        return replace(request, writable_root=True)
    return replace(request, data=mount.manifest, data_folder=mount.source)
