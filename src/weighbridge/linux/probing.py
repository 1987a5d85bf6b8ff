"""What the probes share: the launcher of a site is what runs in it, so that they need nothing of its root folder."""

import time

from weighbridge.model.command import Command, Running, Transport
from weighbridge.model.site import Site

READY_S = 5.0
"""How long the listening end of a probe may take, in seconds."""
_LOOK_S = 0.25
LAUNCHER = "/proc/self/exe"
"""Who starts a site's programs is the launcher, wherever its file is, until the child has become the program."""


def probe_of(what: str, seconds: int, *arguments: str) -> Command:
    """A probe of the launcher's (launcher/source/probe.h), which ends by itself after ``seconds``."""
    return Command((LAUNCHER, f"probe-{what}", *arguments), seconds + 5)


def listens(listener: Running, server: Site, transport: Transport, port: int) -> bool:
    """Wait until the listening end of a probe has its port; False where it ended before, or did not in time."""
    deadline = time.monotonic() + READY_S
    while not server.listening(((transport, port),), _LOOK_S):
        if listener.poll() is not None or time.monotonic() > deadline:
            return False
    return True
