"""Services that a run adds to its cluster, so that nodes route through all of them; they end with it."""

import contextlib
import ipaddress
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.features.kubernetes.kubectl import Kubectl, RequestRefused
from weighbridge.features.kubernetes.objects import RUN_LABEL, SITE_LABEL, ObjectOwner, labels, object_name
from weighbridge.launcher.launch import Launcher
from weighbridge.linux.probing import probe_of
from weighbridge.model.host import RunContext
from weighbridge.model.plugin import Readiness
from weighbridge.model.setup import SetupStep

MOST = 10_000
"""The number of Services per cluster that Kubernetes is tested with (its documents on large clusters)."""
ADDED = "services"
"""The name of these Services in place of a site's."""
_SPARE = 10
"""The number of Services in a quota that are left to environments."""
_BATCH = 500
_BATCH_S = 300.0
_TRIED = 10
"""The number of Services that are probed: the last ones, and some of all others."""
_LEAST_S, _PER_SECOND = 90.0, 10
"""The time for a cluster, whose controllers make about 20 objects per second (their --kube-api-qps)."""
_CONNECT_S, _LOOK_S = 2, 1.0
_ENDLESS = 2**40
_RANGE = re.compile(r"valid IPs is (\S+)")
_OUTSIDE = "192.0.2.1"
"""An address for documentation (RFC 5737), which no cluster assigns to a Service."""


def service(run_id: str, number: int, owner: ObjectOwner, site: str, port: int) -> dict[str, Any]:
    """Return one of the Services, which leads to the pod of a site."""
    name = object_name(run_id, ADDED, str(number))
    metadata = {"name": name, "labels": labels(run_id, ADDED), "ownerReferences": owner.references}
    ports = [{"protocol": "TCP", "port": port, "targetPort": port}]
    spec = {"selector": labels(run_id, site), "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def is_added(run_id: str, name: str) -> bool:
    """Return whether a Service has the name of an added one."""
    return name.startswith(object_name(run_id, ADDED, "")) and name.rpartition("-")[2].isdigit()


def tried(number: int) -> list[int]:
    """Return the Services that show whether a node routes to all of them, the last one first."""
    last = range(max(0, number - _TRIED // 2), number)
    spread = {number * each // _TRIED for each in range(_TRIED)}
    return sorted({*last, *spread}, reverse=True)


@dataclass(frozen=True, slots=True)
class Added:
    """Existing Services: ``addresses`` of the probed ones, and the ``server`` in the pod behind all of them."""

    number: int
    port: int
    addresses: Sequence[str]
    server: Launcher

    def await_taken(self, client: Launcher, node: str) -> None:
        """Wait until a node routes connections to all probed ones. Raises Unavailable."""
        within_s = int(_LEAST_S + self.number / _PER_SECOND)
        deadline, left = time.monotonic() + within_s, [*self.addresses]
        everywhere = "0.0.0.0"  # noqa: S104 - on the node, during the wait
        listen = ("listen", "tcp", everywhere, str(self.port), str(within_s), str(_ENDLESS))
        listener = self.server.start(probe_of("connection", within_s, *listen))
        try:
            while left:
                connect = ("connect", "tcp", left[0], str(self.port), str(_CONNECT_S), "1")
                if client.run(probe_of("connection", _CONNECT_S, *connect)).returncode == 0:
                    left.pop(0)
                elif time.monotonic() > deadline:
                    raise Unavailable(
                        f"node {node} does not route connections to {self.number:,} Services {within_s} s after "
                        "they were created: use fewer ('services')"
                    )
                else:
                    time.sleep(_LOOK_S)
        finally:
            listener.stop()


@contextmanager
def added(
    run: RunContext, kubectl: Kubectl, owner: ObjectOwner, number: int, server: Launcher, site: str, port: int
) -> Iterator[Added]:
    """Add Services that lead to a port of a site's pod, whose launcher is the ``server``.

    They are removed when the context ends. Raises Unavailable.
    """
    require_room(kubectl, number)
    run.say(f"adding {number:,} Services to the cluster, and waiting until its nodes route to them")
    try:
        for first in range(0, number, _BATCH):
            batch = range(first, min(first + _BATCH, number))
            with run.during(SetupStep("services", site, batch.stop, number)):
                kubectl.create_all([service(run.id, each, owner, site, port) for each in batch], _BATCH_S)
        names = [f"service/{object_name(run.id, ADDED, str(each))}" for each in tried(number)]
        listed = kubectl.get(*names, needed=True)
        addresses = [each["spec"]["clusterIP"] for each in listed.get("items") or [listed]]
        yield Added(number, port, addresses, server)
    finally:
        run.say(f"removing {number:,} Services")
        with contextlib.suppress(Unavailable, EnvironmentLost):  # they also end with their owner
            remove(kubectl, run.id)


def remove(kubectl: Kubectl, run_id: str) -> None:
    """Delete all Services that a run added, with the cluster's objects for them. Raises Unavailable.

    A collective request per kind is faster: individual ones need a minute for 2,000.
    """
    selector = f"{RUN_LABEL}={run_id},{SITE_LABEL}={ADDED}"
    try:
        kubectl.delete_all("/api/v1", "services", selector)
    except RequestRefused:
        kubectl.delete("services", f"--selector={selector}", deadline_s=_BATCH_S)
    for group in ("/apis/discovery.k8s.io/v1", "/api/v1"):
        with contextlib.suppress(Unavailable):  # the cluster collects them, 20 per second
            kubectl.delete_all(group, "endpoints" if group == "/api/v1" else "endpointslices", selector)


@dataclass(frozen=True, slots=True)
class ServiceCapacity:
    """The number of Services that can be added, and the reason for that limit."""

    most: int
    reason: str


def room(kubectl: Kubectl) -> ServiceCapacity:
    """Return how many Services a run can add, as far as the user can read it.

    It is at most half of the free addresses, because others need some. Raises Unavailable if the API server does not
    answer.
    """
    rooms = [ServiceCapacity(MOST, f"Kubernetes supports {MOST:,} per cluster")]
    with contextlib.suppress(RequestRefused):
        rooms += _in_quotas(kubectl.get("resourcequotas").get("items") or ())
    size, used = _addresses(kubectl)
    if size:
        known = f"{size - used:,} of {size:,} addresses for Services are free" if used else f"{size:,} addresses"
        rooms.append(ServiceCapacity(max(0, size - used) // 2, known))
    return min(rooms, key=lambda each: each.most)


def _in_quotas(quotas: Sequence[Any]) -> Iterator[ServiceCapacity]:
    for quota in quotas:
        hard, used = ((quota.get("status") or {}).get(key) or {} for key in ("hard", "used"))
        for name in ("services", "count/services"):
            if name in hard:
                left = int(hard[name]) - int(used.get(name, 0))
                whose = quota["metadata"]["name"]
                yield ServiceCapacity(max(0, left - _SPARE), f"quota {whose} has {left:,} {name} left")


def _addresses(kubectl: Kubectl) -> tuple[int, int]:
    ranges: list[str] = []
    with contextlib.suppress(Unavailable):  # from Kubernetes 1.33 on
        listed = kubectl.get("servicecidrs").get("items") or ()
        ranges = [cidr for each in listed for cidr in ((each.get("spec") or {}).get("cidrs") or ())[:1]]
    if not ranges:
        asked = service("0" * 12, 0, ObjectOwner("any", "0"), "any", 1)
        asked["metadata"].pop("ownerReferences")
        [refusal] = kubectl.dry_run([asked | {"spec": {**asked["spec"], "clusterIP": _OUTSIDE}}])
        ranges = _RANGE.findall(refusal)[:1]
    sizes = [ipaddress.ip_network(each, strict=False).num_addresses - 2 for each in ranges]
    for path in ("/apis/networking.k8s.io/v1/ipaddresses", "/api/v1/services"):
        with contextlib.suppress(Unavailable):
            return min(sum(sizes), 2**24), kubectl.count(path)
    return min(sum(sizes), 2**24), 0


def require_room(kubectl: Kubectl, number: int) -> None:
    """Raise Unavailable if the cluster has no room for ``number`` Services."""
    if not (state := readiness(kubectl, number)).ready:
        raise Unavailable(f"{state.detail}: {state.remedy}")


def readiness(kubectl: Kubectl, number: int = 1) -> Readiness:
    """Return whether ``number`` Services can be added, and how many can. Raises Unavailable without an answer."""
    available = room(kubectl)
    if number > available.most:
        fewer = f"use 'services: {available.most}' or fewer" if available.most else "free some"
        return Readiness(
            False, f"a run can add at most {available.most:,} Services, not {number:,} ({available.reason})", fewer
        )
    return Readiness(True, f"up to {available.most:,} ({available.reason})")
