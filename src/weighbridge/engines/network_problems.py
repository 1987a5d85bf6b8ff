"""Messages about networks that several environments share, and about the bridge of virtual machines."""

from typing import Any

from weighbridge.model.environment import Needs

NO_NETWORK = "network: none cannot carry this workload: choose another network"
LOOPBACK_IS_HERE = "'publish_on: loopback' cannot be reached from another host: use publish_on: gateway"
PUBLISHED_ONE_WAY, FORWARDED_ONE_WAY = (
    f"this workload needs connections in both directions, but a {port} port only carries connections to the server"
    for port in ("published", "forwarded")
)


def needs_bridge(option: str, network: str) -> str:
    """Return why an option does not work with this network."""
    return f"'{option}' needs network: bridge, not {network}"


def apart_from_client(needs: Needs) -> list[str]:
    """Return why an outside client cannot reach an engine on its own host, which hosts of the run give it."""
    disposable_kinds = [kind for kind, host in needs.holding.items() if host.disposable]
    if not disposable_kinds or needs.separate_hosts or {"server", "client"} <= needs.inside:
        return []
    text = f"on a {disposable_kinds[0]} host its engine runs on a separate host that outside clients cannot reach"
    return [f"{text}: put both roles inside, or the client on another host"]


def server_out_of_reach(needs: Needs) -> list[str]:
    """Return why a client on a bridge and a server outside cannot reach each other."""
    if "server" in needs.inside or "client" not in needs.inside:
        return []
    if needs.separate_hosts:
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
    """Return why kernel settings would change the host, because the container has the host's network."""
    of_network = sorted(name for name in needs.sysctls if name.startswith("net."))
    if own_network or not of_network:
        return []
    return [f"sysctls: with network: host, {of_network[0]} would change the host: use another network, or remove it"]


def attach_problems(options: Any, needs: Needs, hosts: str = "testbed hosts") -> list[str]:
    """Return why the interface of a host cannot be a port of a bridge there; it can be on ``hosts``."""
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
    """Return why a machine with these options (``network``, ``attach``) does not reach what a study needs.

    Its bridge can be attached to a network on ``hosts``; ``otherwise`` is another way to reach another host.
    """
    problems = []
    if needs.network and options.network == "none":
        problems.append(NO_NETWORK)
    if needs.network and options.network == "bridge" and needs.separate_hosts and not options.attach:
        problems.append(f"its bridge cannot be reached from another host: attach: interface{otherwise}")
    return [*problems, *attach_problems(options, needs, hosts)]
