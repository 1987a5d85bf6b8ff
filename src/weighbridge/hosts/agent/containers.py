"""Removes what a run left in the machine's Docker engine, by its own interface: the SDK is not there."""

import contextlib
import http.client
import json
import socket
from typing import Any
from urllib.parse import quote

from weighbridge.errors import Unavailable
from weighbridge.hosts.agent import engine

LABEL = "weighbridge.run"
"""As in `weighbridge.engines.client`."""
_ANSWER_S = 30.0
_KINDS = (  # where they are listed, what that is called in the answer, how one is removed
    ("/containers/json?all=1&filters=", None, "Id", "/containers/{}?force=1&v=1"),
    ("/networks?filters=", None, "Id", "/networks/{}"),
    ("/volumes?filters=", "Volumes", "Name", "/volumes/{}?force=1"),
    ("/images/json?filters=", None, "Id", "/images/{}?force=1"),
)


class _Engine(http.client.HTTPConnection):
    """HTTP over a socket of this machine."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_ANSWER_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_ANSWER_S)
        self.sock.connect(self._path)


def discard(run: str) -> None:
    """Remove every container, network, volume and image with the run's label; nothing where no engine answers."""
    filters = quote(json.dumps({"label": [f"{LABEL}={run}"]}))
    with contextlib.suppress(Unavailable, OSError, ValueError, http.client.HTTPException):
        path = engine.find()
        for listed, within, name, removed in _KINDS:
            found = _ask(path, "GET", listed + filters)
            for thing in (found[within] if within and found else found) or ():
                _ask(path, "DELETE", removed.format(quote(thing[name])))


def _ask(path: str, method: str, what: str) -> Any:
    connection = _Engine(path)
    try:
        connection.request(method, what)
        text = connection.getresponse().read()
        return json.loads(text) if method == "GET" else None
    finally:
        connection.close()
