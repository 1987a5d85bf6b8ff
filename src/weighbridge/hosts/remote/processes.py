"""Processes, sockets and control groups of a host with an agent, as the agent sees them."""

import itertools
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from weighbridge.hosts.remote.channel import ANSWER_S, REMOVE_S, Channel
from weighbridge.linux import cancellation
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import Limits

_numbers = itertools.count(1)


class RemoteStream:
    """The stream of a process or a socket, which the agent knows by its number. Implements ``Stream``."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._number = next(_numbers)
        self._pieces: SimpleQueue[bytes] = SimpleQueue()

    def send(self, data: bytes) -> None:
        self._channel.call("send", data, process=self._number)

    def receive(self, timeout_s: float | None = None) -> bytes:
        try:
            return self._pieces.get(timeout=timeout_s and max(0.0, timeout_s))
        except Empty:
            raise TimeoutError(f"no output within {timeout_s:g} s") from None

    def end(self) -> None:
        self._channel.call("end", process=self._number)


class RemoteProcess(RemoteStream):
    """A process that the agent started. The agent reports its end, so that waiting costs nothing there.

    An interactive one is a ``Stream``, too.
    """

    def __init__(self, channel: Channel, command: Command, *, hold: bool = False, talk: bool = False) -> None:
        """Start a process. Raises Unavailable if its program is not installed."""
        super().__init__(channel)
        self._command = command
        if talk:
            channel.on_output(self._number, self._pieces.put)
        self._ended = threading.Event()
        self._code: int | None = None
        self._completed: Completed | None = None
        channel.on_end(self._number, self._tell)
        self.pid: int = channel.call(
            "start",
            command.stdin,
            process=self._number,
            argv=list(command.argv),
            env=dict(command.env),
            stop_signal=int(command.stop_signal),
            hold=hold,
            talk=talk,
        ).fields["pid"]

    def _tell(self, code: int | None) -> None:
        self._code = code
        self._ended.set()

    def poll(self) -> int | None:
        if self._code is None:
            self._channel.check()
        return self._code

    def wait(self, timeout_s: float) -> bool:
        return cancellation.wait(self._ended, max(0.0, timeout_s)) and self.poll() is not None

    def output_so_far(self, start: int = 0) -> bytes:
        if self._completed:
            return self._completed.stdout[start:]
        return self._channel.call("output", process=self._number, start=start).data

    def stop(self, *, timed_out: bool = False) -> Completed:
        if self._completed is None:
            reply = self._channel.call("stop", process=self._number, timed_out=timed_out)
            split = reply.fields["split"]
            self._completed = Completed(
                self._command.argv,
                reply.fields["code"],
                reply.data[:split],
                reply.data[split:],
                reply.fields["duration"],
                timed_out,
            )
        return self._completed


class RemoteSocket(RemoteStream):
    """A connection of the agent to a socket of the host."""

    def __init__(self, channel: Channel, path: str) -> None:
        """Connect to a socket. Raises OSError if no process listens there."""
        super().__init__(channel)
        channel.on_output(self._number, self._pieces.put)
        try:
            channel.call("connect", process=self._number, path=path)
        except BaseException:
            channel.forget_output(self._number)
            raise

    def close(self) -> None:
        self._channel.call("hang_up", process=self._number)


class RemoteGroup:
    """A control group on the host. Implements ``Group``."""

    def __init__(self, channel: Channel, name: str) -> None:
        """Make a control group. Raises Unavailable without permission."""
        self._channel = channel
        self._name = name
        fields = channel.call("group", name=name).fields
        self._procs = [Path(path) for path in fields["procs"]]
        self._scope: dict[str, str] = fields["scope"]

    @property
    def procs(self) -> list[Path]:
        """Return the files on the host into which a process writes 0 to join the group."""
        return self._procs

    @property
    def everywhere(self) -> list[Path]:
        """Return ``procs`` in every hierarchy, made now."""
        return [Path(path) for path in list(self._do("everywhere"))]

    def scope(self) -> dict[str, str]:
        return self._scope

    def _do(self, verb: str, timeout_s: float = ANSWER_S) -> Any:
        return self._channel.call("group_do", timeout_s=timeout_s, name=self._name, verb=verb).fields["value"]

    def limit(self, limits: Limits) -> dict[str, str]:
        reply = self._channel.call("group_do", name=self._name, verb="limit", limits=asdict(limits))
        return {str(limit): str(reason) for limit, reason in dict(reply.fields["value"]).items()}

    def freeze(self) -> None:
        self._do("freeze")

    def thaw(self) -> None:
        self._do("thaw")

    def exempt_file_servers(self) -> None:
        self._do("exempt_file_servers")

    def meters(self) -> Mapping[str, float]:
        meters = self._do("meters")
        return meters if isinstance(meters, dict) else {}

    def kill(self) -> None:
        self._do("kill")

    def remove(self) -> bool:
        return bool(self._do("remove", REMOVE_S))
