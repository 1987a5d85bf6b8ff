"""Hosts with our agent, whatever carries its stream: an ssh machine, a guest."""

import contextlib
import platform
import zlib
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.hosts.remote.channel import REMOVE_S, AgentReply, Channel
from weighbridge.hosts.remote.processes import RemoteGroup, RemoteProcess
from weighbridge.hosts.remote.start import clock_offset
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import ClockOffset, Group, RunContext
from weighbridge.model.isolation import Layers
from weighbridge.model.names import SafeName
from weighbridge.model.once import Once
from weighbridge.model.userland import Userland

_PIECE = 2**20
_UNDERWAY = 8
_UNPACK_S = 1800.0
_FACTS_S = 300.0
"""The seconds for facts: programs report their versions, and an emulated machine is slow."""


class AgentHost:
    """A host with our agent: the part of ``Host`` that does not depend on how it is reached.

    The agent runs while the connection lasts; when it ends in any way, everything of the run there ends too. Only
    root filesystems and the launcher remain there.
    """

    this_machine = False
    python = "python3"
    cpuset: str | None = None
    layers: Layers = ()

    def __init__(
        self, name: str, run: RunContext, hello: Mapping[str, Any], channel: Channel, place: tuple[str, str]
    ) -> None:
        """``place`` is its address and its interface."""
        self.name = name
        self.machine = f"host {name}"
        self.network = (self.machine, "/proc/self/net/dev")
        self.root = bool(hello["root"])
        self.pid = int(hello["pid"])
        """The agent's process number on the host."""
        self.address, self.interface = place
        self._run = run
        self._hello = hello
        self._channel = channel
        self._roots = Once()
        self._programs = Once()

    def run(self, command: Command) -> Completed:
        process = self.start(command)
        ended = False
        try:
            ended = process.wait(command.deadline_s)
        finally:
            completed = process.stop(timed_out=not ended)
        return completed

    def start(self, command: Command, *, hold: bool = False) -> RemoteProcess:
        return RemoteProcess(self._channel, command, hold=hold)

    def talk(self, command: Command) -> tuple[RemoteProcess, RemoteProcess]:
        process = RemoteProcess(self._channel, command, talk=True)
        return process, process

    def program(self, program: Path) -> str:
        """Return a program's path on the host; it is sent at first use, in pieces, and stored under its digest."""
        return self._programs.get(program, lambda: self._send(program))

    def _send(self, program: Path) -> str:
        content = program.read_bytes()
        digest, sent = sha256(content).hexdigest(), zlib.compress(content)
        for start in range(0, len(sent), _PIECE):
            piece, unfinished = sent[start : start + _PIECE], start + _PIECE < len(sent)
            fields = {"name": program.name, "digest": digest, "unfinished": unfinished}
            reply = self._channel.call("program", piece, timeout_s=_UNPACK_S, **fields)
        return str(reply.fields["path"])

    def read(self, path: str) -> bytes:
        return self._channel.call("read", path=path).data

    def namespaces(self) -> Mapping[str, int]:
        """Return the numbers of the agent's namespaces, by kind."""
        namespaces: dict[str, int] = self._channel.call("namespaces").fields["value"]
        return namespaces

    def meters_of(self, pid: int) -> Mapping[str, float]:
        meters: dict[str, float] = self._channel.call("meters_of", pid=pid).fields["value"]
        return meters

    def scope_of(self, pid: int) -> Mapping[str, str]:
        scope: dict[str, str] = self._channel.call("scope_of", pid=pid).fields["value"]
        return scope

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to a process group of the host. Raises PermissionError if it belongs to another user."""
        self._channel.call("signal", pid=pid, number=int(number))

    def group(self, name: str) -> Group:
        """Make the control group ``weighbridge/RUN/ssh-HOST/NAME`` there. Raises Unavailable without permission."""
        return RemoteGroup(self._channel, name)

    def cpus_online(self) -> list[int]:
        return [int(cpu) for cpu in self._hello["cpus"]]

    def free_ports(self, taken: Collection[int] = ()) -> int:
        return int(self._channel.call("free_port", taken=sorted(taken)).fields["value"])

    def userland(self, userland: Userland) -> Path:
        """Return the root filesystem's folder there; it is sent, checked and unpacked once, and stored by digest.

        Raises Unavailable if the machine has another architecture, DiskFull if it has no space.
        """
        return self._roots.get(userland.digest, lambda: self._unpacked(userland))

    def _unpacked(self, userland: Userland) -> Path:
        theirs = self._hello["architecture"]
        if theirs != platform.machine():
            raise Unavailable(
                f"host {self.name} is {theirs}, but the root filesystem was built for {platform.machine()}: run "
                f"Weighbridge on a {theirs} machine"
            )
        root = self._channel.call("userland", digest=userland.digest).fields["root"]
        return Path(root) if root else self._bring(userland)

    def _bring(self, userland: Userland) -> Path:
        size = userland.archive().stat().st_size
        underway: deque[AgentReply] = deque()
        deflate, sent, announced_tenths = zlib.compressobj(1), 0, -1
        with userland.archive().open("rb") as tar:
            while piece := tar.read(_PIECE):
                underway.append(self._channel.ask("userland_piece", deflate.compress(piece)))
                if len(underway) > _UNDERWAY:
                    self._channel.answer(underway.popleft())
                sent += len(piece)
                if (tenths := 10 * sent // size) != announced_tenths:
                    announced_tenths = tenths
                    self._run.say(
                        f"sending the root filesystem to host {self.name} (needed only once): {10 * tenths}%"
                    )
        underway.append(self._channel.ask("userland_piece", deflate.flush()))
        for reply in underway:
            self._channel.answer(reply)
        self._run.say(f"unpacking the root filesystem on host {self.name}")
        return Path(self._channel.call("userland_finish", timeout_s=_UNPACK_S).fields["root"])

    @contextmanager
    def data_folder(self, run: RunContext, name: SafeName) -> Iterator[Path]:
        """Yield an empty folder on the host's disk; the agent removes it however we end."""
        folder = Path(self._channel.call("data_folder", name=name).fields["path"])
        try:
            yield folder
        finally:
            with contextlib.suppress(EnvironmentLost):
                self._channel.call("discard_data", timeout_s=REMOVE_S, name=name)

    def facts(self) -> Mapping[str, str]:
        """Return the host's fingerprint, as for this machine, with its address and its Python."""
        facts: dict[str, str] = self._channel.call("facts", timeout_s=_FACTS_S).fields["value"]
        return {
            **{key: value for key, value in facts.items() if value},
            "address": self.address,
            "network interface": self.interface,
            "python3": str(self._hello["python"]),
        }

    def clock(self) -> ClockOffset:
        """Return the offset of the host's clock from this machine's."""
        return clock_offset(self._channel)
