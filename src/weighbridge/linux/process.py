"""The only caller of subprocess: argument lists, process groups, deadlines, output in files."""

import contextlib
import math
import os
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import IO

from weighbridge.errors import Unavailable
from weighbridge.linux import cancellation
from weighbridge.model.command import SITE_ENV, Command, Completed
from weighbridge.model.names import RunId

RUN_VARIABLE = "WEIGHBRIDGE_RUN"
"""The variable in all processes that a run starts, by which ``weighbridge clean`` finds them."""
GRACE_S = 2.0
LISTENS_S = 20
"""Seconds that a program can go without reading its input."""
_ROOTS_FOLDERS = ("/usr/sbin", "/sbin")
_PIECE = 2**16
_MOUNTED_BY = re.compile(rb"^.* - tmpfs weighbridge-([0-9a-f]{12}) ", re.MULTILINE)
OUTPUT_LIMIT = 64 * 2**20
"""The largest number of bytes that are read back from each stream."""


class Process:
    """A started process in its own group. Implements ``Running``.

    After its end it stays a zombie until `stop`. So no other process or group can have its number.
    """

    def __init__(
        self,
        command: Command,
        *,
        env: Mapping[str, str] | None = None,
        hold: bool = False,
        inherit: bool = True,
        talk: int | None = None,
    ) -> None:
        """Start the process. With ``hold``, its standard input is a pipe that closes when this process ends in any
        way.

        ``talk`` is a connected socket that becomes its standard input and output. Without ``inherit``, its variables
        are only those of ``env`` and the command.
        """
        self.command = command
        self._stdout: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - read back after the process ended
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._started = time.monotonic()
        self._ended: float | None = None
        self._code: int | None = None
        self._completed: Completed | None = None
        self._stopping = threading.Lock()
        stdin: int | IO[bytes] = subprocess.PIPE if hold else subprocess.DEVNULL if talk is None else talk
        if command.stdin and not hold:  # a file, because a pipe blocks if the program does not read it
            stdin = tempfile.TemporaryFile()  # noqa: SIM115
            stdin.write(command.stdin)
            stdin.seek(0)
        try:
            self._popen = subprocess.Popen(
                command.argv,
                env={**(os.environ if inherit else {}), **(env or {}), **command.env},
                stdin=stdin,
                stdout=self._stdout if talk is None else talk,
                stderr=self._stderr,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise Unavailable(f"the program '{command.argv[0]}' is not installed") from error
        except PermissionError as error:
            if error.filename not in (None, command.argv[0]):
                reason = f"{error.strerror}: {error.filename}"
                raise Unavailable(f"the program '{command.argv[0]}' cannot be started: {reason}") from error
            raise Unavailable(f"this user is not allowed to execute the program '{command.argv[0]}'") from error
        finally:
            if not isinstance(stdin, int):
                stdin.close()
        self.pid = self._popen.pid
        self._pidfd = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Return its return code, or None while it runs."""
        if self._code is None:
            try:
                ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # another thread stopped it and has the code, or SIGCHLD is ignored
                return self._code if self._code is not None else self._popen.poll()
            if ended:
                self._ended = time.monotonic()
                self._code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        return self._code

    def wait(self, timeout_s: float) -> bool:
        """Wait at most ``timeout_s`` seconds, without polling; return True once it has ended."""
        if self.poll() is None:
            wait_readable(self._pidfd, timeout_s=timeout_s)
        return self.poll() is not None

    def output_so_far(self, start: int = 0) -> bytes:
        """Return its standard output from the byte ``start`` on."""
        return _read_all(self._stdout, start)

    def errors_so_far(self) -> bytes:
        """Return its standard error so far."""
        return _read_all(self._stderr)

    def send(self, data: bytes) -> None:
        """Write to the standard input that ``hold`` keeps open. Raises OSError once the process has ended."""
        if self._popen.stdin is None:
            raise BrokenPipeError(f"'{self.command.argv[0]}' was started without a pipe for its input")
        self._popen.stdin.write(data)
        self._popen.stdin.flush()

    def end_input(self) -> None:
        """Close the standard input that ``hold`` keeps open."""
        if self._popen.stdin is not None:
            self._popen.stdin.close()

    def stop(self, *, timed_out: bool = False, grace_s: float = GRACE_S) -> Completed:
        """End it and its group: its stop signal, then KILL after ``grace_s``. Several threads can call this."""
        with cancellation.ignored(), self._stopping:
            if self._completed is None:
                self._completed = self._end(timed_out, grace_s)
            return self._completed

    def _end(self, timed_out: bool, grace_s: float) -> Completed:
        for number in (self.command.stop_signal, signal.SIGKILL):
            if self.poll() is not None:
                break
            self._signal(number)
            self.wait(grace_s)
        self._signal(signal.SIGKILL)  # processes that the leader left behind
        wait_readable(self._pidfd)
        code = self.poll()
        self._popen.wait()
        if self._popen.stdin:
            with contextlib.suppress(OSError):
                self._popen.stdin.close()
        duration = (self._ended or time.monotonic()) - self._started
        streams = [_read_all(stream) for stream in (self._stdout, self._stderr)]
        self._stdout.close()
        self._stderr.close()
        os.close(self._pidfd)
        return Completed(self.command.argv, code or 0, streams[0], streams[1], duration, timed_out)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def _read_all(stream: IO[bytes], start: int = 0) -> bytes:
    return os.pread(stream.fileno(), OUTPUT_LIMIT, start)


def run(command: Command, *, env: Mapping[str, str] | None = None, inherit: bool = True) -> Completed:
    """Run a command to its end, or to its deadline. Raises Unavailable if the program is not installed.

    Without ``inherit``, it gets only the variables of ``env`` and of the command.
    """
    process = Process(command, env=env, inherit=inherit)
    ended = False
    try:
        ended = process.wait(command.deadline_s)
    finally:
        completed = process.stop(timed_out=not ended)
    return completed


def start_detached(argv: Sequence[str], log: Path) -> int:
    """Start a program in its own session, which outlives this process; return its number.

    Its standard input is empty, and its output is appended to ``log``. Raises Unavailable, OSError.
    """
    with log.open("ab") as file:
        popen = _popen(argv, file)
    popen.returncode = 0  # no code waits for it
    return popen.pid


class LoggedProcess:
    """A started process in its own session, whose output is appended to a file.

    When this process ends in any way, the kernel sends it SIGTERM, so that it can shut down cleanly, unlike
    `Process`. The main thread must start it, because the kernel watches for the end of the starting thread.
    """

    def __init__(self, argv: Sequence[str], log: Path, env: Mapping[str, str]) -> None:
        """Start the process with ``env`` as additional variables.

        Raises Unavailable, and OSError also if the file is a symbolic link.
        """
        with open(log, "ab", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o644)) as file:
            self._popen = _popen(("setpriv", "--pdeathsig", "TERM", "--", *argv), file, env)
        self.pid = self._popen.pid

    def poll(self) -> int | None:
        """Return its return code, or None while it runs."""
        return self._popen.poll()

    def signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        self._popen.send_signal(number)


def _popen(argv: Sequence[str], log: IO[bytes], env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            tuple(argv), env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise Unavailable(f"the program '{argv[0]}' is not installed") from error


def environment_of(run_id: RunId) -> dict[str, str]:
    """Return the variables for everything in a run's sites and engines, without any of the user's."""
    return {**SITE_ENV, RUN_VARIABLE: run_id}


def most_open_files() -> int:
    """Return the number of open files that each process of a site can have: the hard limit of this one."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def most_processes() -> int:
    """Return the number of processes that this user can have, at most the kernel's (podman uses that maximum)."""
    there_can_be = int(Path("/proc/sys/kernel/pid_max").read_text())
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    return there_can_be if hard == resource.RLIM_INFINITY else min(hard, there_can_be)


def mounted_by(run_id: RunId) -> str:
    """Return the mount source of a chroot's own /tmp and /run, which identifies the run of a process there."""
    return f"weighbridge-{run_id}"


def run_of(process: Path) -> str | None:
    """Return the run of a process, given its folder in /proc, or None. Raises OSError once it has ended.

    Some programs (nginx) overwrite their environment with a title; then their mounts identify the run.
    """
    marker = f"{RUN_VARIABLE}=".encode()
    for entry in (process / "environ").read_bytes().split(b"\0"):
        if entry.startswith(marker):
            return entry[len(marker) :].decode()
    match = _MOUNTED_BY.search((process / "mountinfo").read_bytes())
    return match[1].decode() if match else None


def has_variable(process: Path, name: str, value: str) -> bool:
    """Return whether a process was started with a variable, given its folder in /proc. Raises OSError."""
    return f"{name}={value}".encode() in (process / "environ").read_bytes().split(b"\0")


def which(program: str) -> str | None:
    """Return the path of a program, also in root's folders that a user's PATH often omits, or None."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_ROOTS_FOLDERS))
    return shutil.which(program, path=path)


def output(argv: Sequence[str], *, deadline_s: float = 30.0) -> str | None:
    """Return the stripped standard output of a short command; None if it is missing or fails."""
    try:
        completed = run(Command(tuple(argv), deadline_s))
    except Unavailable:
        return None
    return completed.text.strip() if completed.returncode == 0 else None


def wait_readable(*files: int | socket.socket | FileIO, timeout_s: float | None = None) -> bool:
    """Wait until a descriptor is readable, or a pidfd's process has ended; return False after ``timeout_s``.

    It uses poll(2): select(2) fails for descriptors from 1024 on, which a run has from about 245 sites on. Raises
    Cancelled.
    """
    waiting = select.poll()
    for file in files:
        waiting.register(file, select.POLLIN)
    if (cancelled := cancellation.descriptor()) is not None:
        waiting.register(cancelled, select.POLLIN)
    ready = waiting.poll(None if timeout_s is None else math.ceil(max(0.0, timeout_s) * 1000))
    cancellation.check()
    return bool(ready)


class SocketStream:
    """The local end of a socket that is a program's standard input and output. Implements ``Stream``.

    It ends with the program, even if a process that the program left behind still holds the other end.
    """

    def __init__(self, connection: socket.socket, program: int | None = None) -> None:
        """``program`` is the number of the program's process, a child of this one that nothing has waited for."""
        self._connection = connection
        self._readable: tuple[socket.socket | FileIO, ...] = (connection,)
        if program is not None:
            self._readable += (FileIO(os.pidfd_open(program)),)

    def send(self, data: bytes) -> None:
        """Send all data. Raises OSError if the other end is closed, or has not read for `LISTENS_S`."""
        self._connection.sendall(data)

    def receive(self, timeout_s: float | None = None) -> bytes:
        """Return the next piece; empty at the end of the stream. Raises TimeoutError."""
        if self._connection.fileno() < 0:
            return b""
        if not wait_readable(*self._readable, timeout_s=timeout_s):
            raise TimeoutError(f"no output within {timeout_s:g} s")
        try:
            piece = self._connection.recv(_PIECE, socket.MSG_DONTWAIT if self._readable[1:] else 0)
        except BlockingIOError:  # the program has ended
            piece = b""
        if not piece:
            for each in self._readable:
                each.close()
        return piece

    def end(self) -> None:
        """Close the sending direction."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Stop receiving: a waiting reader gets the end of the stream."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)


def limit_sending(connection: socket.socket) -> None:
    """Make sending fail with BlockingIOError once the other end has not read for `LISTENS_S` (socket(7))."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", LISTENS_S, 0))


_FED_AT_ONCE = 2**20


def feed(command: Command, pieces: Iterable[bytes]) -> Completed:
    """Run a command whose standard input is these pieces, without holding all of them in memory."""
    program, ended = Process(command, hold=True), False
    try:
        collected = bytearray()
        for piece in pieces:
            collected += piece
            if len(collected) >= _FED_AT_ONCE:
                program.send(bytes(collected))
                collected.clear()
        program.send(bytes(collected))
        program.end_input()
        ended = program.wait(command.deadline_s)
    except OSError:  # it stopped reading; its output has the reason
        ended = program.wait(command.deadline_s)
    finally:
        completed = program.stop(timed_out=not ended)
    return completed


def talk(command: Command, *, env: Mapping[str, str] | None = None) -> tuple[Process, SocketStream]:
    """Start a program that is talked to over its standard input and output. Raises Unavailable."""
    ours, theirs = socket.socketpair()
    limit_sending(ours)
    with theirs:
        process = Process(command, env=env, talk=theirs.fileno())
    try:
        return process, SocketStream(ours, process.pid)
    except OSError:  # too many open files
        process.stop()
        raise


def link_prefix(run_id: RunId) -> str:
    """Return the prefix of the run's network links (at most 15 characters including the rest)."""
    return f"wb-{run_id[-6:]}-"
