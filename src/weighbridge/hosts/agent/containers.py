"""Removes what a run left in the machine's Docker engine, by its own interface: the SDK is not there."""

import contextlib
import json
from urllib.parse import quote

from weighbridge.errors import Unavailable
from weighbridge.hosts.agent import engine

LABEL = "weighbridge.run"
"""As in `weighbridge.engines.client`."""
_KINDS = (  # where they are listed, what that is called in the answer, how one is removed
    ("/containers/json?all=1&filters=", None, "Id", "/containers/{}?force=1&v=1"),
    ("/networks?filters=", None, "Id", "/networks/{}"),
    ("/volumes?filters=", "Volumes", "Name", "/volumes/{}?force=1"),
    ("/images/json?filters=", None, "Id", "/images/{}?force=1"),
)


def discard(run: str) -> None:
    """Remove every container, network, volume and image with the run's label; nothing where no engine answers."""
    filters = quote(json.dumps({"label": [f"{LABEL}={run}"]}))
    with contextlib.suppress(Unavailable, OSError):
        path = engine.find()
        for listed, within, name, removed in _KINDS:
            found = engine.ask(path, "GET", listed + filters)
            for thing in (found[within] if within else found) or ():
                with contextlib.suppress(OSError):  # one that cannot be removed must not keep the others
                    engine.ask(path, "DELETE", removed.format(quote(thing[name])))
