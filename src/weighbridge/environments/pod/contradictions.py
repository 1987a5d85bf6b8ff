"""What is wrong with the options of a pod environment, whatever the cluster."""

from collections.abc import Iterator
from typing import Any

from weighbridge.model.environment import Needs


def problems(options: Any, needs: Needs) -> Iterator[str]:
    """A sentence for each combination that cannot work."""
    without = dict.fromkeys(traits.without_network for traits in needs.holding.values() if traits.without_network)
    if options.network == "host":
        yield from without
    of_network = sorted(name for name in needs.sysctls if name.startswith("net."))
    if options.network == "host" and of_network:
        yield f"{of_network[0]} is the node's with 'network: host': remove it, or use 'network: pod'"
    if options.storage is not None and options.storage.engine_disk is not None:
        yield "a pod's layer is on its node's disk: remove 'disk'"
    lacking = [key for key in ("cpus", "memory") if getattr(needs.resources, key) is None]
    if options.quality == "guaranteed" and lacking:
        yield f"'quality: guaranteed' needs limits: set resources: {', '.join(lacking)}"
    if options.reach == "headless":
        yield (
            "reach: a headless Service is a name for the pod's own address, and names are resolved before anything "
            "is measured: use 'reach: pod', whose path is the same"
        )
    elif options.reach != "pod":
        yield from _no_way(options, needs)
    if options.policy is not None:
        yield from _no_policy(options, needs)


def _no_way(options: Any, needs: Needs) -> Iterator[str]:
    key = f"reach: {options.reach}"
    if options.network == "host":
        yield f"'{key}' needs 'network: pod': a server with its node's network is the baseline"
    if "server" not in needs.inside:
        yield f"'{key}' needs the server in the environment: add server to 'inside'"
    if not needs.network:
        yield f"'{key}' changes nothing for workloads without a network: remove it"


def _no_policy(options: Any, needs: Needs) -> Iterator[str]:
    if options.network == "host":
        yield "'policy' needs 'network: pod': NetworkPolicies do not hold for pods with their node's network"
    if not {"server", "client"} <= needs.inside:
        yield "'policy' needs both roles in pods: 'inside: [server, client]'"
    if options.reach == "nodeport":
        yield (
            "'policy' cannot name the client behind a node port, which gives connections the node's address: "
            "use 'reach: pod' or 'reach: service'"
        )
    if not needs.network:
        yield "'policy' changes nothing for workloads without a network: remove it"
