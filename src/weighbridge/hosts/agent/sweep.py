"""What is done on the other machine when the agent ends, however it ends: nothing of the run survives there."""

import contextlib
import json
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.hosts.agent import data
from weighbridge.hosts.agent.membership import Membership, end
from weighbridge.hosts.agent.userlands import remove_parts
from weighbridge.model.leavings import DeadRun, Leavings, discard, group_of_host


@dataclass(frozen=True)
class Owner:
    """Who owns things on a machine: the run ``run`` on the host ``host``.

    ``shared``: the machine is also another host of the run, so that the run's id alone does not tell.
    """

    run: str
    host: str
    shared: bool

    @property
    def group(self) -> str:
        """The name of its control group."""
        return group_of_host(self.run, self.host)

    @property
    def folder_name(self) -> str:
        """What the names of its folders have in them."""
        return f"{self.run}-{self.host}"

    @property
    def socket_folder(self) -> Path:
        """The folder of the socket by which root's agent lends the engine to the user."""
        return Path(f"/run/weighbridge-{self.folder_name}")


def sweep(whose: Owner, member: Membership | None, kinds: Sequence[Leavings]) -> None:
    """End and remove everything of the run here: what of each kind plug-ins make, and what the agent made itself.

    That is the membership of a swarm, half-received userlands and sockets.
    """
    folder = whose.socket_folder / "data"
    with contextlib.suppress(Unavailable):  # a user without a cache: nothing was made there either
        folder = data.folder_of(whose.folder_name)
    discard(DeadRun(whose.run, whose.socket_folder, folder, whose.host if whose.shared else ""), kinds)
    if member is not None:
        end(member)
    remove_parts(whose.folder_name)
    shutil.rmtree(whose.socket_folder, ignore_errors=True)


def encode_membership(member: Membership | None) -> bytes:
    """The line by which the guard is told."""
    return json.dumps(member and asdict(member)).encode() + b"\n"


def decode_membership(line: bytes) -> Membership | None:
    """What such a line says. ValueError where it is not whole."""
    fields = json.loads(line)
    return Membership(**fields) if fields else None


def guard(whose: Owner, kinds: Sequence[Leavings]) -> None:
    """Wait until the agent has ended, which is when our standard input ends; then sweep.

    Each line of it tells the membership of a swarm that would be ended then.
    """
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    member = None
    for line in sys.stdin.buffer:
        with contextlib.suppress(ValueError):  # the agent was killed within the line: nothing was done by it yet
            member = decode_membership(line)
    sweep(whose, member, kinds)
