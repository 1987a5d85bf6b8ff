"""A machine's Docker engine without the SDK: its socket, how to ask it, how root lends it to who logged in.

The agent of an ssh host has this module.
"""

import contextlib
import http.client
import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

from weighbridge.errors import Unavailable

_PIECE = 2**16
_DEFAULT = "/var/run/docker.sock"
_ANSWER_S = 30.0


def find() -> str:
    """Return the path of the socket of an engine that answers. Raises Unavailable without access to any."""
    refused = None
    for path in _candidates():
        try:
            connected(path).close()
        except PermissionError:
            refused = path
        except OSError:
            continue
        else:
            return path
    if refused:
        raise Unavailable(
            f"its Docker engine refuses this user ({refused}): set 'sudo: true', or join the group 'docker'"
        )
    raise Unavailable("no Docker engine answers there: install dockerd with the package manager there, or start it")


def _candidates() -> list[str]:
    """Return the sockets to try: only DOCKER_HOST's if it is set, else the system's, then the user's own."""
    docker_host = os.environ.get("DOCKER_HOST", "")
    if docker_host.startswith("unix://"):
        return [docker_host[len("unix://") :]]
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
    return [_DEFAULT, f"{runtime}/docker.sock"]


def connected(path: str) -> socket.socket:
    """Return a connection to the socket at a path of this machine. Raises OSError."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


class _Http(http.client.HTTPConnection):
    """HTTP over a socket of this machine."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_ANSWER_S)
        self._path = path

    def connect(self) -> None:
        self.sock = connected(self._path)
        self.sock.settimeout(_ANSWER_S)


def ask(path: str, method: str, what: str) -> Any:
    """Return what the engine at the socket ``path`` answers to a request; None if it answers nothing.

    Raises OSError if it refuses or does not answer like an engine.
    """
    connection = _Http(path)
    try:
        connection.request(method, what)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= http.client.BAD_REQUEST:
            raise OSError(f"the Docker engine refused {method} {what}: {text.decode(errors='replace').strip()}")
        return json.loads(text) if text.strip() else None
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(f"the Docker engine failed at {method} {what}: {error!r}") from error
    finally:
        connection.close()


def lend(path: str, folder: Path, user: int) -> str:
    """Make a socket that only ``user`` can use and that leads to ``path``, until the agent ends."""
    folder.mkdir(mode=0o700, exist_ok=True)
    os.chown(folder, user, -1)
    number = len(list(folder.iterdir()))
    lent = folder / f"{number}.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(lent))
    lent.chmod(0o600)
    os.chown(lent, user, -1)
    listener.listen(64)
    threading.Thread(target=_accept, args=(listener, path), daemon=True, name=f"lends {path}").start()
    return str(lent)


def _accept(listener: socket.socket, path: str) -> None:
    while True:
        near, _ = listener.accept()
        try:
            far = connected(path)
        except OSError:  # the engine has gone: its client sees the end of the connection
            near.close()
            continue
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=_copy, args=(source, sink), daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Copy to the source's end, and pass that on: each direction of a hijacked connection ends by itself."""
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE):
            sink.sendall(piece)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
