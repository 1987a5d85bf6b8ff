"""What is done on the other machine when the agent ends, however it ends: nothing of the run survives there."""

import contextlib
import json
import os
import shutil
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.hosts.agent import containers, data
from weighbridge.hosts.agent.membership import Membership, end
from weighbridge.hosts.agent.userlands import remove_parts
from weighbridge.linux import cgroups, links
from weighbridge.linux.cgroup_files import TOP
from weighbridge.linux.delegation import trees
from weighbridge.linux.process import run_of

HOST_VARIABLE = "WEIGHBRIDGE_HOST"
"""In the environment of everything that an agent starts, beside the run's id."""
_SWEEP_S = 10.0


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
        return f"{self.run}/ssh-{self.host}"

    @property
    def folder_name(self) -> str:
        """What the names of its folders have in them."""
        return f"{self.run}-{self.host}"

    @property
    def socket_folder(self) -> Path:
        """The folder of the socket by which root's agent lends the engine to the user."""
        return Path(f"/run/weighbridge-{self.folder_name}")


def sweep(whose: Owner, member: Membership | None) -> None:
    """End every process and remove every control group of the run here, half-received userlands and sockets.

    What it left in the engine goes too, and the membership of a swarm that it made.
    """
    for tree in trees():
        with contextlib.suppress(Unavailable, OSError):
            group = cgroups.Cgroup(whose.group, mount=tree)
            group.kill()
            _end_marked(whose)
            group.remove()
            for base in cgroups.hierarchies(tree):
                for folder in (base / TOP / whose.run, base / TOP):
                    with contextlib.suppress(OSError):
                        folder.rmdir()
    _end_marked(whose)
    if not whose.shared:  # else the engine is the other host's too
        containers.discard(whose.run)
        links.remove_all(whose.run)
    if member is not None:
        end(member)
    remove_parts(whose.folder_name)
    data.remove_all(whose.folder_name)
    shutil.rmtree(whose.socket_folder, ignore_errors=True)


def _end_marked(whose: Owner) -> None:
    deadline = time.monotonic() + _SWEEP_S
    while (pids := marked(whose)) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def marked(whose: Owner, proc: Path = Path("/proc")) -> list[int]:
    """The processes of the run, containers' too where we are root; on a shared machine those that name the host."""
    name = f"{HOST_VARIABLE}={whose.host}".encode()
    found = []
    for process in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # another user's, or it has ended
            mine = run_of(process) == whose.run and int(process.name) != os.getpid()
            if mine and (not whose.shared or name in (process / "environ").read_bytes().split(b"\0")):
                found.append(int(process.name))
    return found


def encode_membership(member: Membership | None) -> bytes:
    """The line by which the guard is told."""
    return json.dumps(member and asdict(member)).encode() + b"\n"


def decode_membership(line: bytes) -> Membership | None:
    """What such a line says. ValueError where it is not whole."""
    fields = json.loads(line)
    return Membership(**fields) if fields else None


def guard(whose: Owner) -> None:
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
    sweep(whose, member)
