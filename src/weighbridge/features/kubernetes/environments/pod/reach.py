"""How clients reach a server's pod by a Service of ours: its manifest, and the ports that the cluster gives it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes.objects import ObjectOwner, labels, object_name
from weighbridge.features.kubernetes.pods import Pods
from weighbridge.features.kubernetes.site import ServerRoute
from weighbridge.model.command import PublishedPort

Reach = Literal["pod", "service", "headless", "nodeport"]
_TYPES = {"service": "ClusterIP", "nodeport": "NodePort"}
_TRIES = 8
"""How often a node port is asked for whose next number is free, too."""


def service(
    run_id: str, site: str, owner: ObjectOwner, reach: Reach, ports: Iterable[PublishedPort]
) -> dict[str, Any]:
    """Return the Service of a server's site."""
    metadata = {
        "name": object_name(run_id, site), "labels": labels(run_id, site), "ownerReferences": owner.references,
    }  # fmt: skip
    spec = {"type": _TYPES[reach], "selector": labels(run_id, site), "ports": ports_of(ports)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def ports_of(
    ports: Iterable[PublishedPort],
    numbers: Mapping[int, int] | None = None,
    given: Mapping[int, int] | None = None,
) -> list[dict[str, Any]]:
    """Return the ports of a Service: those on which its server listens.

    ``numbers``: node ports at which the server listens in the place of its own. ``given``: other node ports.
    """
    entries = {}
    for port in ports:
        number = (numbers or {}).get(port.listens)
        on_node = number or (given or {}).get(port.listens)
        entry: dict[str, Any] = {"name": f"{port.transport}-{port.listens}", "protocol": port.transport.upper()}
        entry |= {"port": number or port.listens, "targetPort": number or port.listens}
        entries[port.transport, port.listens] = entry | ({"nodePort": on_node} if on_node else {})
    return [*entries.values()]


def runs_of(ports: Iterable[PublishedPort]) -> list[list[int]]:
    """Return the ports that the run chose, those together whose numbers follow on one another.

    One that its server cannot choose is not among them: there what is reached has another number.
    """
    runs: list[list[int]] = []
    for number in sorted({port.listens for port in ports if port.listens == port.reached}):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def numbers_for(runs: Sequence[Sequence[int]], given: Mapping[int, int]) -> dict[int, int] | None:
    """Return the number of each port where each run begins at the number that the cluster gave its first.

    Return None if two of them would be the same.
    """
    numbers = {port: given[run[0]] + offset for run in runs for offset, port in enumerate(run)}
    return numbers if len({*numbers.values()}) == len(numbers) else None


def given_ports(about: Mapping[str, Any]) -> dict[int, int]:
    """Return the node's port of each port of a Service, as the cluster has it."""
    return {int(each["targetPort"]): int(each["nodePort"]) for each in about["spec"]["ports"] if "nodePort" in each}


@contextmanager
def opened_way(
    pods: Pods, run_id: str, site: str, reach: Reach, ports: Sequence[PublishedPort]
) -> Iterator[ServerRoute]:  # fmt: skip
    """Make a Service for a server's site, which goes when the context ends. Raises Unavailable."""
    manifest = service(run_id, site, pods.owner, reach, ports)
    with ExitStack() as stack:
        if reach == "service":
            about = stack.enter_context(pods.made(manifest))
            address = str(about["spec"]["clusterIP"])
            yield ServerRoute(address, {"reach": "Service", "Service's address": address})
            return
        numbers, about = _with_node_ports(stack, pods, manifest, ports)
        given = given_ports(about)
        fixed = {listens: number for listens, number in given.items() if listens != number}
        policy = str(about["spec"].get("externalTrafficPolicy", ""))
        facts = {"reach": "NodePort", "external traffic policy": policy}
        yield ServerRoute("", {key: value for key, value in facts.items() if value}, fixed, numbers)


def _with_node_ports(
    stack: ExitStack, pods: Pods, manifest: Mapping[str, Any], ports: Sequence[PublishedPort]
) -> tuple[dict[int, int], Mapping[str, Any]]:
    """Create a Service with its server's port numbers, because some programs send clients the port they listen on."""
    refused = "its port numbers are not consecutive"
    for _ in range(_TRIES):
        with ExitStack() as attempt:
            about = attempt.enter_context(pods.made(manifest))
            given = given_ports(about)
            numbers = numbers_for(runs_of(ports), given)
            if numbers is None:
                continue
            try:
                about = pods.patched(
                    "service", about["metadata"]["name"], {"spec": {"ports": ports_of(ports, numbers, given)}}
                )
            except Unavailable as error:
                refused = str(error)
                if "allocated" in refused or "valid range" in refused:
                    continue
                raise
            stack.push(attempt.pop_all())
            return numbers, about
    raise Unavailable(f"the cluster does not assign node ports to a server: {refused}")
