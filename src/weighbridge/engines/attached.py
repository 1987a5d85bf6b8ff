"""The stream to a container's first process, through the engine's attach interface."""

import contextlib
import select
import socket
import weakref
from typing import Any

from weighbridge.engines.client import engine_errors
from weighbridge.linux.process import limit_sending

_HEADER = 8
"""Bytes before each piece: 1 for standard output, 2 for standard error; three zeros; the size, big-endian."""
_STDOUT = 1
_PIECE = 2**16


def started(container: Any) -> "Attached":
    """Start a container, attached to it: detached again where it cannot be started."""
    attached = Attached(container.client, container.id)
    try:
        container.start()
    except BaseException:
        attached.end()
        raise
    return attached


class Attached:
    """Both ways. Implements ``Stream``. ``errors`` is what has come of standard error."""

    def __init__(self, client: Any, container: str) -> None:
        """Attach to a container that is not started yet."""
        self.errors = b""
        self._held = bytearray()
        with engine_errors("attaching to a container"):
            wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            self._socket = client.api.attach_socket(container, params=wanted)
        self._raw = getattr(self._socket, "_sock", self._socket)
        # The SDK gives the socket alone. The response that it is from flushes what is below it when it is finalized,
        # which fails loudly (from Python 3.13 on) where that was closed first: so it is closed from the top, always.
        self._close = weakref.finalize(self, getattr(self._socket, "_response", self._socket).close)
        self._raw.settimeout(None)
        limit_sending(self._raw)

    def send(self, data: bytes) -> None:
        """Send all of it. Raises OSError once the other end is closed, or no longer reads."""
        self._raw.sendall(data)

    def receive(self, timeout_s: float | None = None) -> bytes:
        """The next piece of standard output; empty at the end of the stream. Raises TimeoutError."""
        while self._close.alive:
            size = int.from_bytes(self._held[4:_HEADER], "big")
            if len(self._held) >= _HEADER + size > _HEADER:
                kind, piece = self._held[0], bytes(self._held[_HEADER : _HEADER + size])
                del self._held[: _HEADER + size]
                if kind == _STDOUT:
                    return piece
                self.errors = (self.errors + piece)[-_PIECE:]
                continue
            if timeout_s is not None and not select.select([self._raw], [], [], max(0.0, timeout_s))[0]:
                raise TimeoutError(f"nothing came within {timeout_s:g} s")
            got = self._raw.recv(_PIECE)
            if not got:
                self._close()
            self._held += got
        return b""

    def end(self) -> None:
        """Send no more."""
        with contextlib.suppress(OSError):
            self._raw.shutdown(socket.SHUT_WR)
