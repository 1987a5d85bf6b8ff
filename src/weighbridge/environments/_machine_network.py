"""What the bridge of virtual machines does not reach, whichever their hypervisor is."""

from typing import Any

from weighbridge.environments._network_problems import NO_NETWORK, attach_problems
from weighbridge.model.environment import Needs


def network_problems(options: Any, needs: Needs, *, hosts: str, otherwise: str = "") -> list[str]:
    """Why a machine with these options (``network``, ``attach``) does not reach what a study needs.

    ``hosts``: those on which its bridge is attached to a network; ``otherwise``: what else reaches another host.
    """
    found = []
    if needs.network and options.network == "none":
        found.append(NO_NETWORK)
    if needs.network and options.network == "bridge" and needs.apart and not options.attach:
        found.append(f"its bridge cannot be reached from another host: attach: interface{otherwise}")
    return [*found, *attach_problems(options, needs, hosts)]
