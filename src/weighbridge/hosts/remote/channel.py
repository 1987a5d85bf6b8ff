"""The local end of the connection to an agent: requests and answers, for several threads at once."""

import contextlib
import itertools
import socket
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any

from weighbridge.errors import DiskFull, EnvironmentLost, Unavailable, UserlandError
from weighbridge.hosts.agent import frames
from weighbridge.linux import cancellation

ANSWER_S = 60.0
"""Seconds without an answer after which the host counts as lost."""
REMOVE_S = 1800.0
"""The same for removing files or a control group: millions of files, or NFS, need minutes."""
ALIVE_S = 10.0
"""Seconds between signs of life; the agent ends after a longer silence."""
END_S = 20.0
"""Seconds in which the agent must end and remove everything."""
_ERRORS = {error.__name__: error for error in (DiskFull, EnvironmentLost, Unavailable, UserlandError)}


class AgentReply:
    """The agent's answer to a request, which might still be missing."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.fields: dict[str, Any] = {}
        self.data = b""


class Channel:
    """Requests to one agent. All methods raise EnvironmentLost at once when the connection is gone."""

    def __init__(self, host: str, connection: socket.socket, stream: IO[bytes], why: Callable[[], str]) -> None:
        """``stream`` reads from ``connection``; ``why`` returns the reason when it has ended."""
        self._host = host
        self._connection = connection
        self._stream = stream
        self._why = why
        self._numbers = itertools.count(1)
        self._waiting: dict[int, AgentReply] = {}
        self._end_callbacks: dict[int, Callable[[int | None], None]] = {}
        self._output_callbacks: dict[int, Callable[[bytes], None]] = {}
        self._sending = threading.Lock()
        self._lost = ""
        self._closed = threading.Event()
        self._ended = threading.Event()
        self._failures: list[str] = []
        for work in (self._read, self._say_alive):
            threading.Thread(target=work, daemon=True, name=f"host {host}").start()

    def call(self, what: str, data: bytes = b"", *, timeout_s: float = ANSWER_S, **fields: Any) -> AgentReply:
        """Send a request and wait for the answer. Raises the errors of the operation."""
        return self.answer(self.ask(what, data, **fields), timeout_s)

    def ask(self, what: str, data: bytes = b"", **fields: Any) -> AgentReply:
        """Send a request; the answer arrives in the returned reply."""
        self.check()
        number, reply = next(self._numbers), AgentReply()
        self._waiting[number] = reply
        self._send({**fields, "do": what, "id": number}, data)
        return reply

    def answer(self, reply: AgentReply, timeout_s: float = ANSWER_S) -> AgentReply:
        """Wait for the answer."""
        if not cancellation.wait(reply.done, timeout_s):
            self.lose(f"it has not answered for {timeout_s:.0f} s")
        if not reply.fields:
            self.check()
        if error := reply.fields.get("error"):
            if error == "OSError":
                raise OSError(*reply.fields["args"])
            raise _ERRORS[error](f"host {self._host}: {reply.fields['args'][0]}")
        return reply

    def on_end(self, process: int, callback: Callable[[int | None], None]) -> None:
        """Call ``callback`` with the return code when a process ends, or with None when the host is lost."""
        self._end_callbacks[process] = callback

    def on_output(self, process: int, callback: Callable[[bytes], None]) -> None:
        """Call ``callback`` with each piece of a process's output, and with an empty one at its end."""
        self._output_callbacks[process] = callback

    def forget_output(self, process: int) -> None:
        """Stop expecting output of a process that could not be reached."""
        self._output_callbacks.pop(process, None)

    def check(self) -> None:
        """Raise EnvironmentLost once the host is lost."""
        if self._lost:
            raise EnvironmentLost(f"lost the connection to host {self._host}: {self._lost}")

    def lose(self, why: str) -> None:
        """Abandon the host, and wake all waiting threads."""
        if not self._lost:
            self._lost = why
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._closed.set()
        for reply in list(self._waiting.values()):
            reply.done.set()
        for end_callback in list(self._end_callbacks.values()):
            end_callback(None)
        for output_callback in list(self._output_callbacks.values()):
            output_callback(b"")

    def close(self) -> None:
        """Announce the end of requests: the agent ends with everything that it started."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def failures(self, timeout_s: float = END_S) -> list[str]:
        """Wait for the agent's end, once the channel is closed; return what it could not end or remove there."""
        self._ended.wait(timeout_s)
        return [f"host {self._host}: {each}" for each in self._failures]

    def _send(self, fields: Mapping[str, Any], data: bytes = b"") -> None:
        frame = frames.pack(fields, data)
        try:
            with self._sending:
                self._connection.sendall(frame)
        except OSError:
            self.lose(self._why_it_ended())
            self.check()

    def _why_it_ended(self) -> str:
        """Return why the connection ended; after our own close, other sources can be gone."""
        return "it was closed" if self._closed.is_set() else self._why()

    def _say_alive(self) -> None:
        while not self._closed.wait(ALIVE_S):
            with contextlib.suppress(EnvironmentLost):
                self._send({"do": "live"})

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (frame := frames.read(self._stream)) is not None:
                fields, data = frame
                if "failures" in fields:
                    self._failures += fields["failures"]
                    continue
                if "ended" in fields:
                    end_callback = self._end_callbacks.pop(fields["ended"], None)
                    if end_callback:
                        end_callback(fields["code"])
                    continue
                if "said" in fields:
                    callbacks = self._output_callbacks
                    output_callback = callbacks.get(fields["said"]) if data else callbacks.pop(fields["said"], None)
                    if output_callback:
                        output_callback(data)
                    continue
                reply = self._waiting.pop(fields["id"], None)
                if reply:
                    reply.fields, reply.data = fields, data
                    reply.done.set()
        self.lose(self._why_it_ended())
        self._ended.set()
        with self._sending, contextlib.suppress(OSError):  # no thread writes to a reused descriptor
            self._stream.close()
            self._connection.close()
