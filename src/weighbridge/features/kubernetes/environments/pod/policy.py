"""A NetworkPolicy that lets only a client's pod reach its server's, after a test that the cluster enforces it."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes.objects import ObjectOwner, labels, object_name
from weighbridge.features.kubernetes.pods import Pods
from weighbridge.features.kubernetes.site import PodSite
from weighbridge.linux.probing import listens, probe_of
from weighbridge.model.command import PublishedPort

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""The API server gives it to every namespace."""
WITHIN_S = 15.0
"""The seconds within which a cluster must put a policy in force."""
_PROBE_S = 6
_BYTES = 1024
_LOOK_S = 0.5
_SURE = 2
"""The number of denials in a row that count: while rules change, a single connection can be lost by chance."""


def policy(
    run_id: str,
    server: str,
    owner: ObjectOwner,
    what: str,
    client: str = "",
    ports: Iterable[PublishedPort] = (),
    namespace: str = "",
) -> dict[str, Any]:
    """Return a policy for the pod of a server: ``client`` may reach its ports; without one nobody may.

    ``namespace`` is the client's; "" means the server's.
    """
    entries = {(port.transport, port.listens): None for port in ports}
    numbers = [{"protocol": transport.upper(), "port": number} for transport, number in entries]
    peer = {"podSelector": {"matchLabels": labels(run_id, client)}}
    if namespace:
        peer["namespaceSelector"] = {"matchLabels": {NAMESPACE_LABEL: namespace}}
    allowed = {"from": [peer], "ports": numbers}
    metadata = {
        "name": object_name(run_id, what, server), "labels": labels(run_id, server),
        "ownerReferences": owner.references,
    }  # fmt: skip
    spec = {
        "podSelector": {"matchLabels": labels(run_id, server)}, "policyTypes": ["Ingress"],
        "ingress": [allowed] if client else [],
    }  # fmt: skip
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


@contextmanager
def enforced(
    pods: Pods,
    run_id: str,
    server: PodSite,
    client: PodSite,
    ports: Sequence[PublishedPort],
    namespace: str = "",
) -> Iterator[None]:
    """Let the client reach the server by a policy, once one that denies it was seen to work. Raises Unavailable.

    ``namespace`` is the client's; "" means the server's.
    """
    port, server_address = ports[0].listens, server.own_address
    if not _becomes(lambda: admits(server, server_address, client, port)):
        raise Unavailable(
            f"even without a policy, the client's pod cannot reach the server's pod at {server_address}"
        )

    def denies() -> bool:
        return not any(admits(server, server_address, client, port) for _ in range(_SURE))

    with pods.made(policy(run_id, server.name, pods.owner, "deny")):
        if not _becomes(denies):
            raise Unavailable(
                "the cluster accepts NetworkPolicies but does not enforce them (connections still succeeded "
                f"{WITHIN_S:.0f} s after a policy denied them). Use a network plugin that enforces them (Calico, "
                "Cilium, kube-router)"
            )
    with pods.made(policy(run_id, server.name, pods.owner, "allow", client.name, ports, namespace)):
        if not _becomes(lambda: admits(server, server_address, client, port)):
            raise Unavailable("the client cannot reach the server under a NetworkPolicy that allows it")
        yield


def _becomes(condition: Callable[[], bool]) -> bool:
    """Return whether a condition becomes true within `WITHIN_S`; checking a denial takes seconds."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() <= deadline:
        if condition():
            return True
        time.sleep(_LOOK_S)
    return False


def admits(server: PodSite, address: str, client: PodSite, port: int) -> bool:
    """Return whether a connection from the client's pod reaches the server's pod."""

    def end(what: str, where: str) -> Any:
        return probe_of("connection", _PROBE_S, what, "tcp", where, str(port), str(_PROBE_S), str(_BYTES))

    listener = server.start(end("listen", "0.0.0.0"))  # noqa: S104 - of a pod
    try:
        if not listens(listener, server, "tcp", port):
            raise Unavailable(f"no program can listen on port {port} of the server's pod")
        return client.run(end("connect", address)).returncode == 0
    finally:
        listener.stop()
