"""The cleanup on the other machine when the agent ends in any way: nothing of the run remains there."""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from weighbridge.engines import engine_socket
from weighbridge.errors import Unavailable
from weighbridge.hosts.agent.userlands import data_folder_of, remove_parts
from weighbridge.linux.deletion import OwnFolder, remove_tree
from weighbridge.model.cleanup import Cleanup, OrphanedRun, discard, group_of_host, noting_failure
from weighbridge.model.host import SWARM_BRIDGE
from weighbridge.model.names import GroupName, RunId, SafeName

_REMOVE_S = 5.0
_OTHERS_S = 6.0


@dataclass(frozen=True)
class Membership:
    """An engine's membership of a swarm, which ends with the agent.

    ``node`` is the engine's number in the swarm, "" while it joins. ``made_bridge``: it had no docker_gwbridge
    before.
    """

    node: str
    made_bridge: bool


def end(membership: Membership) -> None:
    """Leave the swarm if the engine is still the member that the run made; do nothing if no engine answers."""
    with contextlib.suppress(Unavailable, OSError):
        path = engine_socket.find()
        if membership.node and _node(path) not in ("", membership.node):
            return  # it is now in another swarm, which is not ours
        with contextlib.suppress(OSError):  # only managers can list nodes
            _let_others_leave(path)
        with contextlib.suppress(OSError):  # it is no longer a member; this waits for a running join
            engine_socket.ask(path, "POST", "/swarm/leave?force=1")
        if membership.made_bridge:
            _remove_bridge(path)


def _node(path: str) -> str:
    return str((engine_socket.ask(path, "GET", "/info").get("Swarm") or {}).get("NodeID") or "")


def _let_others_leave(path: str) -> None:
    """Wait for the workers to leave a manager's swarm: their agents end at the same moment as its own.

    A worker that leaves while its only peer ends keeps port 7946 ("timeout waiting for leave broadcast" in the log of
    engine 20.10), and cannot join a swarm again until it is restarted.
    """
    this_node = _node(path)
    deadline = time.monotonic() + _OTHERS_S
    while time.monotonic() < deadline:
        nodes = engine_socket.ask(path, "GET", "/nodes")
        if not any(node["Status"]["State"] == "ready" for node in nodes if node["ID"] != this_node):
            return
        time.sleep(0.2)


def _remove_bridge(path: str) -> None:
    deadline = time.monotonic() + _REMOVE_S
    while any(network["Name"] == SWARM_BRIDGE for network in engine_socket.ask(path, "GET", "/networks")):
        with contextlib.suppress(OSError):
            engine_socket.ask(path, "DELETE", f"/networks/{SWARM_BRIDGE}")
            return
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)


@dataclass(frozen=True)
class RunOwner:
    """The owner of resources on a machine: the run ``run`` on the host ``host``.

    ``shared``: the machine is also another host of the run, so the run's id is not sufficient.
    """

    run: RunId
    host: SafeName
    shared: bool

    @property
    def group(self) -> GroupName:
        """Return the name of the owner's control group."""
        return group_of_host(self.run, self.host)

    @property
    def folder_name(self) -> SafeName:
        """Return the common part of the names of the owner's folders."""
        return SafeName(f"{self.run}-{self.host}")

    @property
    def socket_folder(self) -> Path:
        """Return the folder of the socket through which root's agent gives the user access to the engine."""
        return Path(f"/run/weighbridge-{self.folder_name}")


def sweep(whose: RunOwner, member: Membership | None, kinds: Sequence[Cleanup]) -> list[str]:
    """End and remove everything of the run here: orphaned resources of all kinds, and the agent's own resources.

    The latter are the membership of a swarm, half-received root filesystems and sockets. Return a sentence for each
    step that failed.
    """
    folder = whose.socket_folder
    with contextlib.suppress(Unavailable):  # a user without a cache has no resources there
        folder = data_folder_of(whose.folder_name)
    root = os.geteuid() == 0  # processes in its containers can belong to any user
    run = OrphanedRun(whose.run, whose.socket_folder, folder, whose.host if whose.shared else "", of_all_users=root)
    failures = discard(run, kinds)
    if member is not None:
        with noting_failure(failures, "the engine cannot leave its swarm"):
            end(member)
    with noting_failure(failures, "half-received root filesystems cannot be removed"):
        remove_parts(whose.folder_name)
    with noting_failure(failures, "the folder of sockets cannot be removed"):
        remove_tree(OwnFolder.at(whose.socket_folder))
    return failures


def encode_membership(member: Membership | None) -> bytes:
    """Return the line that tells the guard about a membership."""
    return json.dumps(member and asdict(member)).encode() + b"\n"


def decode_membership(line: bytes) -> Membership | None:
    """Return the membership in such a line. Raises ValueError if it is incomplete."""
    fields = json.loads(line)
    return Membership(**fields) if fields else None


def guard(whose: RunOwner, kinds: Sequence[Cleanup]) -> None:
    """Wait until the agent has ended, which closes our standard input; then clean up.

    Each input line sets the swarm membership to end.
    """
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    member = None
    for line in sys.stdin.buffer:
        with contextlib.suppress(ValueError):  # the agent was killed while writing, before it joined
            member = decode_membership(line)
    sweep(whose, member, kinds)
