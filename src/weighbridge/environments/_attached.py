"""What keeps a bridge from having the interface of its host as a port (``attach: interface``)."""

from typing import Any

from weighbridge.model.plugin import Needs


def attach_problems(options: Any, needs: Needs, hosts: str = "testbed hosts") -> list[str]:
    """Why ``attach`` cannot be had with these options (``network``, ``attach``); ``hosts``: those that have it."""
    if not options.attach:
        return []
    if options.network != "bridge":
        return [f"'attach' needs network: bridge, not {options.network}"]
    used = [kind for kind, host in needs.hosts.items() if not host.secluded]
    if not used:
        return []
    text = "attach: interface takes the address of a host's interface, which other programs need on a"
    return [f"{text} {' and a '.join(used)} host: put both roles on {hosts}, or leave 'attach' out"]
