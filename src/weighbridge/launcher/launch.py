"""The local end of the stream to a site's launcher: starts, times and ends programs; files and listeners."""

import contextlib
import errno
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Self

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.launcher import frames
from weighbridge.launcher.frames import Frame, Kind
from weighbridge.linux import cancellation
from weighbridge.linux.process import GRACE_S
from weighbridge.model.command import Command, Completed, Stream, Transport
from weighbridge.model.sampling import SampledFile, Samples
from weighbridge.model.text import one_line
from weighbridge.secret_values import revealed

READY_S = 20.0
ANSWER_S = 60.0
"""Seconds without an answer after which the site counts as lost."""
_TOGETHER_S = 0.2
"""Seconds within which a launcher ends if everything in its site is killed."""
_NOT_STARTED = 127
_WAYS = 5
_PIECE = 2**18
_LINE, _TOLD = 1000, 60
"""The bytes to read, and the characters to print, of a line that is not a greeting."""


class AwaitedFrame:
    """The future frame that answers a request; None once the launcher is lost."""

    def __init__(self) -> None:
        self.arrival = threading.Event()
        self.frame: Frame | None = None
        self.arrived_at = 0.0
        """The time of arrival, by `time.monotonic`."""

    def give(self, frame: Frame | None) -> None:
        """Set the answer, and wake the waiting thread."""
        self.frame, self.arrived_at = frame, time.monotonic()
        self.arrival.set()


class SendWindow:
    """The bytes on the way over a line without flow control, at most ``size``."""

    def __init__(self, size: int) -> None:
        self._free = self._size = size
        self._changed = threading.Condition()

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield the data in pieces, each once the line has room for it. Raises OSError once it is closed."""
        while data:
            with self._changed:
                if not self._changed.wait_for(lambda: self._free, ANSWER_S) or self._free > self._size:
                    raise OSError(errno.EPIPE, os.strerror(errno.EPIPE))
                length = min(self._free, len(data))
                self._free -= length
            yield data[:length]
            data = data[length:]

    def free(self, taken: int) -> None:
        """Note that the other end has taken bytes from the line."""
        with self._changed:
            self._free += taken
            self._changed.notify()

    def close(self) -> None:
        """Refuse all further data."""
        self.free(2 * self._size)


class Launcher:
    """The launcher of one site. All methods raise EnvironmentLost at once when it is gone.

    ``pid`` is its process number inside the site, ``open_files`` the limit of a process.
    """

    def __init__(
        self,
        stream: Stream,
        name: str,
        why: Callable[[], str],
        env: Mapping[str, str],
        ready_s: float = READY_S,
        disconnected_s: Callable[[], float] = lambda: 0.0,
        window: int = 0,
        starter: str = "the program that starts its launcher",
    ) -> None:
        """Wait for its greeting. ``why`` returns the reason when it is gone; ``env`` are variables of every program.

        ``starter`` names the program that has the launcher's standard output before the launcher runs.
        ``disconnected_s`` returns the total seconds without a connection. ``window`` is the number of bytes that a
        line without flow control holds, 0 for other streams; the launcher then has the option ``--taken``. Raises
        Unavailable if the site cannot be made.
        """
        self.name = name
        self.reports_use = True
        """Whether its kernel reports the real resource use of programs; False for gVisor."""
        self.closed = threading.Event()
        self.disconnected_s = disconnected_s
        self._stream = stream
        self._why = why
        self._env = env
        self._numbers = itertools.count(1)
        self._waiting: dict[tuple[int, Kind], AwaitedFrame] = {}
        self._sending = threading.Lock()
        self._window = SendWindow(window) if window else None
        self._heard = 0.0
        self._alone = False
        """Whether its last result said that no process is left, and it has started none since."""
        self._sampled = 0
        self._no_greeting = b""
        """The first line that arrived, if it is not a greeting."""
        greeting = self.expect(0, Kind.HELLO)
        threading.Thread(target=self._read, daemon=True, name=f"site {name}").start()
        if not cancellation.wait(greeting.arrival, ready_s) or greeting.frame is None:
            self.close()
            if printed := one_line(self._no_greeting.decode(errors="replace"), _TOLD):
                raise Unavailable(f"{name}: {starter} printed '{printed}' on standard output, which must stay free")
            raise Unavailable(f"{name}: its launcher did not start: {why()}")
        if greeting.frame.kind is Kind.REFUSED:
            reason = greeting.frame.body[4:].decode(errors="replace")
            raise Unavailable(f"{name} cannot be started: {reason}: {os.strerror(frames.errno_of(greeting.frame))}")
        version, self.pid, self.open_files = frames.hello(greeting.frame)
        if version != frames.VERSION:
            raise Unavailable(f"{name}: its launcher has another version ({version})")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, command: Command) -> "Launched":
        """Start a program and return at once."""
        return Launched(self, next(self._numbers), command)

    def run(self, command: Command) -> Completed:
        """Run a program to its end; it is killed at its deadline."""
        process = self.start(command)
        try:
            in_time = process.wait(command.deadline_s)
        except BaseException:  # interrupted: it must not disturb the next program in this site
            process.stop()
            raise
        return process.stop(timed_out=not in_time)

    def put(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file inside the site, in pieces that need little memory. Raises OSError."""
        for start in range(0, len(data) or 1, _PIECE):
            piece = frames.write(next(self._numbers), path, data[start : start + _PIECE], mode, append=start > 0)
            self._ask_or_raise(piece, Kind.DONE, path)

    def read(self, path: str) -> bytes:
        """Return a file inside the site. Raises OSError."""
        return self._ask_or_raise(frames.read(next(self._numbers), path), Kind.DATA, path).body[4:]

    def listening(self, ports: tuple[tuple[Transport, int], ...], within_s: float = 0.0) -> bool:
        """Return whether every port has a listener in the site's network; see ``Site.listening``."""
        answer = self.ask(frames.listening(next(self._numbers), ports, within_s), Kind.DATA).body
        return len(answer) == len(ports) and all(answer)

    def alone(self) -> bool:
        """Return whether no process except the launcher is left in the site."""
        return self._alone or self._is_alone_now()

    def _is_alone_now(self) -> bool:
        return frames.errno_of(self.ask(Frame(Kind.ALONE, next(self._numbers)), Kind.DATA)) == 1

    def note_alone(self, *, alone: bool) -> None:
        """Note whether a process is left, because a program was started or has ended."""
        self._alone = alone

    def round_trip_s(self) -> float:
        """Measure the seconds of a request with its answer: the longest of a few."""
        took = []
        for _ in range(_WAYS):
            before = time.monotonic()
            self._is_alone_now()
            took.append(time.monotonic() - before)
        return max(took)

    def pause(self, *, stopped: bool) -> None:
        """Stop all descendants of the launcher (SIGSTOP), or continue them. Raises Unavailable."""
        answer = self.ask(frames.pause(next(self._numbers), stopped=stopped), Kind.DONE)
        if error := frames.errno_of(answer):
            raise Unavailable(f"{self.name}: its processes cannot be stopped: {os.strerror(error)}")

    def begin_sampling(self, hz: float, files: Sequence[SampledFile]) -> None:
        """Implement ``Sampler.begin_sampling``, without another process, which would count for the site."""
        self._sampled = len(files)
        self._ask_or_raise(frames.sample(next(self._numbers), 1 / hz, files), Kind.DATA, "what is sampled")

    def end_sampling(self) -> Samples:
        """Implement ``Sampler.end_sampling``."""
        answer = self._ask_or_raise(frames.sample(next(self._numbers), 0.0, ()), Kind.DATA, "what is sampled")
        return frames.samples(answer, self._sampled)

    def close(self) -> None:
        """Make the launcher end everything in the site, then itself; the opener of the site waits for that."""
        with contextlib.suppress(OSError, EnvironmentLost):
            self._stream.end()

    def ask(self, request: Frame, answer: Kind) -> Frame:
        """Send a request and return its answer."""
        reply = self.expect(request.number, answer)
        self.send(request)
        return self.answer_of(reply)

    def answer_of(self, reply: AwaitedFrame) -> Frame:
        """Wait for an answer."""
        self._heard = time.monotonic()
        while not cancellation.wait(reply.arrival, ANSWER_S) and time.monotonic() - self._heard < ANSWER_S:
            pass  # a long answer can arrive over a slow link
        if not reply.arrival.is_set():
            raise EnvironmentLost(f"{self.name}: its launcher has not answered for {ANSWER_S:.0f} s")
        if reply.frame is None:
            raise self.lost()
        return reply.frame

    def send(self, request: Frame) -> None:
        """Send a request."""
        try:
            with self._sending:
                for piece in self._window.pieces(request.pack()) if self._window else (request.pack(),):
                    self._stream.send(piece)
        except OSError:
            self.closed.wait(_TOGETHER_S)
            raise self.lost() from None

    def expect(self, number: int, answer: Kind) -> AwaitedFrame:
        """Register for the answer of this kind to a request, before the request is sent."""
        reply = self._waiting[number, answer] = AwaitedFrame()
        if self.closed.is_set():
            reply.give(None)
        return reply

    def forget(self, number: int) -> None:
        """Stop waiting for answers about a process."""
        for kind in (Kind.BEGAN, Kind.ENDED, Kind.RESULT):
            self._waiting.pop((number, kind), None)

    def environment_of(self, command: Command) -> dict[str, str]:
        """Return the variables of a program."""
        return {**self._env, **command.env}

    def lost(self) -> EnvironmentLost:
        """Return the error to raise once the launcher is gone."""
        return EnvironmentLost(f"{self.name}: {self._why()}")

    def _ask_or_raise(self, request: Frame, answer: Kind, path: str) -> Frame:
        frame = self.ask(request, answer)
        if error := frames.errno_of(frame):
            raise OSError(error, os.strerror(error), path)
        return frame

    def _read(self) -> None:
        reader, first = frames.FrameReader(), b""
        with contextlib.suppress(OSError, ValueError):
            while piece := self._stream.receive():
                if len(first) < frames.HEADER_SIZE:
                    first += piece
                    if not frames.can_greet(first):
                        self._no_greeting = first[:_LINE].strip().partition(b"\n")[0]
                        break
                self._heard = time.monotonic()
                for frame in reader.feed(piece):
                    if frame.kind is Kind.TAKEN and self._window:
                        self._window.free(frames.errno_of(frame))
                    kind = Kind.HELLO if frame.kind is Kind.REFUSED else frame.kind
                    reply = self._waiting.pop((frame.number, kind), None)
                    if reply:
                        reply.give(frame)
        self.closed.set()
        if self._window:
            self._window.close()
        for reply in list(self._waiting.values()):
            reply.give(None)


class Launched:
    """A program that a launcher started. Implements ``SiteProcess``."""

    def __init__(self, launcher: Launcher, number: int, command: Command) -> None:
        self._launcher = launcher
        self._number = number
        self._command = command
        self._completed: Completed | None = None
        self._began = launcher.expect(number, Kind.BEGAN)
        self._ended = launcher.expect(number, Kind.ENDED)
        self._requested_at, self._disconnected_s = time.monotonic(), launcher.disconnected_s()
        env = {name: revealed(value) for name, value in launcher.environment_of(command).items()}
        # all other code has only the names of secrets
        started = replace(command, argv=tuple(map(revealed, command.argv)))
        launcher.note_alone(alone=False)
        launcher.send(frames.start(number, started, env))

    def _refusal(self) -> int:
        """Return the error for which it could not be started; 0 if it has started."""
        return frames.errno_of(self._launcher.answer_of(self._began))

    def poll(self) -> int | None:
        """Return its return code, or None while it runs; -9 if its site is lost."""
        if self._completed is not None:
            return self._completed.returncode
        if self._began.arrival.is_set() and self._began.frame is not None and self._refusal():
            return _NOT_STARTED
        if not self._ended.arrival.is_set():
            return None
        return -signal.SIGKILL if self._ended.frame is None else frames.code_of(frames.errno_of(self._ended.frame))

    def wait(self, timeout_s: float) -> bool:
        """Wait at most ``timeout_s`` seconds; return True once it has ended."""
        deadline = time.monotonic() + max(0.0, timeout_s)
        if not cancellation.wait(self._began.arrival, max(0.0, timeout_s)):
            return False
        left_s = max(0.0, deadline - time.monotonic())
        return self.poll() is not None or cancellation.wait(self._ended.arrival, left_s)

    def printed(self) -> tuple[bytes, bytes]:
        """Return its output so far, as ``SiteProcess.printed``; all of it once it has ended."""
        if self._completed is not None:
            return self._completed.stdout, self._completed.stderr
        return frames.printed(self._launcher.ask(Frame(Kind.PRINTED, self._number), Kind.DATA))

    def stop(self, *, timed_out: bool = False) -> Completed:
        """End it and its group: its stop signal, then KILL after two seconds. Raises EnvironmentLost."""
        if self._completed is None:
            with cancellation.ignored():
                self._completed = self._end(timed_out)
            self._launcher.forget(self._number)
        return self._completed

    def _end(self, timed_out: bool) -> Completed:
        argv = self._command.argv
        if error := self._refusal():
            message = f"{argv[0]}: {os.strerror(error)}".encode()
            return Completed(argv, _NOT_STARTED, b"", message, 0.0, timed_out, error=error)
        by_us = not self._ended.arrival.is_set()
        request = frames.stop(self._number, self._command.stop_signal, GRACE_S)
        left = frames.result(self._launcher.ask(request, Kind.RESULT))
        self._launcher.note_alone(alone=left.alone)
        if left.returncode == -signal.SIGKILL and not by_us and self._launcher.closed.wait(_TOGETHER_S):
            raise self._launcher.lost()  # it was killed together with its site
        return Completed(
            argv, left.returncode, left.stdout, left.stderr, left.duration_s, timed_out,
            usage=left.usage if self._launcher.reports_use else None,
            outside_s=self._ended.arrived_at - self._requested_at,
            too_much=left.too_much, left_running=left.left_running and not by_us,
            disconnected_s=self._launcher.disconnected_s() - self._disconnected_s,
        )  # fmt: skip
