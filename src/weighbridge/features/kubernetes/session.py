"""The stream to a pod's launcher over connections that can break: the counterpart of launcher/source/session.c.

``kubectl exec`` can truncate its stream, end early, and still end with 0. Here every byte has a number and a
checksum, both ends keep unacknowledged data, and both send a sign of life every two seconds.
"""

import math
import struct
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from weighbridge.errors import Unavailable
from weighbridge.linux.process import Process, SocketStream

LEASE_S = 60
"""The seconds that a pod lives without a connection."""
SILENCE_S = 6.0
"""The seconds of silence after which a connection is abandoned."""
_FIRST_S = 120.0
"""The silence allowed on the first connection, for which kubectl might need another program's credentials."""
_AGAIN_S = 4.0
"""The silence allowed on further connections, or twice the time of the first if that is longer."""
_LEAST_S = 1.0
_BEAT_S = 2.0
_PAUSE_S = 1.0
_KNOWN_S = 3.0
_HEADER = struct.Struct("<QQI")
_SUM = struct.Struct("<I")
_OVERHEAD = _HEADER.size + _SUM.size
_PIECE, _WINDOW, _END = 2**16, 2**20, 2**32 - 1
_TOGETHER_S = 1.0


class StreamState:
    """The data sent and received over successive connections: no byte is lost or repeated. Pure.

    After `resume`, `due` returns data for the new connection, and `feed` processes its input.
    """

    def __init__(self) -> None:
        self.resumed = False
        """Whether the other end, which speaks first, has been heard on this connection."""
        self.damaged = False
        """Whether the input of this connection is invalid, so that another one is needed."""
        self.ended = False
        """Whether the other end has ended the stream."""
        self._kept = bytearray()
        self._kept_at = self._sent = 0  # number of its first byte; of the next to send
        self._taken = self._told = 0  # number of the next byte to take; what the other end knows of it
        self._came = bytearray()
        self._beat = self._end = False

    def resume(self) -> None:
        """Begin with a new connection."""
        self.resumed = self.damaged = self._beat = False
        self._came.clear()

    def send(self, data: bytes) -> None:
        """Queue data for this or another connection."""
        self._kept += data

    def beat(self) -> None:
        """Queue a sign of life."""
        self._beat = True

    def end(self) -> None:
        """Queue the end of the stream."""
        self._end = True

    def due(self) -> bytes:
        """Return the next record to send; b"" without one."""
        if self._beat:
            self._beat = False
            return self._record(b"")
        if not self.resumed:
            return b""
        if self._end:
            self._end = False
            return self._record(b"", _END)
        start = self._sent - self._kept_at
        piece = bytes(self._kept[start : min(start + _PIECE, _WINDOW)])
        if not piece and self._taken - self._told < _WINDOW // 4:
            return b""
        record = self._record(piece)
        self._sent += len(piece)
        return record

    def feed(self, piece: bytes) -> bytes:
        """Return the stream's bytes that this input completes, up to any damage."""
        self._came += piece
        taken = bytearray()
        while len(self._came) >= _OVERHEAD and not self.damaged:
            number, acknowledged, size = _HEADER.unpack_from(self._came)
            (its_sum,) = _SUM.unpack_from(self._came, _HEADER.size)
            last, size = size == _END, 0 if size == _END else size
            if size > _PIECE:
                self.damaged = True
            elif len(self._came) < _OVERHEAD + size:
                break
            else:
                header, body = self._came[: _HEADER.size], self._came[_OVERHEAD : _OVERHEAD + size]
                del self._came[: _OVERHEAD + size]
                self.damaged = zlib.crc32(body, zlib.crc32(header)) != its_sum or not self._take(
                    number, acknowledged, size
                )
                if not self.damaged:
                    taken += body
                    self.ended = self.ended or last
        return bytes(taken)

    def _take(self, number: int, acknowledged: int, size: int) -> bool:
        """Return whether a record can belong to this session."""
        if not 0 <= acknowledged - self._kept_at <= len(self._kept) or (size and number != self._taken):
            return False
        del self._kept[: acknowledged - self._kept_at]
        self._kept_at = acknowledged
        if not self.resumed:
            self.resumed = self._beat = True
            self._sent = acknowledged
        self._sent = max(self._sent, acknowledged)
        self._taken += size
        return True

    def _record(self, body: bytes, size: int | None = None) -> bytes:
        header = _HEADER.pack(self._sent, self._taken, len(body) if size is None else size)
        self._told = self._taken
        return header + _SUM.pack(zlib.crc32(body, zlib.crc32(header))) + body


@dataclass(frozen=True, slots=True)
class ConnectionLoss:
    """How a connection ended, in words, and the seconds since its last input during which another one is worth
    trying.

    0 means that the other end is lost. ``of_server``: the API server is away or starting, so a first connection is
    worth repeating, too.
    """

    words: str
    patience_s: float = 0.0
    of_server: bool = False


class SessionStream:
    """A session over successive connections. Implements ``Stream``; one thread receives.

    ``connect`` starts a program that carries a connection. ``judge`` ends it and returns why it broke. ``say``
    reports broken and restored connections.
    """

    def __init__(
        self,
        connect: Callable[[], tuple[Process, SocketStream]],
        judge: Callable[[Process], ConnectionLoss],
        say: Callable[[str], None],
    ) -> None:
        """Raises Unavailable if no connection can be started."""
        self.why = ""
        """Why the stream has ended; "" before its end."""
        self.disconnected_s = 0.0
        """The total seconds without a connection."""
        self._connect, self._judge, self._say = connect, judge, say
        self._session = StreamState()
        self._state, self._writing = threading.Lock(), threading.Lock()
        self._dirty = self._broken = False
        self._patience_s = math.inf
        self._ending = threading.Event()
        self._again_s: float | None = None
        """The silence allowed on a further connection; None before the first input."""
        self._carrier, self._connection = connect()
        self._heard = self._spoke = self._begun = time.monotonic()

    def send(self, data: bytes) -> None:
        """Queue all data for this or the next connection. Raises OSError once the stream has ended."""
        if self.why or self._ending.is_set():
            raise BrokenPipeError(self.why)
        with self._state:
            self._session.send(data)
        self._flush()

    def receive(self, timeout_s: float | None = None) -> bytes:
        """Return the next piece; empty at the end of the stream. Raises TimeoutError."""
        deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while not self.why:
            if self._session.ended:
                self.why = self._why_ended()
                break
            piece = self._next_piece(deadline)
            if piece == b"":
                self._reconnect()
            elif piece and (data := self._take(piece)):
                return data
            elif not piece and time.monotonic() >= deadline:
                raise TimeoutError(f"no output within {timeout_s} s")
        return b""

    def end(self) -> None:
        """End the other end, and the sending direction."""
        self._ending.set()
        with self._state:
            self._session.end()
        self._flush()

    def close(self) -> None:
        """End the program that carries the stream, after up to a second if the stream is ending."""
        self._carrier.wait(_TOGETHER_S if self._ending.is_set() and not self._broken else 0)
        self._ending.set()
        self._connection.close()
        self._carrier.stop()

    def _next_piece(self, deadline: float) -> bytes | None:
        """Return the next input; b"" if this connection is abandoned, None after a while without input."""
        if self._session.damaged:
            return b""
        now = time.monotonic()
        if self._session.resumed and now - self._spoke >= _BEAT_S:
            with self._state:
                self._session.beat()
            self._flush()
        silent_at, beat_at = self._heard + SILENCE_S, self._spoke + _BEAT_S
        if not self._session.resumed:
            silent_at, beat_at = self._begun + (self._again_s or _FIRST_S), math.inf
            silent_at = max(self._begun + _LEAST_S, min(silent_at, self._heard + self._patience_s))
        try:
            return self._connection.receive(max(0.0, min(silent_at, beat_at, deadline) - now))
        except TimeoutError:
            return b"" if time.monotonic() >= silent_at else None
        except OSError:
            return b""

    def _take(self, piece: bytes) -> bytes:
        """Process input; return the stream's bytes that it completes."""
        with self._state:
            data = self._session.feed(piece)
        self._flush()
        now = time.monotonic()
        if self._session.resumed:
            if self._broken:
                self.disconnected_s += now - self._heard
                self._say(f"reconnected after {now - self._heard:.1f} s")
            if self._again_s is None:
                self._again_s = max(_AGAIN_S, 2 * (now - self._begun))
            self._broken, self._heard = False, now
        return data

    def _why_ended(self) -> str:
        """Return why the other end has ended the stream, which the cluster might only know a moment later."""
        deadline = time.monotonic() + _KNOWN_S
        while not self._ending.is_set():
            verdict = self._judge(self._carrier)
            if not verdict.patience_s:
                return verdict.words
            if time.monotonic() > deadline:
                return "its launcher has ended"
            self._ending.wait(_PAUSE_S)
        return "it was ended"

    def _reconnect(self) -> None:
        self._connection.close()
        if self._ending.is_set():
            self.why = "it was ended"
            return
        verdict, again = self._judge(self._carrier), self._broken
        since_s = time.monotonic() - self._heard
        if not verdict.patience_s or (self._again_s is None and not verdict.of_server):
            self.why = verdict.words
        elif since_s >= verdict.patience_s:
            self.why = f"{verdict.words}; it did not return within {since_s:.0f} s"
        elif again and self._ending.wait(_PAUSE_S):
            self.why = "it was ended"
        else:
            if not again:
                self._say(f"{verdict.words}; reconnecting")
            self._broken, self._patience_s = True, verdict.patience_s
            self._start_connection()

    def _start_connection(self) -> None:
        try:
            carrier, connection = self._connect()
        except Unavailable as error:
            self.why = str(error)
            return
        with self._state:
            self._session.resume()
            self._carrier, self._connection = carrier, connection
        self._begun = time.monotonic()
        if self._ending.is_set():  # the closing thread might have ended only the previous one
            carrier.stop()

    def _flush(self) -> None:
        """Send queued data. A thread that finds another one sending leaves it to that one, without waiting."""
        self._dirty = True
        while self._dirty and self._writing.acquire(blocking=False):
            try:
                self._dirty = False
                self._send_due()
            finally:
                self._writing.release()

    def _send_due(self) -> None:
        while True:
            with self._state:
                connection, record = self._connection, self._session.due()
            if not record:
                return
            try:
                connection.send(record)
            except OSError:  # the receiving thread reconnects
                connection.close()
                return
            self._spoke = time.monotonic()
