"""Refuses options of a pod environment that cannot work in any cluster."""

from collections.abc import Iterator
from typing import Any

from weighbridge.model.environment import Needs


def problems(options: Any, needs: Needs) -> Iterator[str]:
    """Yield a sentence for each combination that cannot work."""
    without = dict.fromkeys(traits.without_network for traits in needs.holding.values() if traits.without_network)
    if options.network == "host":
        yield from without
    of_network = sorted(name for name in needs.sysctls if name.startswith("net."))
    if options.network == "host" and of_network:
        yield f"with 'network: host', {of_network[0]} belongs to the node. Remove it, or use 'network: pod'"
    if options.storage is not None and options.storage.engine_disk is not None:
        yield "the layer of a pod is on the disk of its node. Remove 'disk'"
    lacking = [key for key in ("cpus", "memory") if getattr(needs.resources, key) is None]
    if options.quality == "guaranteed" and lacking:
        yield f"'quality: guaranteed' needs limits. Set resources: {', '.join(lacking)}"
    if options.reach == "headless":
        yield (
            "reach: a headless Service is only a name for the pod's address, and names are resolved before the "
            "measurement. Use 'reach: pod', which has the same path"
        )
    elif options.reach != "pod":
        yield from _no_way(options, needs)
    if options.policy is not None:
        yield from _no_policy(options, needs)


def _no_way(options: Any, needs: Needs) -> Iterator[str]:
    key = f"reach: {options.reach}"
    if options.network == "host":
        yield f"'{key}' needs 'network: pod', because a server on the network of its node is the baseline"
    if "server" not in needs.inside:
        yield f"'{key}' needs the server in the environment. Add server to 'inside'"
    if not needs.network:
        yield f"'{key}' has no effect on workloads without a network. Remove it"


def _no_policy(options: Any, needs: Needs) -> Iterator[str]:
    if options.network == "host":
        yield (
            "'policy' needs 'network: pod', because NetworkPolicies do not apply to pods on the network of their node"
        )
    if not {"server", "client"} <= needs.inside:
        yield "'policy' needs both roles in pods ('inside: [server, client]')"
    if options.reach == "nodeport":
        yield (
            "'policy' cannot identify the client behind a node port, because its connections come from the address "
            "of the node. Use 'reach: pod' or 'reach: service'"
        )
    if not needs.network:
        yield "'policy' has no effect on workloads without a network. Remove it"
