"""Services that a run adds to its cluster, so that every node finds its way through all of them; they go with it."""

import contextlib
import ipaddress
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.hosts.kubernetes.kubectl import Kubectl, Refused
from weighbridge.hosts.kubernetes.objects import RUN_LABEL, SITE_LABEL, Owner, labels, object_name
from weighbridge.launcher.launch import Launcher
from weighbridge.linux.probing import probe_of
from weighbridge.model.host import RunContext
from weighbridge.model.plugin import Readiness

MOST = 10_000
"""Kubernetes is tried with so many Services in a cluster (its documents on large clusters)."""
ADDED = "services"
"""What such Services have in the place of a site."""
_SPARE = 10
"""So many of a quota are left to the Services of environments."""
_BATCH = 500
_BATCH_S = 300.0
_TRIED = 10
"""The way to so many of them is tried: to the last ones, and to some of all others."""
_LEAST_S, _PER_SECOND = 90.0, 10
"""How long a cluster may take: its controllers make about 20 objects a second (their --kube-api-qps)."""
_CONNECT_S, _LOOK_S = 2, 1.0
_ENDLESS = 2**40
_RANGE = re.compile(r"valid IPs is (\S+)")
_OUTSIDE = "192.0.2.1"
"""An address for documents (RFC 5737), which no cluster gives to a Service."""


def service(run_id: str, number: int, owner: Owner, site: str, port: int) -> dict[str, Any]:
    """Return one of them: it leads to the pod of a site."""
    name = object_name(run_id, ADDED, str(number))
    metadata = {"name": name, "labels": labels(run_id, ADDED), "ownerReferences": owner.references}
    ports = [{"protocol": "TCP", "port": port, "targetPort": port}]
    spec = {"selector": labels(run_id, site), "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def is_added(run_id: str, name: str) -> bool:
    """Whether a Service has the name of one of them."""
    return name.startswith(object_name(run_id, ADDED, "")) and name.rpartition("-")[2].isdigit()


def tried(number: int) -> list[int]:
    """Return those by which it is seen that a node has taken all of them, the last one first."""
    last = range(max(0, number - _TRIED // 2), number)
    spread = {number * each // _TRIED for each in range(_TRIED)}
    return sorted({*last, *spread}, reverse=True)


@dataclass(frozen=True, slots=True)
class Added:
    """Services that are there. ``addresses``: of those that are tried. ``server``: of the node's pod behind each."""

    number: int
    port: int
    addresses: Sequence[str]
    server: Launcher

    def await_taken(self, client: Launcher, node: str) -> None:
        """Wait until a node leads connections to all that are tried. Raises Unavailable."""
        within_s = int(_LEAST_S + self.number / _PER_SECOND)
        deadline, left = time.monotonic() + within_s, [*self.addresses]
        everywhere = "0.0.0.0"  # noqa: S104 - of the node, while it is waited
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
    run: RunContext, kubectl: Kubectl, owner: Owner, number: int, server: Launcher, site: str, port: int
) -> Iterator[Added]:
    """Add Services that lead to a port of a site's pod, whose launcher is the ``server``.

    They are gone when the context ends. Raises Unavailable.
    """
    require_room(kubectl, number)
    run.say(f"adding {number:,} Services to the cluster, and waiting until its nodes route to them")
    try:
        for first in range(0, number, _BATCH):
            batch = range(first, min(first + _BATCH, number))
            kubectl.create_all([service(run.id, each, owner, site, port) for each in batch], _BATCH_S)
            run.step(f"{batch.stop:,} of {number:,} Services created")
        names = [f"service/{object_name(run.id, ADDED, str(each))}" for each in tried(number)]
        about = kubectl.get(*names, needed=True)
        addresses = [each["spec"]["clusterIP"] for each in about.get("items") or [about]]
        yield Added(number, port, addresses, server)
    finally:
        run.say(f"removing {number:,} Services")
        with contextlib.suppress(Unavailable, EnvironmentLost):  # with their owner they go, too
            remove(kubectl, run.id)


def remove(kubectl: Kubectl, run_id: str) -> None:
    """Delete all that a run has added, and what the cluster has made for them. Raises Unavailable.

    By one request for all of a kind: one for each takes a minute for 2,000.
    """
    selector = f"{RUN_LABEL}={run_id},{SITE_LABEL}={ADDED}"
    try:
        kubectl.delete_all("/api/v1", "services", selector)
    except Refused:
        kubectl.delete("services", f"--selector={selector}", deadline_s=_BATCH_S)
    for group in ("/apis/discovery.k8s.io/v1", "/api/v1"):
        with contextlib.suppress(Unavailable):  # the cluster collects them, 20 a second
            kubectl.delete_all(group, "endpoints" if group == "/api/v1" else "endpointslices", selector)


@dataclass(frozen=True, slots=True)
class Room:
    """How many Services may be added. ``why``: what sets that limit."""

    most: int
    why: str


def room(kubectl: Kubectl) -> Room:
    """Return how many Services a run may add, by what of it the user may read.

    Half of the free addresses: others need some, too. Raises Unavailable where nobody answers.
    """
    rooms = [Room(MOST, f"Kubernetes supports {MOST:,} per cluster")]
    with contextlib.suppress(Refused):
        rooms += _in_quotas(kubectl.get("resourcequotas").get("items") or ())
    size, used = _addresses(kubectl)
    if size:
        known = f"{size - used:,} of {size:,} addresses for Services are free" if used else f"{size:,} addresses"
        rooms.append(Room(max(0, size - used) // 2, known))
    return min(rooms, key=lambda each: each.most)


def _in_quotas(quotas: Sequence[Any]) -> Iterator[Room]:
    for each in quotas:
        hard, used = ((each.get("status") or {}).get(key) or {} for key in ("hard", "used"))
        for name in ("services", "count/services"):
            if name in hard:
                left = int(hard[name]) - int(used.get(name, 0))
                whose = each["metadata"]["name"]
                yield Room(max(0, left - _SPARE), f"quota {whose} has {left:,} {name} left")


def _addresses(kubectl: Kubectl) -> tuple[int, int]:
    """How many addresses there are for Services, and how many are taken; 0 where that is not known."""
    ranges: list[str] = []
    with contextlib.suppress(Unavailable):  # from Kubernetes 1.33 on
        listed = kubectl.get("servicecidrs").get("items") or ()
        ranges = [cidr for each in listed for cidr in ((each.get("spec") or {}).get("cidrs") or ())[:1]]
    if not ranges:
        asked = service("0" * 12, 0, Owner("any", "0"), "any", 1)
        asked["metadata"].pop("ownerReferences")
        [refusal] = kubectl.dry_run([asked | {"spec": {**asked["spec"], "clusterIP": _OUTSIDE}}])
        ranges = _RANGE.findall(refusal)[:1]
    sizes = [ipaddress.ip_network(each, strict=False).num_addresses - 2 for each in ranges]
    for path in ("/apis/networking.k8s.io/v1/ipaddresses", "/api/v1/services"):
        with contextlib.suppress(Unavailable):
            return min(sum(sizes), 2**24), kubectl.count(path)
    return min(sum(sizes), 2**24), 0


def require_room(kubectl: Kubectl, number: int) -> None:
    """Raises Unavailable where the cluster has no room for so many."""
    if not (state := readiness(kubectl, number)).ready:
        raise Unavailable(f"{state.detail}: {state.remedy}")


def readiness(kubectl: Kubectl, number: int = 1) -> Readiness:
    """Whether so many may be added, and how many may. Raises Unavailable where nobody answers."""
    there = room(kubectl)
    if number > there.most:
        fewer = f"use 'services: {there.most}' or fewer" if there.most else "free some"
        return Readiness(False, f"a run can add at most {there.most:,} Services, not {number:,} ({there.why})", fewer)
    return Readiness(True, f"up to {there.most:,} ({there.why})")
