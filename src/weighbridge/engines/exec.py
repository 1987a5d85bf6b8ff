"""A process inside a container, started through the engine's exec interface."""

import contextlib
import signal
import socket
import threading
import time
from typing import Any

from weighbridge.engines.client import engine_errors
from weighbridge.errors import EnvironmentLost
from weighbridge.model.command import Command, Completed
from weighbridge.model.site import Host
from weighbridge.process import GRACE_S

_STDERR = 2
_KILLED = 128 + signal.SIGKILL


class Exec:
    """A started ``docker exec``. Implements ``Running``."""

    def __init__(self, client: Any, host: Host, container: str, command: Command, env: dict[str, str]) -> None:
        """Start it in the container with this id, by the engine of a host."""
        self._api = client.api
        self._host = host
        self._container = container
        self._command = command
        self._streams: tuple[bytearray, bytearray] = (bytearray(), bytearray())
        self._done = threading.Event()
        self._completed: Completed | None = None
        with engine_errors(f"docker exec of {command.argv[0]}"):
            made = self._api.exec_create(
                container, list(command.argv), environment={**env, **command.env}, stdin=bool(command.stdin)
            )
            self._id: str = made["Id"]
            self._started = time.monotonic()
            self._ended = self._started
            self._socket = self._api.exec_start(self._id, socket=True)
        self._raw = getattr(self._socket, "_sock", self._socket)
        self._raw.settimeout(None)
        threading.Thread(target=self._read, daemon=True, name=f"exec {command.argv[0]}").start()
        if command.stdin:  # in a thread: where the program does not read it, nobody may wait for that
            threading.Thread(target=self._write, daemon=True, name=f"input of {command.argv[0]}").start()

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # the program ended, or was stopped, before it had read everything
            self._raw.sendall(self._command.stdin)
            self._raw.shutdown(socket.SHUT_WR)

    def _read(self) -> None:
        from docker.utils.socket import frames_iter

        with contextlib.suppress(OSError, ValueError):  # the engine went away: its silence is told by stop()
            for stream, data in frames_iter(self._socket, tty=False):  # type: ignore[no-untyped-call]
                self._streams[stream == _STDERR].extend(data)
        self._ended = time.monotonic()
        self._done.set()

    def poll(self) -> int | None:
        """Its return code, or None while it runs."""
        return _as_in_subprocess(self._inspect()["ExitCode"]) if self._done.is_set() else None

    def wait(self, timeout_s: float) -> bool:
        """Wait at most ``timeout_s`` seconds; True once its output has ended."""
        return self._done.wait(timeout_s)

    def stop(self, *, timed_out: bool = False) -> Completed:
        """End it and its group: its stop signal, then KILL after two seconds. EnvironmentLost: the engine is gone."""
        if self._completed is not None:
            return self._completed
        ended_by_us = not self._done.is_set()
        try:
            for number in (self._command.stop_signal, signal.SIGKILL):
                if not self._done.is_set():
                    self._signal(number)
                    self._done.wait(GRACE_S)
            self._signal(signal.SIGKILL)  # what the leader left behind
            state = self._inspect()
            if state["ExitCode"] == _KILLED and not ended_by_us:
                self._must_be_in_a_container()
        finally:
            with contextlib.suppress(OSError):
                self._raw.close()
                self._socket.close()
        code = _as_in_subprocess(state["ExitCode"])
        streams = [bytes(stream) for stream in self._streams]
        duration = self._ended - self._started
        self._completed = Completed(self._command.argv, code, streams[0], streams[1], duration, timed_out)
        return self._completed

    def _inspect(self) -> dict[str, Any]:
        with engine_errors(f"docker exec of {self._command.argv[0]}"):
            for _ in range(100):
                state: dict[str, Any] = self._api.exec_inspect(self._id)
                if not state["Running"]:
                    break
                time.sleep(0.002)
            return state

    def _must_be_in_a_container(self) -> None:
        with engine_errors(f"docker exec of {self._command.argv[0]}"):
            running = self._api.inspect_container(self._container)["State"]["Running"]
        if not running:
            raise EnvironmentLost(f"the container ended while {self._command.argv[0]} ran in it")

    def _signal(self, number: int) -> None:
        """Signal its process group: runc makes every exec the leader of a session."""
        with engine_errors(f"docker exec of {self._command.argv[0]}"):
            pid = int(self._api.exec_inspect(self._id)["Pid"])
        if not pid:
            return
        try:
            self._host.signal(pid, number)
        except PermissionError:
            self._signal_from_inside(pid, number)

    def _signal_from_inside(self, pid: int, number: int) -> None:
        try:
            status = self._host.read(f"/proc/{pid}/status").decode()
        except OSError:
            return
        inner = next(line.split()[-1] for line in status.splitlines() if line.startswith("NSpid:"))
        with engine_errors("docker exec of kill"):  # the shell's own kill: a userland need not have the program
            kill = ["sh", "-c", f"kill -{int(number)} -- -{inner}"]
            self._api.exec_start(self._api.exec_create(self._container, kill, user="root")["Id"])


def _as_in_subprocess(code: int | None) -> int:
    """Docker's 128 + n of a process that was ended by signal n as -n; -1 where the engine knows no code."""
    if code is None:
        return -1
    return 128 - code if 128 < code <= 128 + signal.NSIG else code
