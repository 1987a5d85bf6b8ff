"""The stream to a pod's launcher over connections that may break: our end of launcher/source/session.c.

``kubectl exec`` may cut what it carries, end early, and end with 0 all the same. Here every byte has a number and a
sum, both ends keep what the other has not acknowledged, and both say every two seconds that they live.
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
"""For so long a pod lives without a connection."""
SILENCE_S = 6.0
"""Nothing was heard for so long: the connection is of no more use."""
_FIRST_S = 120.0
"""For so long the first connection may be silent: kubectl may have to ask another program for credentials."""
_AGAIN_S = 4.0
"""And for so long each further one, or twice as long as the first was."""
_LEAST_S = 1.0
_BEAT_S = 2.0
_PAUSE_S = 1.0
_KNOWN_S = 3.0
_HEADER = struct.Struct("<QQI")
_SUM = struct.Struct("<I")
_OVERHEAD = _HEADER.size + _SUM.size
_PIECE, _WINDOW, _END = 2**16, 2**20, 2**32 - 1
_TOGETHER_S = 1.0


class Session:
    """What is sent and received over one connection after another: no byte is lost or comes twice. Pure.

    After `resume`, `due` gives what goes over the new connection, and `feed` takes what comes.
    """

    def __init__(self) -> None:
        self.resumed = False
        """Whether the other end has been heard on this connection: it speaks first."""
        self.damaged = False
        """Whether what came on this connection cannot be: another one is needed."""
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
        """Have data sent, now or on another connection."""
        self._kept += data

    def beat(self) -> None:
        """Have the other end told that we live."""
        self._beat = True

    def end(self) -> None:
        """Have the other end told that the stream ends."""
        self._end = True

    def due(self) -> bytes:
        """Return the next record to send; b"" where none is due."""
        if self._beat:
            self._beat = False
            return self._record(b"")
        if not self.resumed:
            return b""
        if self._end:
            self._end = False
            return self._record(b"", _END)
        at = self._sent - self._kept_at
        piece = bytes(self._kept[at : min(at + _PIECE, _WINDOW)])
        if not piece and self._taken - self._told < _WINDOW // 4:
            return b""
        record = self._record(piece)
        self._sent += len(piece)
        return record

    def feed(self, piece: bytes) -> bytes:
        """Return the bytes of the stream that are whole with what came, up to where that is damaged."""
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
        """Whether a record can be one of this session."""
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
class Break:
    """How a connection ended, in words, and for how long since it was heard last another one is worth trying.

    0: what it led to is lost. ``of_server``: the API server is away or starts, so that a first one is, too.
    """

    words: str
    patience_s: float = 0.0
    of_server: bool = False


class SessionStream:
    """A session over one connection after another. Implements ``Stream``; one thread receives.

    ``connect`` starts a program that carries a connection. ``judge`` ends one and tells what broke it. ``say`` hears
    of connections that broke and of those that go on.
    """

    def __init__(
        self,
        connect: Callable[[], tuple[Process, SocketStream]],
        judge: Callable[[Process], Break],
        say: Callable[[str], None],
    ) -> None:
        """Raises Unavailable where no connection can be started."""
        self.why = ""
        """Why it has ended; "" while it has not."""
        self.unheard_s = 0.0
        """For how long there was no connection, in all."""
        self._connect, self._judge, self._say = connect, judge, say
        self._session = Session()
        self._state, self._writing = threading.Lock(), threading.Lock()
        self._dirty = self._broken = False
        self._patience_s = math.inf
        self._ending = threading.Event()
        self._again_s: float | None = None
        """How long a further connection may be silent; None: none has been heard yet."""
        self._carrier, self._connection = connect()
        self._heard = self._spoke = self._begun = time.monotonic()

    def send(self, data: bytes) -> None:
        """Have all of it sent, now or over the next connection. Raises OSError once the stream has ended."""
        if self.why or self._ending.is_set():
            raise BrokenPipeError(self.why)
        with self._state:
            self._session.send(data)
        self._flush()

    def receive(self, timeout_s: float | None = None) -> bytes:
        """The next piece; empty at the end of the stream. Raises TimeoutError where none comes in time."""
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
        """Have the other end end, and send no more."""
        self._ending.set()
        with self._state:
            self._session.end()
        self._flush()

    def close(self) -> None:
        """End what carries it, which is given a second where the stream is ending."""
        self._carrier.wait(_TOGETHER_S if self._ending.is_set() and not self._broken else 0)
        self._ending.set()
        self._connection.close()
        self._carrier.stop()

    def _next_piece(self, deadline: float) -> bytes | None:
        """What comes next; b"" where this connection is of no more use, None where nothing came for a while."""
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
        """Take what came; return what of the stream is whole with it."""
        with self._state:
            data = self._session.feed(piece)
        self._flush()
        now = time.monotonic()
        if self._session.resumed:
            if self._broken:
                self.unheard_s += now - self._heard
                self._say(f"reconnected after {now - self._heard:.1f} s")
            if self._again_s is None:
                self._again_s = max(_AGAIN_S, 2 * (now - self._begun))
            self._broken, self._heard = False, now
        return data

    def _why_ended(self) -> str:
        """Tell why the other end has ended the stream: the cluster may know it a moment later."""
        deadline = time.monotonic() + _KNOWN_S
        while not self._ending.is_set():
            told = self._judge(self._carrier)
            if not told.patience_s:
                return told.words
            if time.monotonic() > deadline:
                return "its launcher has ended"
            self._ending.wait(_PAUSE_S)
        return "it was ended"

    def _reconnect(self) -> None:
        """Connect again, or end the stream where that is of no use."""
        self._connection.close()
        if self._ending.is_set():
            self.why = "it was ended"
            return
        told, again = self._judge(self._carrier), self._broken
        since_s = time.monotonic() - self._heard
        if not told.patience_s or (self._again_s is None and not told.of_server):
            self.why = told.words
        elif since_s >= told.patience_s:
            self.why = f"{told.words}; it did not return within {since_s:.0f} s"
        elif again and self._ending.wait(_PAUSE_S):
            self.why = "it was ended"
        else:
            if not again:
                self._say(f"{told.words}; reconnecting")
            self._broken, self._patience_s = True, told.patience_s
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
        if self._ending.is_set():  # who closed it may have ended the one before
            carrier.stop()

    def _flush(self) -> None:
        """Send what is due. Who finds another thread at it leaves it to that one, and does not wait."""
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
            except OSError:  # who receives connects again
                connection.close()
                return
            self._spoke = time.monotonic()
