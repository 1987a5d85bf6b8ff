"""The agent: starts processes, reads files and sets control groups on the other machine while we are connected."""

import contextlib
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import IO, Any

from weighbridge.errors import DiskFull, EnvironmentLost, Unavailable, UserlandError
from weighbridge.hosts.agent import frames, operations
from weighbridge.hosts.agent.sweep import RunOwner, guard, sweep
from weighbridge.linux.process import Process
from weighbridge.model.cleanup import Cleanup
from weighbridge.model.command import Command
from weighbridge.model.names import RunId, SafeName

SILENCE_S = 45.0
"""Seconds of silence after which the agent ends: a dead connection is not always reported."""
_GUARD_READY_S = 20.0


class _Terminated(BaseException):
    """SIGTERM arrived: the connection is lost, or a scheduler ends the job. No operation catches it."""


@dataclass
class Wire:
    """The agent's end of the connection; several threads write to it. ``lost`` is called when it breaks."""

    stream: IO[bytes]
    lost: Callable[[], object] = lambda: os.kill(os.getpid(), signal.SIGTERM)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def send(self, fields: Mapping[str, Any], data: bytes = b"") -> None:
        """Send one frame; call ``lost`` if the connection is broken. Raises OSError (EFBIG) for too long a frame."""
        frame = frames.pack(fields, data)
        try:
            with self._lock:
                self.stream.write(frame)
                self.stream.flush()
        except OSError:
            self.lost()


class Agent:
    """Reads requests and answers them. Only the main thread starts processes.

    A process that dies with its parent (PR_SET_PDEATHSIG) dies with the thread that started it, so that thread must
    stay. Another thread reads, so that the agent notices signs of life while the main thread is busy.
    """

    def __init__(self, wire: Wire, whose: RunOwner, warn: Callable[[bytes], None]) -> None:
        """``warn`` sends a line to the guard."""
        self._wire = wire
        self.operations = operations.Operations(whose, wire.send, warn)
        self._pool = ThreadPoolExecutor(32, thread_name_prefix="answer")
        self._requests: SimpleQueue[tuple[dict[str, Any], bytes] | None] = SimpleQueue()
        self._heard = time.monotonic()
        self._over = threading.Event()

    def serve(self, stream: IO[bytes]) -> None:
        """Answer requests until the end of the stream."""
        threading.Thread(target=self._read, args=(stream,), daemon=True, name="requests").start()
        threading.Thread(target=self._watch, daemon=True, name="silence").start()
        try:
            self._serve()
        finally:
            self._over.set()

    def _read(self, stream: IO[bytes]) -> None:
        try:
            with contextlib.suppress(OSError, ValueError):
                while (frame := frames.read(stream)) is not None:
                    self._heard = time.monotonic()
                    self._requests.put(frame)
        finally:
            self._requests.put(None)

    def _serve(self) -> None:
        for fields, data in iter(self._requests.get, None):
            name, number = str(fields.pop("do")), fields.pop("id", None)
            if number is None:
                continue  # only a sign of life
            operation = operations.TABLE[name]
            if name in operations.IN_ORDER:
                self._answer(number, operation, fields, data)
            else:
                self._pool.submit(self._answer, number, operation, fields, data)

    def _watch(self) -> None:
        while not self._over.wait(1):
            if time.monotonic() - self._heard > SILENCE_S:
                self._wire.lost()

    def _answer(
        self, number: int, operation: Callable[..., operations.Reply], fields: dict[str, Any], data: bytes
    ) -> None:
        failure: dict[str, Any]
        try:
            answer, out = operation(self.operations, data, **fields)
            self._wire.send({**answer, "id": number}, out)
        except OSError as error:  # including an answer that is too long for a frame
            failure = {"error": "OSError", "args": [error.errno, error.strerror, error.filename]}
        except (Unavailable, EnvironmentLost, DiskFull, UserlandError) as error:
            failure = {"error": type(error).__name__, "args": [str(error)]}
        except Exception as error:  # a bug is reported instead of ending the run on that host
            failure = {"error": "EnvironmentLost", "args": [f"the agent failed: {error!r}"]}
        else:
            return
        self._wire.send({**failure, "id": number})


def main(arguments: list[str], cleanups: Sequence[str], program: bytes) -> None:
    """Run ``agent RUN HOST MACHINE CONNECTION`` (MACHINE is the calling one) or ``guard RUN HOST SHARED``.

    ``resident`` is an agent whose machine ends with it: it needs neither a guard nor a cleanup.
    """
    role, run_id, name, where, connection = (*arguments, "")[:5]
    run, host = RunId(run_id), SafeName(name)
    kinds = [_make_cleanup(name) for name in cleanups]
    if role == "guard":
        guard(RunOwner(run, host, where == "1"), kinds)
        return
    whose = RunOwner(run, host, where == operations.machine())
    path = os.environ.get("PATH", os.defpath).split(":")  # a user's PATH often omits the folders of root's programs
    os.environ["PATH"] = ":".join([*path, *({"/usr/sbin", "/sbin"} - {*path})])
    os.environ.pop("LC_ALL", None)  # it was set for English messages of sudo
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # other output must not mix with the frames
    watcher = None if role == "resident" else _guarded(whose, program)
    stream.write(frames.MAGIC)
    wire = Wire(stream)
    wire.send(operations.hello(connection))
    agent = Agent(wire, whose, watcher.send if watcher else lambda _: None)
    with contextlib.suppress(_Terminated):
        signal.signal(signal.SIGTERM, _terminate)
        agent.serve(sys.stdin.buffer)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if watcher:
        failures = sweep(whose, agent.operations.membership, kinds)  # before the connection ends
        if failures:
            wire.send({"failures": failures})
        watcher.stop()
    os._exit(0)


def _terminate(*_: object) -> None:
    """End as at the end of the stream: if a scheduler ends a complete step, the guard might end too early."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Terminated


def _make_cleanup(name: str) -> Cleanup:
    module, _, kind = name.partition(":")
    cleanup: Cleanup = getattr(importlib.import_module(module), kind)()
    return cleanup


def _guarded(whose: RunOwner, program: bytes) -> Process:
    """Start a second process, which cleans up when this one ends, even if it is killed."""
    argv = (sys.executable or "python3", "-I", "-S", "-u", "-c", frames.BOOT)
    arguments = ("guard", whose.run, whose.host, str(int(whose.shared)))
    watcher = Process(Command((*argv, *arguments), stop_signal=signal.SIGKILL), hold=True)
    watcher.send(b"%d\n" % len(program) + program)
    deadline = time.monotonic() + _GUARD_READY_S
    while b"ready" not in watcher.output_so_far():
        if watcher.wait(0.01) or time.monotonic() > deadline:
            raise Unavailable(f"the process that watches the agent did not start: {watcher.stop().last_words}")
    return watcher
