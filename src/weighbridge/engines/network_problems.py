"""What networks of several environments, and the bridge of virtual machines, do not reach: each said in one way."""

from typing import Any

from weighbridge.model.environment import Needs

NO_NETWORK = "network: none cannot carry this workload: choose another network"
LOOPBACK_IS_HERE = "'publish_on: loopback' cannot be reached from another host: use publish_on: gateway"
ONE_WAY = (
    "this workload needs connections in both directions, but a published port only carries connections to the server"
)


def needs_bridge(option: str, network: str) -> str:
    """An option that is given with a network that has no use for it."""
    return f"'{option}' needs network: bridge, not {network}"


def apart_from_client(needs: Needs) -> list[str]:
    """Why a client outside does not reach an engine that gets a host of its own, as on hosts made for the run."""
    disposable_kinds = [kind for kind, host in needs.holding.items() if host.disposable]
    if not disposable_kinds or needs.apart or {"server", "client"} <= needs.inside:
        return []
    text = f"on a {disposable_kinds[0]} host its engine runs on a separate host that outside clients cannot reach"
    return [f"{text}: put both roles inside, or the client on another host"]


def server_out_of_reach(needs: Needs) -> list[str]:
    """Why a client on a bridge does not reach a server outside, or is not reached by it."""
    if "server" in needs.inside or "client" not in needs.inside:
        return []
    if needs.apart:
        calls = (
            "the server of this workload also connects to its client, and a bridge does not allow that from "
            "another host"
        )
        return [calls] if needs.server_calls_client else []
    return [
        "a server outside listens on the loopback interface, which containers on a bridge cannot reach: put it on "
        "another host"
    ]


def sysctl_problems(needs: Needs, *, own_network: bool) -> list[str]:
    """Why settings of the kernel cannot be a container's own: its network is the host's."""
    of_network = sorted(name for name in needs.sysctls if name.startswith("net."))
    if own_network or not of_network:
        return []
    return [f"sysctls: with network: host, {of_network[0]} would change the host: use another network, or remove it"]


def attach_problems(options: Any, needs: Needs, hosts: str = "testbed hosts") -> list[str]:
    """Why a bridge cannot have the interface of its host as a port ; ``hosts``: on which it can."""
    if not options.attach:
        return []
    if options.network != "bridge":
        return [needs_bridge("attach", options.network)]
    used = [kind for kind, host in needs.holding.items() if not host.disposable]
    if not used:
        return []
    text = "attach: interface takes over the address of the host's interface, which other programs use on a"
    return [f"{text} {' and a '.join(used)} host: put both roles on {hosts}, or remove 'attach'"]


def network_problems(options: Any, needs: Needs, *, hosts: str, otherwise: str = "") -> list[str]:
    """Why a machine with these options (``network``, ``attach``) does not reach what a study needs.

    ``hosts``: those on which its bridge is attached to a network; ``otherwise``: what else reaches another host.
    """
    problems = []
    if needs.network and options.network == "none":
        problems.append(NO_NETWORK)
    if needs.network and options.network == "bridge" and needs.apart and not options.attach:
        problems.append(f"its bridge cannot be reached from another host: attach: interface{otherwise}")
    return [*problems, *attach_problems(options, needs, hosts)]
