"""Sockets of this machine that lead to sockets of a host, through the connection to its agent."""

import contextlib
import socket
import threading
from pathlib import Path

from weighbridge.errors import EnvironmentLost
from weighbridge.hosts.remote.channel import Channel
from weighbridge.hosts.remote.processes import RemoteSocket

_PIECE = 2**20


class Forward:
    """A socket at ``local_path`` whose connections lead to the host's at ``remote_path``, until it is closed."""

    def __init__(self, channel: Channel, local_path: Path, remote_path: str) -> None:
        self._channel = channel
        self._remote_path = remote_path
        self._open: set[socket.socket] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        local_path.unlink(missing_ok=True)  # left by a killed process of this run
        self._local_path = local_path
        self._listener.bind(str(local_path))
        local_path.chmod(0o600)
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True, name=f"forwards {remote_path}").start()

    def close(self) -> None:
        """Accept no more connections, and close the open ones."""
        for endpoint in (self._listener, *list(self._open)):
            with contextlib.suppress(OSError):
                endpoint.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._local_path.unlink(missing_ok=True)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it is closed
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        try:
            far = RemoteSocket(self._channel, self._remote_path)
        except (OSError, EnvironmentLost):  # the client sees the connection end
            near.close()
            return
        self._open.add(near)
        back = threading.Thread(target=_bring_back, args=(far, near), daemon=True)
        back.start()
        with contextlib.suppress(OSError, EnvironmentLost):
            while piece := near.recv(_PIECE):
                far.send(piece)
        with contextlib.suppress(OSError, EnvironmentLost):
            far.end()
        back.join()
        self._open.discard(near)
        near.close()
        with contextlib.suppress(OSError, EnvironmentLost):
            far.close()


def _bring_back(far: RemoteSocket, near: socket.socket) -> None:
    """Copy up to the far end's end, and pass it on: each direction of a hijacked connection ends separately."""
    with contextlib.suppress(OSError):
        while piece := far.receive():
            near.sendall(piece)
    with contextlib.suppress(OSError):
        near.shutdown(socket.SHUT_WR)
