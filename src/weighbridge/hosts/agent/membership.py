"""Ends the membership of a swarm that the run gave to the machine's Docker engine: no label tells it on a worker."""

import contextlib
import time
from dataclasses import dataclass

from weighbridge.engines import engine_socket as engine
from weighbridge.errors import Unavailable
from weighbridge.model.host import SWARM_BRIDGE

_REMOVE_S = 5.0
_OTHERS_S = 6.0


@dataclass(frozen=True)
class Membership:
    """What is to be undone when the agent ends.

    ``node`` is the engine's number in the swarm, "" while it becomes a member. ``made_bridge``: it had no
    docker_gwbridge before.
    """

    node: str
    made_bridge: bool


def end(membership: Membership) -> None:
    """Leave the swarm, where the engine is still the member of it that the run made; nothing where none answers."""
    with contextlib.suppress(Unavailable, OSError):
        path = engine.find()
        if membership.node and _node(path) not in ("", membership.node):
            return  # of another swarm by now, which is not ours
        with contextlib.suppress(OSError):  # a worker is not told
            _let_others_leave(path)
        with contextlib.suppress(OSError):  # it is a member no more. A join that is under way is waited for by it
            engine.ask(path, "POST", "/swarm/leave?force=1")
        if membership.made_bridge:
            _remove_bridge(path)


def _node(path: str) -> str:
    return str((engine.ask(path, "GET", "/info").get("Swarm") or {}).get("NodeID") or "")


def _let_others_leave(path: str) -> None:
    """A manager goes last, as the workers' agents end at the same moment as its own.

    A worker that takes its leave while its only peer goes keeps port 7946 ("timeout waiting for leave broadcast" in
    the log of engine 20.10), and can be in no swarm again until it is restarted.
    """
    own = _node(path)
    deadline = time.monotonic() + _OTHERS_S
    while time.monotonic() < deadline:
        nodes = engine.ask(path, "GET", "/nodes")
        if not any(node["Status"]["State"] == "ready" for node in nodes if node["ID"] != own):
            return
        time.sleep(0.2)


def _remove_bridge(path: str) -> None:
    """Its last endpoint is the swarm's own, which goes a moment after the swarm."""
    deadline = time.monotonic() + _REMOVE_S
    while any(network["Name"] == SWARM_BRIDGE for network in engine.ask(path, "GET", "/networks")):
        with contextlib.suppress(OSError):
            engine.ask(path, "DELETE", f"/networks/{SWARM_BRIDGE}")
            return
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)
