"""Refuses options of a Podman environment that cannot work on any machine."""

from collections.abc import Iterator
from typing import Any

from weighbridge.engines import runtimes
from weighbridge.engines.network_problems import (
    LOOPBACK_IS_HERE,
    NO_NETWORK,
    PUBLISHED_ONE_WAY,
    apart_from_client,
    server_out_of_reach,
    sysctl_problems,
)
from weighbridge.model.environment import Needs

IN_USER_SPACE = ("slirp4netns", "pasta")
"""The networks of rootless containers: a process of the user's carries every packet."""


def problems(options: Any, needs: Needs) -> Iterator[str]:
    """Yield a sentence for each combination that cannot work, and for each network that is not sufficient."""
    network = options.joined
    if options.rootless and network == "bridge":
        yield "network: bridge needs root. With rootless: true use slirp4netns, pasta, host or none"
    if options.rootless and options.user_namespace:
        yield (
            "'user_namespace' is for root's containers, because rootless containers always have a user namespace. "
            "Remove it"
        )
    if options.rootless and options.pids_limit is not None:
        yield (
            "'pids_limit' needs root's containers, because podman limits their control group. Remove it, or remove "
            "rootless: true"
        )
    if not options.rootless and network in IN_USER_SPACE:
        yield f"network: {network} needs rootless containers. Add rootless: true, or use bridge"
    if runtimes.is_gvisor(options.runtime):
        yield "runtime: Weighbridge supports gVisor in Docker only. Use kind: docker"
    if options.publish and network in ("none", "host"):
        yield f"'publish' needs network: bridge, slirp4netns or pasta, not {network}"
    if options.publish_on == "loopback" and not (options.publish and network == "bridge"):
        yield "'publish_on' needs network: bridge and publish: true"
    if far := [kind for kind, host in needs.hosts.items() if not host.here]:
        yield (
            f"podman does not work on hosts of kind {' and '.join(far)}. Use this machine, or hosts that are "
            "created on it"
        )
    yield from sysctl_problems(needs, own_network=network != "host")
    if needs.network:
        yield from _out_of_reach(options, needs)


def _out_of_reach(options: Any, needs: Needs) -> Iterator[str]:
    network, both = options.joined, {"server", "client"} <= needs.inside
    if network == "none":
        yield NO_NETWORK
    else:
        yield from apart_from_client(needs)
    if network in IN_USER_SPACE and "server" in needs.inside and not options.publish:
        yield (
            f"network: {network} can be reached only through published ports. Add publish: true (weigh: --in "
            "podman-published)"
        )
    if network in IN_USER_SPACE and both and not needs.separate_hosts:
        yield f"network: {network} does not connect two containers on one host. Put one role outside"
    if network == "bridge":
        yield from server_out_of_reach(needs)
    if needs.separate_hosts and "server" in needs.inside and network == "bridge" and not options.publish:
        yield "a bridge cannot be reached from another host. Add publish: true"
    if needs.separate_hosts and network == "pasta":
        yield "network: pasta needs its client on the same host. Use slirp4netns"
    if needs.separate_hosts and options.publish_on == "loopback":
        yield LOOPBACK_IS_HERE
    if needs.server_calls_client and (options.publish or network in IN_USER_SPACE):
        yield PUBLISHED_ONE_WAY
